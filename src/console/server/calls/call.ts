/**
 * What a call of the operator's page is, to the server that runs it: a right, a function, and what
 * the log tells of it. The input is JSON that nobody has checked: each call checks its own, member
 * by member, and refuses with `bad_request`. A refused op is an outcome; other refusals are faults.
 * Nothing that a call does or returns is unbounded.
 */

import type { BulkAction } from '../../../engine/api/bulk-api.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import type { Drawings } from '../../diagram/drawings.ts'
import type { Overviews } from '../../overview/overview.ts'
import type { CallName, ConsoleCalls, Right } from '../messages.ts'

export interface CallContext {
  readonly engine: ServedEngine
  readonly overviews: Overviews
  readonly drawings: Drawings
}

/** What the line of the log tells, beside the call and who made it: no ref, and no data. */
export interface Acted {
  readonly conv_id?: string
  readonly obj_id?: string
  /** Of a refused op; the server knows that of a fault, and otherwise it is `ok`. */
  readonly code?: string
  /** What is done to many. */
  readonly action?: BulkAction
  /** How many were changed. */
  readonly tasks?: number
}

export interface CallRow<Name extends CallName> {
  /** Who calls has this one at least. */
  readonly right: Right
  /** Bytes of the input at most, where it may have more than others. */
  readonly input_bytes_max?: number
  /**
   * Of a call that may change something: called after it with its output, or without one where it
   * threw. Undefined for a call that was only to look.
   */
  readonly acts?: (input: unknown, output?: ConsoleCalls[Name]['out']) => Acted | undefined
  run(context: CallContext, input: unknown): Promise<ConsoleCalls[Name]['out']>
}

/** Of the JSON of an input, beside the data of a task with every character escaped. */
export const input_bytes_max = 1024 * 1024
