/**
 * Public types of the feed of committed changes (`Engine.changes`).
 */
import type { Status, Task } from '../../core/model.ts'

/**
 * The committed changes of all tasks, or of one process, from a position on: in the order of their
 * commits, each once; for each task that is the order in which it changed. A consumer that keeps
 * the `position` of the last change it is done with goes on there after a restart of either side:
 *
 *     for await (const change of engine.changes({ from: await savedPosition() })) {
 *       await handle(change)
 *       await savePosition(change.position)
 *     }
 *
 * Changes are kept for `changes_kept_ms` and up to `changes_bytes_max`, whichever is less; a
 * consumer that stops reading keeps nothing else in memory or in the file. `next` rejects with
 * `changes_gone` where the next change is no longer kept: at the start, or later if the consumer is
 * too slow. It rejects with `not_possible` for a position that is not of this file, or where
 * `changes_bytes_max` is 0, and with `conv_not_found`. The iterator ends when the engine closes or
 * its signal is aborted, and by `return`.
 */
export type Changes = (options?: ChangesOptions) => AsyncIterableIterator<TaskChange>

/** What to read of the feed. */
export interface ChangesOptions {
  /**
   * The `position` of the last change that the consumer is done with: what came after it follows.
   * `start` begins with the oldest change that is kept. Default: changes from now on.
   */
  readonly from?: string | undefined
  /** Only changes of this process. */
  readonly conv_id?: string | number | undefined
  /** Whether each change has its task. Default false. */
  readonly data?: boolean | undefined
  /** Once aborted, the iterator is at its end. */
  readonly signal?: AbortSignal | undefined
}

/**
 * A task as a transaction has left it. A task that one transaction writes several times, as a
 * create and a callback in one request do, has a change for each.
 */
export interface TaskChange {
  /** Opaque text of up to 80 characters; see `ChangesOptions.from`. */
  readonly position: string
  readonly conv_id: string
  readonly obj_id: string
  readonly ref: string | null
  /** Canceled and processed tasks have ended. */
  readonly status: Status
  readonly node_id: string
  /** Unix milliseconds of the transaction; never less than those of the change before. */
  readonly at_ms: number
  /**
   * With `data`: the task as it is stored when the change is read, which may be a later state than
   * this change; absent where it is no longer kept.
   */
  readonly task?: Task
}
