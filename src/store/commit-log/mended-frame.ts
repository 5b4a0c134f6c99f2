/**
 * A frame of which one bit was flipped after it was written, put right. Pure.
 *
 * At the end of a commit log such a frame looks like one that a power cut has torn, and would be
 * taken for a commit that nobody was told of. So a place where a frame must or may be is looked at
 * more closely. The flipped bit is the one for which everything fits again: the mark, the id of the
 * commit log and the number that is next, the checksum, and changes that fill the frame. A torn
 * frame, which lacks whole sectors, passes all of it by no chance worth a count.
 *
 * Of bits under a checksum each has a difference of its own, which depends on how many bytes follow
 * alone: so one pass from the end finds the bit whose difference is the one between the checksum
 * that is stored and that of the bytes as they are.
 */
import { crc32 } from 'node:zlib'
import { keyBytesAt, keyStart, nextOffset } from '../change-encoding.ts'
import { changesAt, type Frame, frameBytes, framesIn } from './frame.ts'

/** From the beginning of a frame (commit-log/frame). */
const at_crc = 4
const at_summed = 8
const at_length = 8
const at_seq = 16
const at_id = 24
const head_bytes = 32
const mark = Buffer.from('CVLF')
const polynomial = 0xedb88320

/** Frame `seq` of this commit log at this place of a segment, in the segment itself. */
export function mendedFrame(
  segment: Buffer,
  at: number,
  id: Buffer,
  seq: number,
): Frame | undefined {
  if (at + head_bytes > segment.length) return undefined
  const bit = flippedBit(segment, at, id, seq)
  if (bit === undefined) return undefined
  flip(segment, at, bit)
  const [frame] = framesIn(segment.subarray(at))
  if (frame !== undefined && frame.at === 0 && isWhole(segment, { ...frame, segment, at })) {
    return { ...frame, segment, at }
  }
  flip(segment, at, bit)
  return undefined
}

function flip(segment: Buffer, at: number, bit: number): void {
  const byte = at + (bit >> 3)
  segment[byte] = (segment[byte] as number) ^ (1 << (bit & 7))
}

/** From the beginning of the frame. */
function flippedBit(segment: Buffer, at: number, id: Buffer, seq: number): number | undefined {
  const head = Buffer.from(segment.subarray(at, at + head_bytes))
  const wanted = Buffer.from(head)
  mark.copy(wanted)
  wanted.writeBigUInt64BE(BigInt(seq), at_seq)
  id.copy(wanted, at_id)
  const wrong = bitsBetween(head, wanted)
  if (wrong.length > 1) return undefined
  if (wrong.length === 1) return wrong[0]
  const bytes = lengthAt(segment, at)
  if (bytes !== undefined) {
    const frame = segment.subarray(at, at + bytes)
    const found = frame.readUInt32BE(at_crc) ^ crc32(frame.subarray(at_summed))
    // One bit of the checksum itself, or of what it covers.
    const [bit, more] = bitsOf(found >>> 0)
    if (bit !== undefined && more === undefined)
      return 8 * at_crc + (3 - (bit >> 3)) * 8 + (bit & 7)
    const covered = coveredBit(frame.length - at_summed, found >>> 0)
    if (covered !== undefined) return 8 * at_summed + covered
  }
  for (let bit = 8 * at_length; bit < 8 * (at_length + 4); bit++) {
    flip(segment, at, bit)
    const [other] = lengthAt(segment, at) === undefined ? [] : framesIn(segment.subarray(at))
    flip(segment, at, bit)
    if (other?.at === 0) return bit
  }
  return undefined
}

function lengthAt(segment: Buffer, at: number): number | undefined {
  const bytes = segment.readUInt32BE(at + at_length)
  const is_length = bytes === frameBytes(bytes - head_bytes) && at + bytes <= segment.length
  return is_length && bytes >= head_bytes ? bytes : undefined
}

function bitsBetween(one: Buffer, other: Buffer): number[] {
  return [...one].flatMap((byte, at) =>
    bitsOf(byte ^ (other[at] as number)).map((bit) => 8 * at + bit),
  )
}

function bitsOf(value: number): number[] {
  return Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => (value >>> bit) & 1)
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1
  return crc
})

/** The bit of so many bytes whose flip makes this difference of their checksums. */
function coveredBit(bytes: number, difference: number): number | undefined {
  const flips = Array.from({ length: 8 }, (_, bit) => table[1 << bit] as number)
  for (let byte = bytes - 1; byte >= 0; byte--) {
    for (let bit = 0; bit < 8; bit++) {
      const crc = flips[bit] as number
      if (crc === difference) return 8 * byte + bit
      flips[bit] = ((crc >>> 8) ^ (table[crc & 255] as number)) >>> 0
    }
  }
  return undefined
}

/** Whether its changes fill it up to its padding. */
function isWhole(segment: Buffer, frame: Frame): boolean {
  const end = frame.at + frame.bytes.length
  let offset = changesAt(frame.at)
  for (let left = frame.count; left > 0; left--) {
    if (keyStart(offset) > end || keyBytesAt(segment, offset) === 0) return false
    offset = nextOffset(segment, offset)
    if (offset > end) return false
  }
  return frameBytes(offset - changesAt(frame.at)) === frame.bytes.length
}
