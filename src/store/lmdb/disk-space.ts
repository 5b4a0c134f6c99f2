/**
 * Estimates how much disk space a commit of LMDB takes. The estimates are upper bounds, because a
 * write without space ends the store.
 */
import type { LmdbTree } from './lmdb-tree.ts'
import { block_sums } from './page-sums.ts'

/** Changes that a commit writes. */
export interface Load {
  readonly changes: number
  /** Bytes of keys and values. */
  readonly bytes: number
  /** Those of them in values with overflow pages, which are contiguous. */
  readonly large_bytes: number
}

type Measured = Pick<LmdbTree, 'freeBytes' | 'usage'>

/** A disk with less than this is full. */
export const full_disk_bytes = 4 * 1024 * 1024
const page_bytes = 4096
/** Values from this size on get overflow pages. */
export const large_value_bytes = 1_900

/**
 * By how many bytes the data file may grow, in commits of at most `changes_max` changes. Inserted
 * data may leave its pages half empty. LMDB copies each page that a commit changes, and reuses only
 * the pages that the commit before freed. Each of them may have its sum in a block of its own.
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

/** Whether one commit has room for all of it. Free pages of the file are seldom contiguous. */
export function hasRoomFor(load: Load, tree: Measured): boolean {
  const left = tree.freeBytes() - 2 * load.large_bytes
  const small = { changes: load.changes, bytes: load.bytes - load.large_bytes }
  return left >= 0 && growthOf(small, tree, load.changes) <= left + spareBytes(tree)
}

/** Bytes in free pages of the file that can be counted on. */
export function spareBytes(tree: Measured): number {
  return tree.usage().reusable_bytes / 2
}
