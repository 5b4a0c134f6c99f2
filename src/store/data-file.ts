/** The data file of an engine: this process reads it, and a child process writes it. */
import { fault } from '../core/faults.ts'
import { newCheckpointProcess } from './commit-log/checkpoint-process.ts'
import { copy_mark } from './commit-log/log-mark.ts'
import type { LmdbTree } from './lmdb/lmdb-tree.ts'
import { type OpenLmdbOptions, openLmdbTree } from './lmdb/open.ts'

export interface DataFileOptions extends Omit<OpenLmdbOptions, 'backup_mark'> {
  /** Holds the lock of the file. */
  readonly lock_fd?: number
}

/** Rejects as `openLmdbTree`. */
export async function openDataFile(path: string, options: DataFileOptions = {}): Promise<LmdbTree> {
  const { lock_fd, ...others } = options
  const reads = await openLmdbTree(path, { ...others, backup_mark: copy_mark })
  const writer = newCheckpointProcess(path, lock_fd)
  let is_closed = false
  return {
    ...reads,
    async write(job, onCommit) {
      if (is_closed) throw fault('shutting_down', 'the store is closed')
      try {
        await writer.write(job, onCommit)
      } finally {
        reads.refresh()
      }
    },
    async close() {
      is_closed = true
      await writer.close()
      await reads.close()
    },
  }
}
