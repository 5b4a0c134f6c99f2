/**
 * Keys that are put in order only when someone asks: most are only ever asked for by name.
 *
 * A key comes in as a note of any kind and is put on the shelf of its first byte. Once a range of
 * that byte is asked for, the notes there are read as keys and sorted in.
 */
import type { Key } from '../codec/keys.ts'
import { newSortedKeys, type SortedKeys } from './sorted-keys.ts'

export interface SortedIndex<Note> {
  /** A key may come twice. */
  add(first_byte: number, note: Note): void
  /** In key order, each key once; nothing may be added meanwhile. */
  keys(from: Key, to: Key, reverse: boolean): Iterable<Key>
}

interface Shelf<Note> {
  readonly sorted: SortedKeys
  readonly fresh: Note[]
}

export function newSortedIndex<Note>(keyOf: (note: Note) => Key): SortedIndex<Note> {
  const shelves: (Shelf<Note> | undefined)[] = []

  function sortedOf({ sorted, fresh }: Shelf<Note>): SortedKeys {
    for (const note of fresh) sorted.add(keyOf(note))
    fresh.length = 0
    return sorted
  }

  return {
    add(first_byte, note) {
      const shelf = shelves[first_byte]
      if (shelf === undefined) shelves[first_byte] = { sorted: newSortedKeys(), fresh: [note] }
      else shelf.fresh.push(note)
    },
    *keys(from, to, reverse) {
      if (from >= to) return
      const first = from === '' ? 0 : from.charCodeAt(0)
      const last = Math.min(to.charCodeAt(0), shelves.length - 1)
      for (let n = 0; n <= last - first; n++) {
        const shelf = shelves[reverse ? last - n : first + n]
        if (shelf !== undefined) yield* sortedOf(shelf).range(from, to, reverse)
      }
    },
  }
}
