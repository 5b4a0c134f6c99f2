/**
 * Long work as a generator that yields where it may pause. It runs at once where a transaction
 * needs the result, or in slices of a few milliseconds, so that the event loop serves callers in
 * between.
 */
import { nextTurn } from './clock.ts'

export type Sliced<Result> = Generator<void, Result>

const slice_ms = 8

export function atOnce<Result>(work: Sliced<Result>): Result {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

export async function inSlices<Result>(work: Sliced<Result>): Promise<Result> {
  for (let began_ms = performance.now(); ; ) {
    const step = work.next()
    if (step.done === true) return step.value
    if (performance.now() - began_ms < slice_ms) continue
    await nextTurn()
    began_ms = performance.now()
  }
}
