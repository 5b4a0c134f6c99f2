/**
 * Changes that lie over a tree until they are committed: written down one after the other, as the
 * bytes that a log takes, with an index of where each key's last one stands.
 *
 * So a change is put down once, and no object of it lives on. A key that is put again stands there
 * twice, and only the last counts. Values that come out are parts of the room, good until the
 * reading function returns; those of a walk over all changes, until the sheet is changed.
 */
import type { Key } from '../codec/keys.ts'
import { encodeChange, encodedBytes, keyAt, type Offset, valueAt } from './change-encoding.ts'
import { type ChangeIndex, newChangeIndex } from './change-index.ts'
import { hashOf } from './key-hash.ts'
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
  copyTo(room: Buffer, at: Offset): void
  /** Tells the index of that room that they stand there from `at` on. */
  tell(index: ChangeIndex, at: Offset): void
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
  const index = newChangeIndex(() => room)
  /** A range was told of so many changes. */
  let seen = 0

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
  const placeAt = (n: number): Offset => notes[2 * n + 1] as Offset
  const isLast = (n: number): boolean => index.isLast(placeAt(n), hashAt(n))

  function* unseen(): Generator<Offset> {
    for (; seen < count; seen++) yield placeAt(seen)
  }

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
      return index.size()
    },
    keys,
    [Symbol.iterator]: changes,
    get: index.get,
    put(key, value) {
      const bytes = encodedBytes(key, value)
      demand(bytes)
      encodeChange(room, end, key, value)
      const hash = hashOf(key)
      index.set(end, hash)
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
      index.clear()
      for (let n = 0; n < count; n++) index.set(placeAt(n), hashAt(n))
      seen = 0
    },
    range: (from, to, reverse) => index.range(unseen(), from, to, reverse),
    clear() {
      if (room.length > kept_room_bytes) room = newRoom(first_room_bytes)
      count = 0
      end = first_place
      index.clear()
      seen = 0
    },
    count: () => count,
    bytes: () => end - first_place,
    copyTo: (other, at) => void room.copy(other, at, first_place, end),
    tell(other, at) {
      for (let n = 0; n < count; n++) other.set(at + placeAt(n) - first_place, hashAt(n))
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
