/**
 * One commit of LMDB as one promise that always settles and never leaves a rejection unhandled.
 *
 * Either LMDB's own thread works it in, or the calling one does, which suits a thread that is there
 * for nothing else: that is a transaction as LMDB makes it, whose every failure is thrown, and in
 * which a throw undoes what was written so far.
 *
 * LMDB's promise of a batch for its own thread has gaps. When the write fails it rejects with an
 * error whose `commitError`, a second promise, carries the reason and would end the host as an
 * unhandled rejection. When its thread cannot even begin a transaction it settles nothing, and
 * keeps a lock that closing would wait for for ever. And a batch that breaks off while it is made
 * would be written as far as it came. So the start of the thread goes through here: its status is
 * read, and after a broken batch it is not started any more.
 */
import { type Fill, newBatch } from './lmdb-batch.ts'
import type { LmdbDatabase } from './lmdb-options.ts'

/** One at a time. */
export interface Commit {
  /** Resolves when all is on disk; rejects with LMDB's reason when that is not known. */
  (fill: Fill): Promise<void>
  /** Whether LMDB waits for something that never comes, so that it must not be closed. */
  isStuck(): boolean
}

/** What the thread reports: 0 done, 1 visible, 2 call back; anything else is an error's number. */
type Report = (status: number) => unknown

interface WriteThread {
  startWriting(address: number, report: Report): unknown
}

/** Blocks the calling thread until all is on disk. */
export function commitInPlace(db: LmdbDatabase): Commit {
  const batch = newBatch(db)
  const commit = async (fill: Fill): Promise<void> => {
    try {
      db.transactionSync(() => fill(batch))
    } finally {
      batch.letGo()
    }
  }
  return Object.assign(commit, { isStuck: () => false })
}

/** Takes over how `db` starts its write thread; once for each database. */
export function reportedCommit(db: LmdbDatabase): Commit {
  const { env } = db as unknown as { env: WriteThread }
  const startWriting = env.startWriting
  const batch = newBatch(db)
  let unsettled: ((error: Error) => void) | undefined
  let stuck = false

  const startReporting = (address: number, report: Report): unknown => {
    if (stuck) return undefined
    return startWriting.call(env, address, (status: number) => {
      const answer = report(status)
      // By now LMDB has settled its promise if it ever will; reactions to that run before the
      // check.
      if (status < 0 || status > 2) setImmediate(checkSettled, status)
      return answer
    })
  }
  Object.defineProperty(env, 'startWriting', { value: startReporting })

  function checkSettled(status: number): void {
    if (unsettled === undefined) return
    stuck = true
    unsettled(new Error(`LMDB could not begin to write (${status})`))
  }

  function begin(fill: Fill): Promise<unknown> {
    try {
      return db.batch(() => fill(batch))
    } catch (error) {
      stuck = true
      throw error
    }
  }

  function end(): void {
    unsettled = undefined
    batch.letGo()
  }

  const commit = (fill: Fill): Promise<void> =>
    new Promise((resolve, reject) => {
      unsettled = reject
      begin(fill).then(
        () => {
          end()
          resolve()
        },
        (error: unknown) => {
          end()
          void reasonOf(error).then(reject)
        },
      )
    })
  return Object.assign(commit, { isStuck: () => stuck })
}

/** The error behind a rejected batch, or that of the batch where none comes in this turn. */
async function reasonOf(error: unknown): Promise<unknown> {
  const reason = (error as { commitError?: Promise<unknown> } | null)?.commitError
  const turn = new Promise((resolve) => setImmediate(resolve))
  try {
    await Promise.race([reason ?? turn, turn])
    return error
  } catch (cause) {
    return cause
  }
}
