/**
 * Tries histories and prints their outcome, with what they have met.
 *
 *     node histories-child.mjs SEED HISTORIES
 */
import { tryHere } from './histories.ts'

const [seed = '0', n = '1'] = process.argv.slice(2)
console.log(JSON.stringify(await tryHere({ seed: Number(seed), n: Number(n), tell() {} })))
