/**
 * Random processes of all logic kinds, ops, administration, clock steps, reopenings and breaks of
 * the disk, on an engine and on a model made of Maps: each result, each task with its data and
 * history, the counts, and the order of all changes are the same. One seed is one history.
 *
 * The control tries engines with one mistake each, of test/support/model/mutants.
 */
import { tryHistories } from '../support/model/histories.ts'
import { missingOf, toldOf } from '../support/model/met.ts'
import { controls } from '../support/model/mutants.ts'
import type { Given, Outcome, Proof } from './proof.ts'

/** So many histories meet everything that there is. */
const complete_from = 10_000

export const proof: Proof = {
  name: 'model',
  says: 'the engine does what a model does that is written from its documentation',
  unit: 'histories',
  quick: 12,
  long: 100_000,
  run: tryAll,
  controls,
}

async function tryAll(given: Given): Promise<Outcome> {
  const { met: counts, ...outcome } = await tryHistories(given)
  const met = new Map(Object.entries(counts))
  for (const line of toldOf(met)) given.emit(line)
  const missing = given.n >= complete_from ? missingOf(met) : []
  const failures = missing.map((what) => ({ seed: given.seed, says: `never met: ${what}` }))
  return { ...outcome, failures: [...outcome.failures, ...failures] }
}
