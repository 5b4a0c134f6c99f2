/**
 * Random processes of all logic kinds, ops, administration, clock steps, reopenings and breaks of
 * the disk, on an engine and on a model made of Maps: each result, each task with its data and
 * history, the counts, and the order of all changes are the same. One seed is one history.
 *
 * The control tries engines with one mistake each, of test/support/model/mutants.
 */
import { limitsWith } from '../../src/core/limits.ts'
import { newCodeExecutor } from '../../src/executors/code.ts'
import { fakeChance } from '../support/fake-clock.ts'
import { fileDisk, memoryDisk } from '../support/model/bed.ts'
import { type RunCode, runHistory } from '../support/model/history.ts'
import { missingOf, toldOf } from '../support/model/met.ts'
import { controls } from '../support/model/mutants.ts'
import { type Given, type Outcome, type Proof, tryEach } from './proof.ts'

/** Of so many histories one is on a data file, and one has its code run in the sandbox. */
const seeds_per_file = 200
const seeds_per_sandbox = 40
/** So many histories meet everything that there is. */
const complete_from = 10_000

export const proof: Proof = {
  name: 'model',
  says: 'the engine does what a model does that is written from its documentation',
  unit: 'histories',
  quick: 12,
  long: 100_000,
  run: tryHistories,
  controls,
}

async function tryHistories(given: Given): Promise<Outcome> {
  const met = new Map<string, number>()
  const code = await newCodeExecutor(limitsWith({}), fakeChance())
  const runCode: RunCode = (order) => code.run(order)
  try {
    const outcome = await tryEach(given, async (seed) => {
      const disk = seed % seeds_per_file === 0 ? await fileDisk() : memoryDisk()
      const found = await runHistory(
        seed,
        disk,
        seed % seeds_per_sandbox === 1 ? runCode : undefined,
      )
      for (const [what, times] of found.met) met.set(what, (met.get(what) ?? 0) + times)
      return { faults: found.faults }
    })
    for (const line of toldOf(met)) given.tell(line)
    const missing = given.n >= complete_from ? missingOf(met) : []
    const failures = missing.map((what) => ({ seed: given.seed, says: `never met: ${what}` }))
    return { ...outcome, failures: [...outcome.failures, ...failures] }
  } finally {
    await code.close()
  }
}
