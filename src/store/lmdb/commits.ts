/**
 * Commits to the data file, in a process that does nothing else (commit-log/checkpoint-child).
 *
 * A commit is one LMDB transaction: LMDB writes and syncs its pages, then the meta page that makes
 * them count. A failed write makes LMDB drop the whole commit, and may corrupt the memory of the
 * process. After a failure other than lack of space there is no further commit, because the state
 * on disk is unknown.
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

  /** LMDB calls it an I/O error that a disk took a part of a write, because that made it full. */
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
        // LMDB writes again what was interrupted, but a sync only with its whole commit.
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
