/**
 * Changes that lie over a tree until they are committed: written down one after the other, as the
 * bytes that a log takes, with a table of where each key's last one stands.
 *
 * So a change is put down once, and no object of it lives on. A key that is put again stands there
 * twice, and only the last counts. Values that come out are parts of the room, good until the
 * reading function returns; those of a walk over all changes, until the sheet is changed.
 */
import type { Key } from '../bytes/keys.ts'
import { changeBytes, firstByteAt, keyAt, type Place, putChange, valueAt } from './change-bytes.ts'
import { hashOf } from './key-hash.ts'
import { newPlaceTable, type PlaceTable } from './place-table.ts'
import { newShelves } from './shelves.ts'
import type { Change, Writes } from './store.ts'

export interface Sheet extends Writes {
  /** Undefined where the key was not changed, `null` where it was deleted. */
  get(key: Key): Buffer | null | undefined
  /** Copies the value. */
  put(key: Key, value: Buffer | null): void
  /** Here `undo` goes back to. */
  mark(): void
  undo(): void
  /** In key order; nothing may be put meanwhile. */
  range(from: Key, to: Key, reverse: boolean): Iterable<Change>
  clear(): void
  /** All that was put down, in order: how many changes, how many bytes. */
  count(): number
  bytes(): number
  /** Copies them into another room, from `at` on. */
  copyTo(room: Buffer, at: Place): void
  /** Tells a table of that room that they stand there from `at` on. */
  tell(places: PlaceTable, room: Buffer, at: Place): void
}

const first_room_bytes = 64 * 1024
/** What a sheet keeps for its next round. */
const kept_room_bytes = 4 * 1024 * 1024
/** Not 0, which is no place. */
const first_place = 1

export function newSheet(): Sheet {
  let room = newRoom(first_room_bytes)
  /** Hash and place of each change. */
  let notes = new Int32Array(2 * 256)
  let count = 0
  let end = first_place
  let marked = { count, end }
  const places = newPlaceTable()
  let shelves = emptyShelves()
  /** How many changes are on the shelves. */
  let shelved = 0

  function emptyShelves() {
    return newShelves((place: Place) => keyAt(room, place))
  }

  function demand(bytes: number): void {
    if (end + bytes > room.length) {
      const larger = newRoom(Math.max(2 * room.length, end + bytes))
      room.copy(larger, 0, 0, end)
      room = larger
    }
    if (2 * count === notes.length) {
      const larger = new Int32Array(2 * notes.length)
      larger.set(notes)
      notes = larger
    }
  }

  const hashAt = (n: number): number => notes[2 * n] as number
  const placeAt = (n: number): Place => notes[2 * n + 1] as Place
  const isLast = (n: number): boolean => places.lastOf(room, placeAt(n), hashAt(n)) === placeAt(n)

  function* keys(): Generator<Key> {
    for (let n = 0; n < count; n++) if (isLast(n)) yield keyAt(room, placeAt(n))
  }

  function* changes(): Generator<[Key, Buffer | null]> {
    for (let n = 0; n < count; n++) {
      if (isLast(n)) yield [keyAt(room, placeAt(n)), valueAt(room, placeAt(n))]
    }
  }

  return {
    get size() {
      return places.size()
    },
    keys,
    [Symbol.iterator]: changes,
    get(key) {
      if (count === 0) return undefined
      const place = places.get(room, key, hashOf(key))
      return place === 0 ? undefined : valueAt(room, place)
    },
    put(key, value) {
      const bytes = changeBytes(key, value)
      demand(bytes)
      putChange(room, end, key, value)
      const hash = hashOf(key)
      places.set(room, end, hash)
      notes[2 * count] = hash
      notes[2 * count + 1] = end
      count++
      end += bytes
    },
    mark() {
      marked = { count, end }
    },
    undo() {
      count = marked.count
      end = marked.end
      places.clear()
      for (let n = 0; n < count; n++) places.set(room, placeAt(n), hashAt(n))
      shelves = emptyShelves()
      shelved = 0
    },
    *range(from, to, reverse) {
      for (; shelved < count; shelved++) {
        shelves.add(firstByteAt(room, placeAt(shelved)), placeAt(shelved))
      }
      for (const key of shelves.keys(from, to, reverse)) {
        yield { key, value: valueAt(room, places.get(room, key, hashOf(key))) }
      }
    },
    clear() {
      if (room.length > kept_room_bytes) room = newRoom(first_room_bytes)
      count = 0
      end = first_place
      places.clear()
      if (shelved > 0) shelves = emptyShelves()
      shelved = 0
    },
    count: () => count,
    bytes: () => end - first_place,
    copyTo: (other, at) => void room.copy(other, at, first_place, end),
    tell(table, other, at) {
      for (let n = 0; n < count; n++) table.set(other, at + placeAt(n) - first_place, hashAt(n))
    },
  }
}

/** The changes as a sheet: themselves where they are one. */
export function sheetOf(writes: Writes): Sheet {
  if (isSheet(writes)) return writes
  const sheet = newSheet()
  for (const [key, value] of writes) sheet.put(key, value)
  return sheet
}

function isSheet(writes: Writes): writes is Sheet {
  return 'copyTo' in writes
}

function newRoom(bytes: number): Buffer {
  return Buffer.allocUnsafeSlow(bytes)
}
