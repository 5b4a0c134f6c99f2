/**
 * How much of a disk a commit of the tree may take. Nothing here is exact, and all of it is too
 * much rather than too little: a write for which there is no room would be the end of the store.
 */
import type { LmdbTree } from './tree.ts'

/** Changes on their way into the tree. */
export interface Load {
  readonly changes: number
  /** Of keys and values. */
  readonly bytes: number
  /** Of them those in values that get pages of their own, side by side. */
  readonly large_bytes: number
}

type Measured = Pick<LmdbTree, 'freeBytes' | 'usage'>

const page_bytes = 4096
/** Values from here on get such pages. */
export const large_value_bytes = 1_900

/**
 * By how much the data file may grow. What is put in may leave its pages half empty. A commit, of
 * so many changes at the most, writes each page that it changes anew, and only those that the
 * commit before it gave free are written again.
 */
export function growthOf(
  { changes, bytes }: Pick<Load, 'changes' | 'bytes'>,
  tree: Measured,
  changes_max: number,
): number {
  const added = 2 * bytes
  const touched = 2 * page_bytes * Math.min(changes, changes_max)
  return added + 2 * Math.min(touched, tree.usage().used_bytes + added)
}

/** Whether there is room for all of it in one commit. Free pages are seldom side by side. */
export function hasRoomFor(load: Load, tree: Measured): boolean {
  const left = tree.freeBytes() - 2 * load.large_bytes
  const small = { changes: load.changes, bytes: load.bytes - load.large_bytes }
  return left >= 0 && growthOf(small, tree, load.changes) <= left + spareBytes(tree)
}

/** Of the file itself, as far as that can be counted on. */
export function spareBytes(tree: Measured): number {
  return tree.usage().reusable_bytes / 2
}
