/**
 * The steps of one logic: its funs, patterns and digests count what callers' data makes them
 * compute, about 0.1 s in all. Spent steps also count as moves of the transaction.
 */
import { steps_max } from './definition-limits.ts'

export interface Steps {
  /** Below zero once more was asked for. */
  left: number
}

export const steps_passed = `more than ${steps_max} steps`

/** Takes steps; false where there are not so many left. */
export function takeSteps(steps: Steps, count: number): boolean {
  steps.left -= count
  return steps.left >= 0
}
