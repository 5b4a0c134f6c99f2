/**
 * How much the disk has left, asked no more often than it may matter: after each commit, which
 * takes a thirtieth of the time of a short one, and for requests ten times a second, for others may
 * fill the disk or make room on it. While it had more than anybody writes until the next look,
 * commits ask no more often than that either, and requests do not ask.
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
