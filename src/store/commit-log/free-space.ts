/**
 * Free bytes of the disk. Asked after each commit, and for requests ten times a second, because
 * others may fill the disk too. While more is free than anyone writes until the next look, commits
 * ask ten times a second only, and requests do not ask.
 */
import type { LmdbTree } from '../lmdb/lmdb-tree.ts'

export interface FreeSpace {
  /** As it was asked last. */
  bytes(): number
  /** As it was lately. */
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
