/**
 * Where the thread of a log starts: the script beside this file. The only file that knows; a
 * bundle, in which that is no file, puts another in its place.
 */
import { type ThreadStart, threadStart } from '../../core/thread-start.ts'

export interface ThreadScript extends ThreadStart {
  /** What the script itself wants to know. */
  readonly data: object
}

export function checkpointScript(): ThreadScript {
  return { ...threadStart(import.meta.url, 'checkpoint-worker'), data: {} }
}
