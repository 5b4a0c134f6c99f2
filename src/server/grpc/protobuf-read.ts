/**
 * The bytes of protobuf, read: numbers, texts and nested messages from a place that moves on.
 * Nothing is read past the end of its message; what is not well formed throws.
 */
import { isUtf8 } from 'node:buffer'

/** A place in a message, and where that ends. */
export interface ReadCursor {
  readonly bytes: Buffer
  at: number
  end: number
}

/** How the value of a field is written: the low three bits of its tag. */
const varint = 0
const fixed_64 = 1
const sized = 2
const fixed_32 = 5

/** The tags of fields by their number: of one that is a number, and of one that has a length. */
export const number_field = (number: number): number => (number << 3) | varint
export const sized_field = (number: number): number => (number << 3) | sized

/** From the beginning to the end of a whole message. */
export function cursorOver(bytes: Buffer): ReadCursor {
  return { bytes, at: 0, end: bytes.length }
}

/** A number of at most 32 bits: a tag, a length, a flag. What a longer one has above is dropped. */
export function readNumber(from: ReadCursor): number {
  const first = from.at < from.end ? (from.bytes[from.at] as number) : 0x80
  if (first >= 0x80) return Number(BigInt.asUintN(32, BigInt(readInteger(from))))
  from.at++
  return first
}

/** A number of at most 64 bits, without a sign. */
export function readInteger(from: ReadCursor): number | bigint {
  const began = from.at
  let value = 0
  // So many bytes fit into a double.
  for (let factor = 1; factor < 2 ** 49; factor *= 0x80) {
    const byte = nextByte(from)
    value += (byte & 0x7f) * factor
    if (byte < 0x80) return value
  }
  from.at = began
  return readLongInteger(from)
}

function readLongInteger(from: ReadCursor): bigint {
  let value = 0n
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = nextByte(from)
    value |= BigInt(byte & 0x7f) << shift
    if (byte < 0x80) return BigInt.asUintN(64, value)
  }
  throw new RangeError('a number of more than ten bytes')
}

export function readText(from: ReadCursor): string {
  const end = endOfSized(from)
  const text = from.bytes.toString('utf8', from.at, end)
  if (text.includes('\ufffd') && !isUtf8(from.bytes.subarray(from.at, end))) {
    throw new RangeError('a text that is not UTF-8')
  }
  from.at = end
  return text
}

/** The bytes themselves, not a copy. */
export function readBytes(from: ReadCursor): Buffer {
  const end = endOfSized(from)
  const bytes = from.bytes.subarray(from.at, end)
  from.at = end
  return bytes
}

/** A nested message, which `read` takes to the end it finds set. */
export function readNested<T>(from: ReadCursor, read: (from: ReadCursor) => T): T {
  const outer_end = from.end
  from.end = endOfSized(from)
  const value = read(from)
  from.end = outer_end
  return value
}

/** Goes over the value of a field that is not known. */
export function skipField(from: ReadCursor, tag: number): void {
  const kind = tag & 7
  if (kind === varint) readInteger(from)
  else if (kind === sized) from.at = endOfSized(from)
  else if (kind === fixed_64) goOn(from, 8)
  else if (kind === fixed_32) goOn(from, 4)
  else throw new RangeError(`a field of kind ${kind}`)
}

function endOfSized(from: ReadCursor): number {
  const length = readNumber(from)
  const end = from.at + length
  if (end > from.end) throw cutShort()
  return end
}

function goOn(from: ReadCursor, bytes: number): void {
  from.at += bytes
  if (from.at > from.end) throw cutShort()
}

function nextByte(from: ReadCursor): number {
  if (from.at >= from.end) throw cutShort()
  return from.bytes[from.at++] as number
}

function cutShort(): RangeError {
  return new RangeError('the message ends too early')
}
