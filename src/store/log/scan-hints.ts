/**
 * Where ranges need not look: keys that were deleted stand over the tree, and under them those in
 * it, until they are merged, and whoever takes the first of a queue again and again would pass by
 * all of them each time. What one range has passed by the next that begins there skips.
 *
 * A note says that no key from `from` up to and without its end is there; a put ends it earlier.
 */
import type { Key } from '../../codec/keys.ts'

export interface ScanHints {
  /** Where a range from `from` on may begin. */
  startOf(from: Key): Key
  /** A range from `from` on found nothing before `until`, passing so many deleted keys. */
  notePassed(from: Key, until: Key, deleted: number): void
  notePut(key: Key): void
  isEmpty(): boolean
  clear(): void
}

/** Fewer are passed by as fast. */
const deleted_min = 64
const notes_max = 64

export function newScanHints(): ScanHints {
  const notes = new Map<Key, Key>()
  return {
    startOf: (from) => notes.get(from) ?? from,
    notePassed(from, until, deleted) {
      if (deleted < deleted_min) return
      if (notes.size >= notes_max) notes.clear()
      notes.set(from, until)
    },
    notePut(key) {
      for (const [from, until] of notes) if (key >= from && key < until) notes.set(from, key)
    },
    isEmpty: () => notes.size === 0,
    clear: () => notes.clear(),
  }
}
