/**
 * Reads a data file that nobody has open and changes nothing: what the commit log holds beyond LMDB
 * is laid over it in memory, as an opening would, but is not written. The caller holds the lock.
 */
import type { Fault } from '../core/faults.ts'
import { newChangeBuffer } from './change-buffer.ts'
import { keyAt, valueAt } from './change-encoding.ts'
import { changeOffsets } from './commit-log/frame.ts'
import { decodeManifest, type Manifest, manifest_key } from './commit-log/manifest.ts'
import {
  emptyNodeFault,
  type NodeMark,
  node_mark_key,
  nodeDataText,
  nodeFileFault,
  readNodeMark,
} from './commit-log/node-mark.ts'
import { recoverCommitLog } from './commit-log/recovery.ts'
import { openLmdbReadOnly } from './lmdb/open.ts'
import { mergedRange } from './merged-range.ts'
import type { Entry, View } from './store.ts'

export interface ReadOnlyFile extends View {
  /** Commits that are in the commit log alone. */
  readonly commits: number
  /** Of the copy of a node. */
  readonly node: NodeCopyFile | undefined
  /** As that of a store. */
  damage(): Promise<string[]>
  close(): Promise<void>
}

/** What the node had merged when it ended; the rest was in its commit log, which is elsewhere. */
export interface NodeCopyFile {
  readonly mark: NodeMark
  readonly manifest: Manifest
  /** Such as `all up to position 7, …`. */
  readonly says: string
  /** Why it is not opened. */
  readonly refusal: Fault
  /** A copy that opens alone; answers with its bytes. Rejects as `Engine.backup`. */
  backup(path: string): Promise<number>
}

/**
 * Rejects with the fault that an opening would meet. `path` has no symbolic links. With
 * `takes_nodes` the copy of a node is read too, where it has a whole state.
 */
export async function openReadOnly(
  path: string,
  { takes_nodes = false }: { readonly takes_nodes?: boolean } = {},
): Promise<ReadOnlyFile> {
  const tree = await openLmdbReadOnly(path, { not_copied: [manifest_key, node_mark_key] })
  try {
    const mark = readNodeMark(tree)
    const refusal = nodeFileFault(tree, path)
    const refused = refusal && takes_nodes ? emptyNodeFault(tree, path) : refusal
    if (refused !== undefined) throw refused
    const stored = tree.get(manifest_key)
    const manifest = stored && decodeManifest(stored)
    const node = mark &&
      manifest &&
      refusal && {
        ...{ mark, manifest, refusal, says: nodeDataText(tree) },
        backup: (target: string) => tree.backup(target),
      }
    const recovered = node ? undefined : await recoverCommitLog(path, manifest)
    const frames = (recovered ?? []).flatMap((segment) => segment.frames)
    const changes = newChangeBuffer()
    for (const frame of frames.sort((one, other) => one.seq - other.seq)) {
      for (const offset of changeOffsets([frame])) {
        changes.put(keyAt(frame.segment, offset), valueAt(frame.segment, offset))
      }
    }
    return {
      commits: frames.length,
      node,
      damage: tree.damage,
      get(key) {
        const value = changes.get(key)
        return value === undefined ? tree.get(key) : (value ?? undefined)
      },
      scan({ from, to, limit, reverse = false }) {
        const found: Entry[] = []
        const both = [changes.range(from, to, reverse), tree.range(from, to, reverse)]
        for (const { key, value } of limit > 0 ? mergedRange(both, reverse) : []) {
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
