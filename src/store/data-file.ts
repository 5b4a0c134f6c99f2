/**
 * The data file of an engine: this process reads it, and another one writes it.
 */
import { newCheckpointProcess } from './commit-log/checkpoint-process.ts'
import { manifest_key } from './commit-log/manifest.ts'
import { node_mark_key } from './commit-log/node-mark.ts'
import type { LmdbTree } from './lmdb/lmdb-tree.ts'
import { type OpenLmdbOptions, openLmdbTree } from './lmdb/open.ts'

export interface DataFileOptions extends Omit<OpenLmdbOptions, 'not_copied'> {
  /** The descriptor that holds the lock of the file. */
  readonly lock_fd?: number
}

/** Rejects as `openLmdbTree`. */
export async function openDataFile(path: string, options: DataFileOptions = {}): Promise<LmdbTree> {
  const { lock_fd, ...others } = options
  const not_copied = [manifest_key, node_mark_key]
  const reads = await openLmdbTree(path, { ...others, not_copied })
  const writer = newCheckpointProcess(path, lock_fd)
  return {
    ...reads,
    async write(job, onCommit) {
      try {
        await writer.write(job, onCommit)
      } finally {
        reads.refresh()
      }
    },
    async close() {
      await writer.close()
      await reads.close()
    },
  }
}
