/**
 * A frame: the changes of one commit in the commit log. Pure. Integers are big-endian.
 *
 *     0  "CVLF" (4)
 *     4  crc32 of the rest of the frame (4)
 *     8  bytes of the frame, padding included (4)
 *    12  number of changes (4)
 *    16  sequence number: one more than that of the frame before (8)
 *    24  id of the commit log (8)
 *    32  changes (changes/change-encoding; the last of a key wins), zeros up to a multiple of 64
 *
 * A frame begins at a multiple of 64 bytes of its segment, so a scan finds the frames after damaged
 * bytes. The id is random and secret, so that no caller's data can pass for a frame.
 */
import { crc32 } from 'node:zlib'
import { nextOffset, type Offset } from '../changes/change-encoding.ts'

export interface Frame {
  readonly id: Buffer
  readonly seq: number
  readonly count: number
  readonly crc: number
  /** Whole, with a valid checksum. */
  readonly bytes: Buffer
  readonly segment: Buffer
  readonly at: number
}

export const commit_log_id_bytes = 8
const frame_unit_bytes = 64
const header_bytes = 32
const magic = 0x43564c46

export interface FrameParts {
  readonly id: Buffer
  readonly seq: number
  readonly count: number
  readonly change_bytes: number
}

export function frameBytes(change_bytes: number): number {
  return Math.ceil((header_bytes + change_bytes) / frame_unit_bytes) * frame_unit_bytes
}

export function changesAt(at: number): Offset {
  return at + header_bytes
}

export function frameCrc(arena: Buffer, at: number): number {
  return arena.readUInt32BE(at + 4)
}

/** Adds header, padding and checksum to changes in the arena; returns the frame. */
export function sealFrame(
  arena: Buffer,
  at: number,
  { id, seq, count, change_bytes }: FrameParts,
): Buffer {
  const frame = arena.subarray(at, at + frameBytes(change_bytes))
  frame.fill(0, header_bytes + change_bytes)
  frame.writeUInt32BE(magic, 0)
  frame.writeUInt32BE(frame.length, 8)
  frame.writeUInt32BE(count, 12)
  frame.writeBigUInt64BE(BigInt(seq), 16)
  frame.set(id, 24)
  frame.writeUInt32BE(crc32(frame.subarray(8)), 4)
  return frame
}

/** Every frame with a valid checksum, of any commit log, by position. */
export function* framesIn(segment: Buffer): Generator<Frame> {
  let at = 0
  while (at + header_bytes <= segment.length) {
    const bytes = validFrame(segment, at)
    if (bytes === undefined) at += frame_unit_bytes
    else {
      const seq = Number(bytes.readBigUInt64BE(16))
      const count = bytes.readUInt32BE(12)
      const crc = bytes.readUInt32BE(4)
      yield {
        seq,
        count,
        crc,
        bytes,
        segment,
        at,
        id: bytes.subarray(24, 24 + commit_log_id_bytes),
      }
      at += bytes.length
    }
  }
}

function validFrame(segment: Buffer, at: number): Buffer | undefined {
  if (segment.readUInt32BE(at) !== magic) return undefined
  const bytes = segment.readUInt32BE(at + 8)
  if (bytes < header_bytes || bytes % frame_unit_bytes !== 0 || at + bytes > segment.length) {
    return undefined
  }
  const frame = segment.subarray(at, at + bytes)
  return crc32(frame.subarray(8)) === frame.readUInt32BE(4) ? frame : undefined
}

/** The offsets of all changes of the frames in their segment, in order. */
export function changeOffsets(frames: Iterable<Frame>): Uint32Array {
  let offsets = new Uint32Array(1 << 12)
  let count = 0
  for (const frame of frames) {
    if (count + frame.count > offsets.length) {
      const larger = new Uint32Array(Math.max(2 * offsets.length, count + frame.count))
      larger.set(offsets)
      offsets = larger
    }
    let offset = changesAt(frame.at)
    for (let left = frame.count; left > 0; left--) {
      offsets[count++] = offset
      offset = nextOffset(frame.segment, offset)
    }
  }
  return offsets.subarray(0, count)
}
