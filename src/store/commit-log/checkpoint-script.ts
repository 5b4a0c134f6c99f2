/**
 * The script of the checkpoint thread: the file beside this one. The bundle replaces this module,
 * because there the script is text.
 */
import { type ThreadStart, threadStart } from '../../core/thread-start.ts'

export interface CheckpointScript extends ThreadStart {
  /** Part of the thread's `workerData`. */
  readonly data: object
}

export function checkpointScript(): CheckpointScript {
  return { ...threadStart(import.meta.url, 'checkpoint-worker'), data: {} }
}
