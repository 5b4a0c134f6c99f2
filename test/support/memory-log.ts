/**
 * A commit log in memory that fails when it is told to: refuses for lack of space, is fenced off,
 * or has no answer for what it has lost or kept.
 */
import { fault } from '../../src/core/faults.ts'
import type { CommitLog } from '../../src/store/commit-log/commit-log.ts'

export type Failure = 'no_space' | 'fenced' | 'lost' | 'unanswered'

/** The frames are added to `kept`; `failureNow` is asked at each append. */
export function memoryLog(kept: Buffer[], failureNow: () => Failure | undefined): CommitLog {
  return {
    async append({ arena, from, end }) {
      const failure = failureNow()
      if (failure === undefined || failure === 'unanswered') {
        kept.push(Buffer.from(arena.subarray(from, end)))
      }
      if (failure === 'no_space') throw fault('no_space')
      if (failure !== undefined) throw fault('store_failed', failure)
      return 0
    },
    rotate() {},
    merged() {},
    preallocatedBytes: () => Number.POSITIVE_INFINITY,
    isSettled: () => true,
    async settle() {},
    async end() {},
    async close() {},
  }
}
