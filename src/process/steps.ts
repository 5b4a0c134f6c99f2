/**
 * The steps that a logic may compute: of its funs, patterns and digests together. They are counted
 * where the length of a definition does not bound the work that the data of a caller makes, about
 * a tenth of a second in all. What a logic has taken counts as moves of its transaction too.
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
