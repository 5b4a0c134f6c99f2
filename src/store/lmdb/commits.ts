/**
 * Commits to the data file, in a process of its own (commit-log/checkpoint-child). A commit is one
 * LMDB transaction: pages are written and synced, then the meta page that makes them count. A
 * failed write drops the whole commit and may corrupt the memory of the process. After a failure
 * other than lack of space no commit follows: the state on disk is unknown.
 */
import { constants as system } from 'node:os'
import { fault } from '../../core/faults.ts'
import { isFull, uninterrupted } from '../disk/file-system.ts'
import { newWriter, openDatabase } from './database.ts'
import { full_disk_bytes } from './disk-space.ts'
import type { WritableTree } from './lmdb-tree.ts'
import { newSumsWriter } from './sums-writer.ts'
import { checkOpens, freeBytesAt, type LmdbTreeOptions, lmdbReads } from './tree.ts'

/** The file must exist, and no other process may write it. */
export async function openWritableTree(
  path: string,
  options: LmdbTreeOptions = {},
): Promise<WritableTree> {
  await checkOpens(path)
  const db = await openDatabase(path)
  const reads = lmdbReads(db, path, options)
  const writer = newWriter(db)
  const sums = newSumsWriter(path)
  let broken: unknown

  /** LMDB reports a write cut short by a full disk as an I/O error. */
  function isShortWrite(error: unknown): boolean {
    const is_io = (error as { code?: unknown } | null)?.code === system.errno.EIO
    return is_io && freeBytesAt(path) < full_disk_bytes
  }

  return {
    ...reads,
    commit(fill, goes_on = false) {
      if (broken !== undefined) throw broken
      try {
        if (!goes_on) sums.prepare()
        const put = (): void => {
          fill(writer)
          if (!goes_on) sums.put(writer)
        }
        // LMDB repeats an interrupted write, but a sync only with its whole commit.
        uninterrupted(() => db.transactionSync(put))
      } catch (error) {
        // The last commit is intact if the pages of the next one could not be written.
        if (isFull(error) || isShortWrite(error))
          throw fault('no_space', undefined, { cause: error })
        broken = error
        throw error
      } finally {
        writer.release()
      }
      if (!goes_on) sums.mark()
      reads.refresh()
    },
  }
}
