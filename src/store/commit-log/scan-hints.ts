/**
 * Caches where a scan starts, so that scans of a queue's head skip tombstones that the next
 * checkpoint removes. A hint says that no key exists from `from` to its end, excluded; a put within
 * it moves the end back.
 */
import type { Key } from '../../codec/keys.ts'

export interface ScanHints {
  startOf(from: Key): Key
  /** A range from `from` found nothing before `until` and passed this many tombstones. */
  addGap(from: Key, until: Key, tombstones: number): void
  onPut(key: Key): void
  isEmpty(): boolean
  clear(): void
}

/** Fewer are passed as fast without a hint. */
const tombstones_min = 64
const hints_max = 64

export function newScanHints(): ScanHints {
  const ends = new Map<Key, Key>()
  return {
    startOf(from) {
      const known = ends.get(from)
      if (known !== undefined) return known
      for (const [gap, until] of ends) if (gap < from && from < until) return until
      return from
    },
    addGap(from, until, tombstones) {
      if (tombstones < tombstones_min) return
      if (ends.size >= hints_max) ends.clear()
      ends.set(from, until)
    },
    onPut(key) {
      for (const [from, until] of ends) if (key >= from && key < until) ends.set(from, key)
    },
    isEmpty: () => ends.size === 0,
    clear: () => ends.clear(),
  }
}
