/**
 * Free bytes of the disk, read after each commit, and at most ten times a second for requests,
 * because others may fill the disk too. While plenty is free commits read at that rate, and
 * requests not at all.
 */
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'

export interface FreeSpace {
  /** As last read. */
  bytes(): number
  /** At most 100 ms old, unless plenty is free. */
  recentBytes(): number
  ask(): void
  committed(): void
}

const [roomy_bytes, look_ms] = [1024 * 1024 * 1024, 100]

export function newFreeSpace(tree: Pick<LmdbTree, 'freeBytes'>): FreeSpace {
  let bytes = tree.freeBytes()
  let asked_ms = performance.now()
  const isRoomy = (): boolean => bytes > roomy_bytes
  const isRecent = (): boolean => performance.now() < asked_ms + look_ms

  function ask(): void {
    bytes = tree.freeBytes()
    asked_ms = performance.now()
  }

  return {
    ask,
    bytes: () => bytes,
    recentBytes() {
      if (!isRoomy() && !isRecent()) ask()
      return bytes
    },
    committed() {
      if (!isRoomy() || !isRecent()) ask()
    },
  }
}
