/**
 * A frame: the changes of one commit as the log has them, byte for byte. Pure.
 *
 *     0  "CVLF" (4)
 *     4  crc32 of the rest of the frame (4)
 *     8  bytes of the frame, padding included (4)
 *    12  number of changes (4)
 *    16  sequence: one more than that of the frame before (8)
 *    24  id of the log (8)
 *    32  changes: bytes of the key (2), of the value or ffffffff where deleted (4), key, value
 *        zeros up to a multiple of 64
 *
 * Numbers are big-endian. Every frame begins at a multiple of 64 of its segment, so that one behind
 * damaged bytes is found; the id is random and never leaves the file, so no data of a caller can
 * look like one. Readers of later versions must go on reading this one.
 */
import { crc32 } from 'node:zlib'
import type { Key } from '../../bytes/keys.ts'
import type { KeyBytes } from '../key-bytes.ts'
import type { Change, Writes } from '../store.ts'

export interface Frame {
  readonly seq: number
  readonly count: number
  /** All of it, checked. */
  readonly bytes: Buffer
}

export const log_id_bytes = 8
const step_bytes = 64
const head_bytes = 32
const magic = 0x43564c46
const deleted = 0xffffffff
const change_head_bytes = 6

/** Where reads find a change again: the place of its first byte. */
export type Place = number

/** The bytes of the frame that these make. */
export function frameBytes(writes: Writes): number {
  let bytes = head_bytes
  for (const [key, value] of writes) bytes += changeBytes(key, value)
  return Math.ceil(bytes / step_bytes) * step_bytes
}

/** The place of the first change of a frame at `at`; each further is behind the one before. */
export function firstPlace(at: number): Place {
  return at + head_bytes
}

export function changeBytes(key: Key, value: Buffer | null): number {
  return change_head_bytes + key.length + (value === null ? 0 : value.length)
}

/** Puts the frame into `room` from `at` on, where its `frameBytes` have place. */
export function writeFrame(
  room: Buffer,
  at: number,
  { id, seq, bytes }: { readonly id: Buffer; readonly seq: number; readonly bytes: number },
  writes: Writes,
): void {
  const end = at + bytes
  let next = at + head_bytes
  for (const [key, value] of writes) {
    const told = value === null ? deleted : value.length
    room[next] = key.length >>> 8
    room[next + 1] = key.length
    room[next + 2] = told >>> 24
    room[next + 3] = told >>> 16
    room[next + 4] = told >>> 8
    room[next + 5] = told
    next += change_head_bytes
    ;(room as Buffer & KeyBytes).latin1Write(key, next)
    next += key.length
    if (value === null) continue
    room.set(value, next)
    next += value.length
  }
  room.fill(0, next, end)
  room.writeUInt32BE(magic, at)
  room.writeUInt32BE(bytes, at + 8)
  room.writeUInt32BE(writes.size, at + 12)
  room.writeBigUInt64BE(BigInt(seq), at + 16)
  room.set(id, at + 24)
  room.writeUInt32BE(crc32(room.subarray(at + 8, end)), at + 4)
}

export function keyAt(room: Buffer, place: Place): Key {
  const key_at = place + change_head_bytes
  return (room as Buffer & KeyBytes).latin1Slice(key_at, key_at + room.readUInt16BE(place))
}

export function hasKeyAt(room: Buffer, place: Place, key: Key): boolean {
  if ((((room[place] as number) << 8) | (room[place + 1] as number)) !== key.length) return false
  const key_at = place + change_head_bytes
  for (let at = key.length - 1; at >= 0; at--) {
    if (room[key_at + at] !== key.charCodeAt(at)) return false
  }
  return true
}

/** What a change says, read back; the value is a part of `room`. */
export function valueAt(room: Buffer, place: Place): Buffer | null {
  const value_bytes = room.readUInt32BE(place + 2)
  if (value_bytes === deleted) return null
  const value_at = place + change_head_bytes + room.readUInt16BE(place)
  return room.subarray(value_at, value_at + value_bytes)
}

/** Every whole frame in the bytes of a segment, of whatever log, in the order they stand there. */
export function* framesIn(segment: Buffer): Generator<Frame & { readonly id: Buffer }> {
  let at = 0
  while (at + head_bytes <= segment.length) {
    const bytes = wholeFrame(segment, at)
    if (bytes === undefined) at += step_bytes
    else {
      const seq = Number(bytes.readBigUInt64BE(16))
      const count = bytes.readUInt32BE(12)
      yield { seq, count, bytes, id: bytes.subarray(24, 24 + log_id_bytes) }
      at += bytes.length
    }
  }
}

function wholeFrame(segment: Buffer, at: number): Buffer | undefined {
  if (segment.readUInt32BE(at) !== magic) return undefined
  const bytes = segment.readUInt32BE(at + 8)
  if (bytes < head_bytes || bytes % step_bytes !== 0 || at + bytes > segment.length) {
    return undefined
  }
  const frame = segment.subarray(at, at + bytes)
  return crc32(frame.subarray(8)) === frame.readUInt32BE(4) ? frame : undefined
}

/** The changes of a checked frame; values are parts of its bytes. */
export function* changesOf({ bytes, count }: Frame): Generator<Change> {
  let at = head_bytes
  for (let left = count; left > 0; left--) {
    const key_bytes = bytes.readUInt16BE(at)
    const told = bytes.readUInt32BE(at + 2)
    const key_at = at + change_head_bytes
    const value_at = key_at + key_bytes
    at = value_at + (told === deleted ? 0 : told)
    const key: Key = (bytes as Buffer & KeyBytes).latin1Slice(key_at, value_at)
    yield { key, value: told === deleted ? null : bytes.subarray(value_at, at) }
  }
}
