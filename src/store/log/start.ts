/**
 * A new log before a tree, where the disk has room for one, and what is put into the tree itself
 * while no log is there to take it.
 */
import { dirname } from 'node:path'
import type { Sheet } from '../change-buffer.ts'
import { fileFault } from '../file-system.ts'
import { hasRoomFor, large_value_bytes } from '../lmdb/disk-space.ts'
import type { LmdbTree } from '../lmdb/tree.ts'
import type { Manifest } from './manifest.ts'
import { removeSegments } from './recovery.ts'
import type { SegmentOptions } from './segment.ts'
import { createLog, type LogWriter } from './writer.ts'

/** Two segments as they are made, and their folder's entry. */
const new_log_bytes = 3 * 1024 * 1024

/**
 * Undefined where the disk has no room for one. The tree does not know of it yet: its head comes
 * next. Rejects with `not_possible` and a sentence where the files cannot be made.
 */
export async function startLog(
  tree: LmdbTree,
  path: string,
  head: Manifest,
  options: SegmentOptions,
): Promise<LogWriter | undefined> {
  await removeSegments(path)
  if (tree.freeBytes() < new_log_bytes) return undefined
  try {
    return await createLog(path, head, options)
  } catch (error) {
    await removeSegments(path)
    const { code } = error as { code?: unknown }
    if (code === 'ENOSPC') return undefined
    const is_folder = code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
    throw fileFault(is_folder ? dirname(path) : path, error)
  }
}

/** False where the disk has no room for it. Only where no thread merges. */
export function putInto(tree: LmdbTree, sheet: Sheet): boolean {
  let large_bytes = 0
  for (const [, value] of sheet) {
    if (value !== null && value.length >= large_value_bytes) large_bytes += value.length
  }
  const load = { changes: sheet.size, bytes: sheet.bytes(), large_bytes }
  if (!hasRoomFor(load, tree)) return false
  tree.commit((batch) => {
    for (const [key, value] of sheet) batch.put(key, value)
  })
  return true
}
