/**
 * A frame: the changes of one commit as the log has them, byte for byte. Pure.
 *
 *     0  "CVLF" (4)
 *     4  crc32 of the rest of the frame (4)
 *     8  bytes of the frame, padding included (4)
 *    12  number of changes (4)
 *    16  sequence: one more than that of the frame before (8)
 *    24  id of the log (8)
 *    32  changes (store/change-encoding), of one key the last counts; zeros up to a multiple of 64
 *
 * Numbers are big-endian. Every frame begins at a multiple of 64 of its segment, so that one behind
 * damaged bytes is found; the id is random and never leaves the file, so no data of a caller can
 * look like one. Readers of later versions must go on reading this one.
 */
import { crc32 } from 'node:zlib'
import { nextOffset, type Offset } from '../change-encoding.ts'

export interface Frame {
  /** Of its log. */
  readonly id: Buffer
  readonly seq: number
  readonly count: number
  /** All of it, checked. */
  readonly bytes: Buffer
  /** Where it stands. */
  readonly segment: Buffer
  readonly at: number
}

export const log_id_bytes = 8
const step_bytes = 64
const head_bytes = 32
const magic = 0x43564c46

export interface FrameParts {
  readonly id: Buffer
  readonly seq: number
  readonly count: number
  readonly change_bytes: number
}

/** The bytes of a frame with so many bytes of changes. */
export function frameBytes(change_bytes: number): number {
  return Math.ceil((head_bytes + change_bytes) / step_bytes) * step_bytes
}

/** Where the changes of a frame at `at` begin. */
export function changesAt(at: number): Offset {
  return at + head_bytes
}

/** Makes a frame of the changes that stand at its place in `room`, and answers its bytes. */
export function sealFrame(
  room: Buffer,
  at: number,
  { id, seq, count, change_bytes }: FrameParts,
): Buffer {
  const frame = room.subarray(at, at + frameBytes(change_bytes))
  frame.fill(0, head_bytes + change_bytes)
  frame.writeUInt32BE(magic, 0)
  frame.writeUInt32BE(frame.length, 8)
  frame.writeUInt32BE(count, 12)
  frame.writeBigUInt64BE(BigInt(seq), 16)
  frame.set(id, 24)
  frame.writeUInt32BE(crc32(frame.subarray(8)), 4)
  return frame
}

/** The places of all changes in the whole frames from `from` up to `to`. */
export function* placesIn(room: Buffer, from: number, to: number): Generator<Offset> {
  for (let at = from; at < to; at += room.readUInt32BE(at + 8)) {
    let place = changesAt(at)
    for (let left = room.readUInt32BE(at + 12); left > 0; left--) {
      yield place
      place = nextOffset(room, place)
    }
  }
}

/** Every whole frame in the bytes of a segment, of whatever log, in the order they stand there. */
export function* framesIn(segment: Buffer): Generator<Frame> {
  let at = 0
  while (at + head_bytes <= segment.length) {
    const bytes = wholeFrame(segment, at)
    if (bytes === undefined) at += step_bytes
    else {
      const seq = Number(bytes.readBigUInt64BE(16))
      const count = bytes.readUInt32BE(12)
      yield { seq, count, bytes, segment, at, id: bytes.subarray(24, 24 + log_id_bytes) }
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

/** Notes where the changes of a checked frame stand in its segment, from the `from`th note on. */
export function notePlaces({ segment, at, count }: Frame, notes: Uint32Array, from: number): void {
  let place = changesAt(at)
  for (let n = 0; n < count; n++) {
    notes[from + n] = place
    place = nextOffset(segment, place)
  }
}
