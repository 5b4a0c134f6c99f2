/**
 * Child of the proof of timing: measures how long each check of a credential takes on inputs of two
 * classes, in an order drawn at random, and prints Welch's t of each check as a line of JSON.
 *
 * `node child.js MEASUREMENTS SEED [FIRST LAST]`: the rows of `checks` from FIRST to before LAST.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { servedEngine } from '../../src/engine/served-engine.ts'
import { serveHttp } from '../../src/http.ts'
import { openEngine } from '../../src/open.ts'
import { fractionsOf } from './fractions.ts'
import { newChecks, type PreparedCheck } from './timing-checks.ts'
import { welchOf } from './welch.ts'

/** As many inputs are made before they are measured, so that making them disturbs little. */
const batch = 512
/** Runs of each check that are not measured: the compiler of V8 is at work. */
const warm_up = 1_000

const [n = 1_000, seed = 1, first = 0, last = Number.POSITIVE_INFINITY] = process.argv
  .slice(2)
  .map(Number)
const fraction = fractionsOf(seed)
const folder = mkdtempSync(join(tmpdir(), 'conveyor-timing-'))
const engine = servedEngine(await openEngine(join(folder, 'tasks.lmdb')))
const server = await serveHttp(engine, { port: 0 })
const { checks, close } = await newChecks(engine, server.address.port, fraction)
const wanted = checks.slice(first, last)
const shares = wanted.map(({ share = 1 }) => share)
const one_share = n / shares.reduce((sum, share) => sum + share)
for (const check of wanted) {
  const { says, share = 1, between } = check
  await between?.()
  for (const _ of Array(warm_up)) await check.prepare(fraction() < 0.5 ? 0 : 1).run()
  const times = await measured(check, Math.ceil(share * one_share))
  const found = { says, n: times[0].length + times[1].length, ...welchOf(...times) }
  console.log(JSON.stringify(found))
}
await close()
await server.drain()
await engine.close()
rmSync(folder, { recursive: true })

/** The nanoseconds of each run, by class. */
async function measured(check: PreparedCheck, n: number): Promise<[number[], number[]]> {
  const times: [number[], number[]] = [[], []]
  for (let done = 0; done < n; done += batch) {
    await check.between?.()
    const inputs = Array.from({ length: Math.min(batch, n - done) }, () => {
      const which = fraction() < 0.5 ? 0 : 1
      return { which, run: check.prepare(which).run } as const
    })
    for (const { which, run } of inputs) {
      const began_ms = performance.now()
      const result = run()
      if (result !== undefined) await result
      times[which].push((performance.now() - began_ms) * 1e6)
    }
  }
  return times
}
