/**
 * Reads a closed data file without any change: frames that LMDB lacks are overlaid in memory. The
 * caller holds the lock.
 */

import { closeSync, openSync, statSync } from 'node:fs'
import { typeOfKey } from '../codec/keys.ts'
import type { Fault } from '../core/faults.ts'
import { copy_mark, readLogMark } from './commit-log/log-mark.ts'
import { decodeManifest, type Manifest, manifest_key } from './commit-log/manifest.ts'
import {
  emptyNodeFault,
  type NodeMark,
  node_mark_key,
  nodeDataText,
  nodeFileFault,
  readNodeMark,
} from './commit-log/node-mark.ts'
import { changesIn, knownLog, recoverCommitLog, recoveredFrames } from './commit-log/recovery.ts'
import { fileFault } from './disk/file-system.ts'
import { copyDatabase } from './lmdb/backup.ts'
import { damageOf, openingFault } from './lmdb/damage.ts'
import type { FileUsage } from './lmdb/lmdb-tree.ts'
import { magicOf, notOurs } from './lmdb/open.ts'
import { checkedPages, damaged_meta, damagedPages } from './lmdb/page-sums.ts'
import { quick_bytes_max } from './lmdb/tree.ts'
import { mergedRange } from './merged-range.ts'
import type { BackupFile, Entry, View } from './store.ts'
import type { Tree } from './tree.ts'

export interface ReadOnlyFile extends View {
  /** Commits that only the commit log has. */
  readonly commits: number
  readonly node: NodeCopyFile | undefined
  damage(): Promise<string[]>
  close(): Promise<void>
}

/** The merged state of an ended node; the rest is in its commit log, elsewhere. */
export interface NodeCopyFile {
  readonly mark: NodeMark
  readonly manifest: Manifest
  /** Such as `all up to position 7, …`. */
  readonly says: string
  readonly refusal: Fault
  /** A copy that opens alone. Rejects like `Engine.backup`. */
  backup(path: string): Promise<BackupFile>
}

/**
 * Rejects with the fault of an opening. `path` has no symbolic links. `takes_nodes` also reads the
 * complete copy of a node.
 */
export async function openReadOnly(
  path: string,
  { takes_nodes = false }: { readonly takes_nodes?: boolean } = {},
): Promise<ReadOnlyFile> {
  const tree = await openPages(path)
  try {
    const is_alone = (await readLogMark(path)) !== undefined
    const mark = is_alone ? undefined : readNodeMark(tree)
    const refusal = is_alone ? undefined : nodeFileFault(tree, path)
    const refused = refusal && takes_nodes ? emptyNodeFault(tree, path) : refusal
    if (refused !== undefined) throw refused
    const stored = tree.get(manifest_key)
    const node = mark &&
      stored &&
      refusal && {
        ...{ mark, manifest: decodeManifest(stored), refusal, says: nodeDataText(tree) },
        backup: (target: string) => copyDatabase(path, target, copy_mark),
      }
    const recovered = node ? undefined : await recoverCommitLog(path, await knownLog(tree, path))
    const frames = recoveredFrames(recovered)
    const changes = changesIn(frames)
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
          if (key === manifest_key || key === node_mark_key) continue
          // LMDB reuses the buffer.
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

interface ReadOnlyTree extends Pick<Tree, 'get' | 'range' | 'close'> {
  damage(): Promise<string[]>
  usage(): Pick<FileUsage, 'end_bytes'>
}

const damage_max = 100

/** Rejects like `openLmdbTree`; a read throws `not_a_database` for a damaged page. */
async function openPages(path: string): Promise<ReadOnlyTree> {
  const magic = await magicOf(path)
  if (magic !== 'both') throw magic === 'one' ? openingFault(path, damaged_meta) : notOurs(path)
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    throw fileFault(path, error)
  }
  try {
    const pages = checkedPages(file)
    const is_quick = statSync(path).size <= quick_bytes_max
    for (const damaged of is_quick ? damagedPages(pages) : []) {
      if (damaged !== undefined) throw damaged
    }
    return {
      get(key) {
        try {
          return pages.entries.get(key)
        } catch (error) {
          throw openingFault(path, error)
        }
      },
      *range(from, to, reverse): Generator<Entry> {
        try {
          for (const entry of pages.entries.range(from, to, reverse)) {
            if (typeOfKey(entry.key) !== 'page_sum') yield entry
          }
        } catch (error) {
          throw openingFault(path, error)
        }
      },
      damage: () => damageOf(path, damage_max),
      usage: () => ({ end_bytes: (pages.meta.last_page + 1) * pages.meta.page_bytes }),
      close: async () => closeSync(file),
    }
  } catch (error) {
    closeSync(file)
    throw openingFault(path, error)
  }
}
