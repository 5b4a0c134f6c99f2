/**
 * Reads a data file that nobody has open and changes nothing: what the commit log holds beyond LMDB
 * is laid over it in memory, as an opening would, but is not written. The caller holds the lock.
 */
import { readLogMark } from './commit-log/log-mark.ts'
import { manifest_key } from './commit-log/manifest.ts'
import { node_mark_key, nodeFileFault } from './commit-log/node-mark.ts'
import { changesIn, framesIn } from './commit-log/recovered-view.ts'
import { knownLog, recoverCommitLog } from './commit-log/recovery.ts'
import { openLmdbReadOnly } from './lmdb/read-only.ts'
import { mergedRange } from './merged-range.ts'
import type { Entry, View } from './store.ts'

export interface ReadOnlyFile extends View {
  /** Commits that are in the commit log alone. */
  readonly commits: number
  /** As that of a store. */
  damage(): Promise<string[]>
  close(): Promise<void>
}

/** Rejects with the fault that an opening would meet. `path` has no symbolic links. */
export async function openReadOnly(path: string): Promise<ReadOnlyFile> {
  const tree = await openLmdbReadOnly(path)
  try {
    const is_alone = (await readLogMark(path)) !== undefined
    const node_file = is_alone ? undefined : nodeFileFault(tree, path)
    if (node_file !== undefined) throw node_file
    const recovered = await recoverCommitLog(path, await knownLog(tree, path))
    const frames = framesIn(recovered)
    const changes = changesIn(frames)
    return {
      commits: frames.length,
      damage: tree.damage,
      get(key) {
        const value = changes.get(key)
        return value === undefined ? tree.get(key) : (value ?? undefined)
      },
      scan({ from, to, limit, reverse = false }) {
        const found: Entry[] = []
        const both = [changes.range(from, to, reverse), tree.range(from, to, reverse)]
        for (const { key, value } of limit > 0 ? mergedRange(both, reverse) : []) {
          if (key === manifest_key || key === node_mark_key) continue
          // LMDB reads each value into the same buffer.
          found.push({ key, value: Buffer.from(value) })
          if (found.length >= limit) break
        }
        return found
      },
      close: () => tree.close(),
    }
  } catch (error) {
    await tree.close()
    throw error
  }
}
