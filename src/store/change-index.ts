/**
 * The changes in a room, found by key and walked in key order: of each key the last one put down
 * counts. Changes come in by their place alone; a key becomes a string, and is put in order, only
 * where someone asks for a range that it may be in.
 *
 * Values that come out are parts of the room.
 */
import type { Key } from '../codec/keys.ts'
import { firstByteAt, keyAt, type Offset, valueAt } from './change-encoding.ts'
import { newHashIndex } from './hash-index.ts'
import { hashOf } from './key-hash.ts'
import { newSortedIndex } from './sorted-index.ts'
import type { Change } from './store.ts'

export interface ChangeIndex {
  /** How many keys have a change. */
  size(): number
  /** The change at `place` is its key's last; `hash` is its key's. */
  set(place: Offset, hash: number): void
  /** Undefined where the key was not changed, `null` where it was deleted. */
  get(key: Key): Buffer | null | undefined
  isLast(place: Offset, hash: number): boolean
  /** `unseen`: places that no range was told of before. Nothing may be set meanwhile. */
  range(unseen: Iterable<Offset>, from: Key, to: Key, reverse: boolean): Iterable<Change>
  clear(): void
}

/** `room` answers the one that all places are in now: it may grow. */
export function newChangeIndex(room: () => Buffer): ChangeIndex {
  const places = newHashIndex()
  const emptyShelves = () => newSortedIndex((place: Offset) => keyAt(room(), place))
  let shelves = emptyShelves()

  function get(key: Key): Buffer | null | undefined {
    if (places.size() === 0) return undefined
    const place = places.get(room(), key, hashOf(key))
    return place === 0 ? undefined : valueAt(room(), place)
  }

  return {
    size: places.size,
    set: (place, hash) => places.set(room(), place, hash),
    get,
    isLast: (place, hash) => places.lastOf(room(), place, hash) === place,
    *range(unseen, from, to, reverse) {
      for (const place of unseen) shelves.add(firstByteAt(room(), place), place)
      for (const key of shelves.keys(from, to, reverse)) {
        yield { key, value: get(key) as Buffer | null }
      }
    },
    clear() {
      places.clear()
      shelves = emptyShelves()
    },
  }
}
