/**
 * The frames of a segment in memory, byte for byte, and where in them the last change of each key
 * stands.
 *
 * So what was committed is no heap of objects that live until it is merged: keys and values are
 * bytes in one room, which is used again in the segment's next round. A value that is read is a
 * part of that room, and good until the reading function returns, as the port says.
 */
import type { Key } from '../../bytes/keys.ts'
import { newShelves, type Shelves } from '../shelves.ts'
import type { Change, Writes } from '../store.ts'
import {
  changeBytes,
  firstPlace,
  frameBytes,
  keyAt,
  type Place,
  valueAt,
  writeFrame,
} from './frame.ts'
import { newPlaceTable } from './place-table.ts'

export interface Image {
  /** The bytes of all frames; the place of the next. */
  bytes(): number
  /** How many keys have a change. */
  changes(): number
  /** Makes the frame behind the others; the bytes to write. Not seen by reads before `keep`. */
  add(id: Buffer, seq: number, writes: Writes): Buffer
  /** The frame just added is on disk: reads see it. */
  keep(writes: Writes): void
  get(key: Key): Buffer | null | undefined
  range(from: Key, to: Key, reverse: boolean): Iterable<Change>
  clear(): void
}

/** Costs no memory before it is written. */
const room_bytes = 64 * 1024 * 1024

/** `seed` of the hash, any 32 bits. */
export function newImage(seed: number): Image {
  let room = Buffer.alloc(0)
  const places = newPlaceTable(seed)
  let shelves = emptyShelves()
  let at = 0
  let added_bytes = 0

  function grow(bytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(room_bytes, 2 * room.length, bytes))
    room.copy(larger, 0, 0, at)
    room = larger
  }

  function emptyShelves(): Shelves<Place> {
    return newShelves((place) => keyAt(room, place))
  }

  return {
    bytes: () => at,
    changes: places.size,
    add(id, seq, writes) {
      const bytes = frameBytes(writes)
      if (at + bytes > room.length) grow(at + bytes)
      writeFrame(room, at, { id, seq, bytes }, writes)
      added_bytes = bytes
      return room.subarray(at, at + bytes)
    },
    keep(writes) {
      let place = firstPlace(at)
      for (const [key, value] of writes) {
        if (places.set(room, key, place)) shelves.add(key.charCodeAt(0), place)
        place += changeBytes(key, value)
      }
      at += added_bytes
    },
    get(key) {
      const place = places.get(room, key)
      return place === 0 ? undefined : valueAt(room, place)
    },
    *range(from, to, reverse) {
      for (const key of shelves.keys(from, to, reverse)) {
        yield { key, value: valueAt(room, places.get(room, key)) }
      }
    },
    clear() {
      if (room.length > room_bytes) room = Buffer.alloc(0)
      places.clear()
      shelves = emptyShelves()
      at = 0
    },
  }
}
