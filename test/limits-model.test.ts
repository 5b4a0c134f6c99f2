/**
 * Random histories at a limit agree with a model (support/limit-model), those at a rate with its
 * definition (support/rate-model), and each defect in what the
 * engine stores is found. CONVEYOR_LIMIT_HISTORIES runs more of them, CONVEYOR_SEED one seed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeChance } from './support/fake-clock.ts'
import { type Defect, runHistory } from './support/limit-model.ts'
import { runRates } from './support/rate-model.ts'

const steps = 40
const histories = Number(process.env.CONVEYOR_LIMIT_HISTORIES ?? 40)

function randomOf(seed: string): (below: number) => number {
  const chance = fakeChance(seed)
  return (below) => Math.floor(chance.fraction() * below)
}

for (const [what, run] of [
  ['at a limit', runHistory],
  ['at a rate', runRates],
] as const) {
  test(`${histories} histories ${what}`, async () => {
    const first = process.env.CONVEYOR_SEED
    for (let n = 0; n < histories; n++) {
      const seed = first ?? `limits ${n}`
      await run(randomOf(seed), steps).catch((error: Error) => {
        error.message = `seed "${seed}": ${error.message}`
        throw error
      })
    }
  })
}

/** [a defect, what it does to the numbers that are stored] */
const defects: readonly (readonly [string, Defect, typeof runHistory])[] = [
  ['a lost wake-up', (numbers) => ({ ...numbers, waiting: 0 }), runHistory],
  ['a leaked slot', (numbers) => ({ ...numbers, held: numbers.held + 1 }), runHistory],
  [
    'a slot given twice',
    (numbers) => ({ ...numbers, held: Math.max(0, numbers.held - 1) }),
    runHistory,
  ],
  [
    'one in line passed over',
    (numbers) => ({ ...numbers, first: numbers.first + (numbers.waiting > 1 ? 1 : 0) }),
    runHistory,
  ],
  ['a rate that is not kept', (numbers) => ({ ...numbers, paid_ms: 0 }), runRates],
  ['a lost due time', (numbers) => ({ ...numbers, due_ms: numbers.due_ms + 1 }), runRates],
  [
    'a rate that is too fast',
    (numbers) => ({ ...numbers, paid_ms: Math.max(0, numbers.paid_ms - 100) }),
    runRates,
  ],
]

for (const [what, defect, runOne] of defects) {
  test(`the model finds ${what}`, async () => {
    const run = async (): Promise<void> => {
      for (let n = 0; n < 5; n++) await runOne(randomOf(`defect ${n}`), steps, defect)
    }
    await assert.rejects(run(), assert.AssertionError)
  })
}
