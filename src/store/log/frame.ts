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
const first_room_bytes = 64 * 1024
/** More room than this is let go after the frame that needed it. */
const kept_room_bytes = 4 * 1024 * 1024

type Room = Buffer & KeyBytes
const newRoom = (bytes: number): Room => Buffer.alloc(bytes) as Buffer as Room

/** Makes the frames of one log; each is good until the next is asked for. */
export function newFrameWriter(id: Buffer): (seq: number, writes: Writes) => Buffer {
  let room = newRoom(first_room_bytes)

  function grow(bytes: number): void {
    const larger = newRoom(Math.max(bytes, 2 * room.length))
    larger.set(room)
    room = larger
  }

  return (seq, writes) => {
    if (room.length > kept_room_bytes) room = newRoom(first_room_bytes)
    let at = head_bytes
    for (const [key, value] of writes) {
      const value_bytes = value === null ? 0 : value.length
      const end = at + change_head_bytes + key.length + value_bytes
      if (end + step_bytes > room.length) grow(end + step_bytes)
      room[at] = key.length >>> 8
      room[at + 1] = key.length
      const told = value === null ? deleted : value_bytes
      room[at + 2] = told >>> 24
      room[at + 3] = told >>> 16
      room[at + 4] = told >>> 8
      room[at + 5] = told
      room.latin1Write(key, at + change_head_bytes)
      if (value !== null) room.set(value, end - value_bytes)
      at = end
    }
    const bytes = Math.ceil(at / step_bytes) * step_bytes
    room.fill(0, at, bytes)
    room.writeUInt32BE(magic, 0)
    room.writeUInt32BE(bytes, 8)
    room.writeUInt32BE(writes.size, 12)
    room.writeBigUInt64BE(BigInt(seq), 16)
    room.set(id, 24)
    room.writeUInt32BE(crc32(room.subarray(8, bytes)), 4)
    return room.subarray(0, bytes)
  }
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
    const key: Key = (bytes as Room).latin1Slice(key_at, value_at)
    yield { key, value: told === deleted ? null : bytes.subarray(value_at, at) }
  }
}
