/** Public types of the feed of committed changes (`Engine.changes`). */
import type { Status, Task } from '../../core/model.ts'

/**
 * The committed changes of all tasks, or of one process, after a position: in commit order, each
 * once. A consumer that stores the `position` of each change it has handled resumes there after a
 * restart of either side:
 *
 *     for await (const change of engine.changes({ from: await savedPosition() })) {
 *       await handle(change)
 *       await savePosition(change.position)
 *     }
 *
 * Changes are kept for `changes_kept_ms` and up to `changes_bytes_max`, whichever is less. `next`
 * rejects with `changes_gone` once the next change is no longer kept, with `not_possible` for a
 * position of another file or if `changes_bytes_max` is 0, and with `conv_not_found`. The iterator
 * ends by `return`, its signal, or the close of the engine.
 */
export type Changes = (options?: ChangesOptions) => AsyncIterableIterator<TaskChange>

export interface ChangesOptions {
  /**
   * The `position` of the last handled change: the feed resumes after it. `start`: the oldest kept
   * change. Default: changes from now on.
   */
  readonly from?: string | undefined
  /** Only changes of this process. */
  readonly conv_id?: string | number | undefined
  /** Whether each change has its task. Default false. */
  readonly data?: boolean | undefined
  /** Ends the iterator. */
  readonly signal?: AbortSignal | undefined
}

/** A task as a transaction has left it; several writes in a transaction give several changes. */
export interface TaskChange {
  /** Opaque text of up to 80 characters; see `ChangesOptions.from`. */
  readonly position: string
  readonly conv_id: string
  readonly obj_id: string
  readonly ref: string | null
  /** Canceled and processed tasks have ended. */
  readonly status: Status
  readonly node_id: string
  /** Unix milliseconds of the transaction; never decreases. */
  readonly at_ms: number
  /**
   * With `data`: the task as it is stored when the change is read, which may be a later state than
   * this change; absent where it is no longer kept.
   */
  readonly task?: Task
}
