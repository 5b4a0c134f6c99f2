/**
 * An engine that applies batches, several at a time, acknowledges each, closes and repeats:
 * `power-engine-child PATH`. The work is that of the crash test.
 */
import { writeSync } from 'node:fs'
import { openEngine } from '../../src/open.ts'
import { type Ack, batchName, batchOf, makeReady, pairs } from './crash-work.ts'

const batches_of_round = 24
const under_way = 4

const [path = ''] = process.argv.slice(2)
for (let round = 0; round < 2; round++) {
  const engine = await openEngine(path)
  await makeReady(engine)
  const wakeable: string[] = []
  let n = 0
  const work = async (): Promise<void> => {
    while (n < batches_of_round) {
      const pair = n % pairs
      const wakes = wakeable.splice(0, n % 3)
      const { name, ops } = batchOf(batchName(round, n++), pair, wakes, n % 4)
      const ok = (await engine.apply(ops)).filter(({ proc }) => proc === 'ok')
      const idsOf = (type: string): string[] =>
        ok.filter((result) => result.type === type).map(({ obj_id }) => obj_id ?? '')
      const made = idsOf('create')
      const woke = idsOf('modify').filter((obj_id) => wakes.includes(obj_id))
      wakeable.push(made[0] as string)
      writeSync(
        1,
        `${JSON.stringify({ batch: name, pair, made, woke, ops: ops.length } satisfies Ack)}\n`,
      )
    }
  }
  await Promise.all(Array.from({ length: under_way }, work))
  await engine.close()
}
