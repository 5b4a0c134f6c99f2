/**
 * Tries histories and prints their outcome, with what they have met.
 *
 *     node histories-child.mjs SEED HISTORIES
 */
import { tryHere } from './histories.ts'

const [seed = '0', n = '1'] = process.argv.slice(2)
const given = { seed: Number(seed), n: Number(n), failures_max: 20, emit() {} }
console.log(JSON.stringify(await tryHere(given)))
