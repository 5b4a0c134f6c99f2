/**
 * Applies batches until it is killed, several at a time, and acknowledges each on standard output
 * once its results are there: `crash-child PATH ROUND`.
 */
import { writeSync } from 'node:fs'
import { openEngine } from '../../src/open.ts'
import { type Ack, batchName, batchOf, makeReady, pairs } from './crash-work.ts'

const under_way_max = 8

const [path = '', round = '0'] = process.argv.slice(2)
const engine = await openEngine(path)
await makeReady(engine)

const wakeable: string[] = []
let n = 0

async function applyOne(): Promise<void> {
  const pair = n % pairs
  const wakes = wakeable.splice(0, n % 3)
  const { name, ops } = batchOf(batchName(Number(round), n++), pair, wakes, n % 4)
  const results = await engine.apply(ops)
  const ok = results.filter(({ proc }) => proc === 'ok')
  const idsOf = (type: string): string[] =>
    ok.filter((result) => result.type === type).map(({ obj_id }) => obj_id ?? '')
  const made = idsOf('create')
  const woken = new Set(wakes)
  const woke = idsOf('modify').filter((obj_id) => woken.has(obj_id))
  wakeable.push(made[0] as string)
  const ack: Ack = { batch: name, pair, made, woke, ops: ops.length }
  writeSync(1, `${JSON.stringify(ack)}\n`)
}

async function work(): Promise<never> {
  for (;;) await applyOne()
}

await Promise.all(Array.from({ length: under_way_max }, work))
