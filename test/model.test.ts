/**
 * Random histories of ops, time and reopenings, compared with a model made of a few Maps.
 *
 * `CONVEYOR_SLOW=1` runs many more. A failing history is printed with its seed and path; the
 * variables CONVEYOR_SEED and CONVEYOR_PATH replay it.
 */
import { it } from 'node:test'
import { doneBefore } from './support/before-tests.ts'
import { checkAgainstModel, model_limits } from './support/model-run.ts'
import { fileBed, memoryBed } from './support/model-setup.ts'

const is_slow = process.env.CONVEYOR_SLOW === '1'

// biome-ignore format: a table
const rows = [
  { on: 'memory', open: async () => memoryBed({ limits: model_limits }), runs: is_slow ? 10_000 : 180, steps: 40 },
  { on: 'a file', open: async () => fileBed({ limits: model_limits }),   runs: is_slow ? 300 : 8,      steps: 40 },
] as const

const bodies: (() => void)[] = []
for (const { open, runs, steps } of rows) {
  bodies.push(await doneBefore(() => checkAgainstModel(open, runs, steps)))
}
for (const [at, body] of bodies.entries()) {
  it(`does what the model does, on ${rows[at]?.on}: ${rows[at]?.runs} histories`, body)
}
