/**
 * Upper bounds of the disk space that a commit of LMDB takes: a write without space ends the store.
 */
import type { LmdbTree } from './lmdb-tree.ts'
import { block_sums } from './page-sums.ts'

export interface Load {
  readonly changes: number
  readonly bytes: number
  /** Those of values with contiguous overflow pages. */
  readonly large_bytes: number
}

type Measured = Pick<LmdbTree, 'freeBytes' | 'usage'>

export const full_disk_bytes = 4 * 1024 * 1024
const page_bytes = 4096
/** Larger values get overflow pages. */
export const large_value_bytes = 1_900

/**
 * Growth of the data file, in commits of at most `changes_max` changes. Insertions may leave pages
 * half empty. LMDB copies each changed page and reuses only pages that the commit before freed.
 * Each page may have its sum in a block of its own.
 */
export function growthOf(
  { changes, bytes }: Pick<Load, 'changes' | 'bytes'>,
  tree: Measured,
  changes_max: number,
): number {
  const added = 2 * bytes
  const touched = 2 * page_bytes * Math.min(changes, changes_max)
  const { used_bytes, reusable_bytes } = tree.usage()
  const sums_bytes = page_bytes + (used_bytes + reusable_bytes) / block_sums
  return added + 2 * Math.min(touched, used_bytes + added) + 2 * Math.min(touched, sums_bytes)
}

/** Whether one commit has room for all. Free pages of the file are seldom contiguous. */
export function hasRoomFor(load: Load, tree: Measured): boolean {
  const left = tree.freeBytes() - 2 * load.large_bytes
  const small = { changes: load.changes, bytes: load.bytes - load.large_bytes }
  return left >= 0 && growthOf(small, tree, load.changes) <= left + spareBytes(tree)
}

/** Bytes in free pages of the file, conservatively. */
export function spareBytes(tree: Measured): number {
  return tree.usage().reusable_bytes / 2
}
