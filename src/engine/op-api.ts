/**
 * The public types of the ops of an embedder: what `Engine.create`, `modify` and the calls for one
 * task take.
 */

/** An op without `type` and `obj`. */
export interface CreateInput {
  /** The id of the process; 7 and `'7'` are the same, here and in a ref. */
  readonly conv_id: string | number
  /** The caller's own name of the task, unique among the live tasks of the process. */
  readonly ref?: string | number | null
  /**
   * A plain JSON object, or `rawJson(text)`, which keeps the exact text. At any depth, a Date and
   * any object with `toJSON` is its JSON text, a bigint its digits, and a member that is undefined
   * is left out. What has no JSON is refused with `error` and its path: functions, symbols, NaN,
   * infinities, lone surrogates, undefined in an array, cycles, other objects of a class.
   */
  readonly data: unknown
}

/** A task by its ref or obj_id; with both, the obj_id decides. */
export interface TargetInput {
  readonly conv_id: string | number
  readonly ref?: string | number | null
  readonly obj_id?: string
}

export interface ModifyInput extends TargetInput {
  /** As of `CreateInput`; its members replace those of the task's data, and the others stay. */
  readonly data: unknown
  /** Refuses unless the task waits for a callback. Default false. */
  readonly is_sync?: boolean
  /** Refuses unless it waits for one in this node, so that a late repeat resumes no later wait. */
  readonly node_id?: string
}
