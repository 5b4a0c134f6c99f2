/**
 * The frames of a segment in memory, byte for byte, and where in them the last change of each key
 * stands.
 *
 * So what was committed is no heap of objects that live until it is merged: keys and values are
 * bytes in one room, which is used again in the segment's next round. A value that is read is a
 * part of that room, and good until the reading function returns, as the port says.
 */
import type { Key } from '../../codec/keys.ts'
import { type Sheet, sheetOf } from '../change-buffer.ts'
import type { Offset } from '../change-encoding.ts'
import { keyAt } from '../change-encoding.ts'
import { newChangeIndex } from '../change-index.ts'
import { hashOf } from '../key-hash.ts'
import type { Change, Writes } from '../store.ts'
import { blockRoom, endOfBlock } from './blocks.ts'
import { changesAt, type Frame, frameBytes, placesIn, sealFrame } from './frame.ts'

export interface Image {
  /** The bytes of all frames; the place of the next. */
  bytes(): number
  /** How many keys have a change. */
  changes(): number
  /** Makes the frame behind the others, and answers it. Not seen by reads before `keep`. */
  add(id: Buffer, seq: number, writes: Writes): Buffer
  /** All frames at the places where the file has them, zeros up to the end of their last block. */
  room(): Buffer
  /** The frame just added is on disk: reads see it. Its writes are still what they were. */
  keep(): void
  /** Takes over, empty as it is, the frames of a segment that was left: one behind the other. */
  takeOver(segment: Buffer, frames: readonly Frame[]): void
  get(key: Key): Buffer | null | undefined
  range(from: Key, to: Key, reverse: boolean): Iterable<Change>
  clear(): void
}

/** Costs no memory before it is written. */
export const room_bytes = 64 * 1024 * 1024

/** With a room for so many bytes; where it has to grow a garbage collector takes notice. */
export function newImage(first_bytes = 0): Image {
  let room: Buffer = first_bytes === 0 ? Buffer.alloc(0) : blockRoom(first_bytes)
  const index = newChangeIndex(() => room)
  let at = 0
  /** A range was told of the changes in the frames before this place. */
  let seen_to = 0
  let added: { readonly sheet: Sheet; readonly bytes: number } | undefined

  function grow(bytes: number): void {
    const larger = blockRoom(Math.max(room_bytes, 2 * room.length, bytes))
    room.copy(larger, 0, 0, at)
    room = larger
  }

  function* unseen(): Generator<Offset> {
    yield* placesIn(room, seen_to, at)
    seen_to = at
  }

  return {
    bytes: () => at,
    changes: index.size,
    add(id, seq, writes) {
      const sheet = sheetOf(writes)
      const change_bytes = sheet.bytes()
      const bytes = frameBytes(change_bytes)
      const end = endOfBlock(at + bytes)
      if (end > room.length) grow(end)
      sheet.copyTo(room, changesAt(at))
      room.fill(0, at + bytes, end)
      added = { sheet, bytes }
      return sealFrame(room, at, { id, seq, count: sheet.count(), change_bytes })
    },
    room: () => room,
    keep() {
      if (added === undefined) return
      added.sheet.tell(index, changesAt(at))
      at += added.bytes
      added = undefined
    },
    takeOver(segment, frames) {
      const [first] = frames
      const last = frames.at(-1)
      if (first === undefined || last === undefined) return
      const end = last.at + last.bytes.length
      if (endOfBlock(end) > room.length) grow(endOfBlock(end))
      room.set(segment.subarray(0, end))
      at = end
      seen_to = first.at
      for (const place of placesIn(room, first.at, at)) index.set(place, hashOf(keyAt(room, place)))
    },
    get: index.get,
    range: (from, to, reverse) => index.range(unseen(), from, to, reverse),
    clear() {
      if (room.length > room_bytes) room = Buffer.alloc(0)
      index.clear()
      at = 0
      seen_to = 0
    },
  }
}
