/**
 * The protobuf wire format: reads and writes numbers, texts and nested messages at a cursor.
 * Reading never passes the end of the message; malformed bytes throw. Writing fills a buffer whose
 * size the caller has computed with the functions `…Bytes`.
 */
import { isUtf8 } from 'node:buffer'

/** A position in a message, and the end of the message. */
export interface ReadCursor {
  readonly bytes: Buffer
  at: number
  end: number
}

/** The position of the next byte in a buffer of the final size. */
export interface WriteCursor {
  readonly buffer: Buffer
  at: number
}

/** Wire types: the low three bits of a tag. */
const varint = 0
const fixed_64 = 1
const sized = 2
const fixed_32 = 5

/** The tag of a varint field, and of a length-delimited field. */
export const number_field = (number: number): number => (number << 3) | varint
export const sized_field = (number: number): number => (number << 3) | sized

export function readCursor(bytes: Buffer): ReadCursor {
  return { bytes, at: 0, end: bytes.length }
}

/** A varint of at most 32 bits (a tag, a length, a flag); higher bits are dropped. */
export function readNumber(from: ReadCursor): number {
  const first = from.at < from.end ? (from.bytes[from.at] as number) : 0x80
  if (first >= 0x80) return Number(BigInt.asUintN(32, BigInt(readInteger(from))))
  from.at++
  return first
}

/** An unsigned varint of at most 64 bits; a bigint where a double might round it. */
export function readInteger(from: ReadCursor): number | bigint {
  const began = from.at
  let value = 0
  // Seven bytes of seven bits fit into a double.
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

/** A view of the message's bytes, not a copy. */
export function readBytes(from: ReadCursor): Buffer {
  const end = endOfSized(from)
  const bytes = from.bytes.subarray(from.at, end)
  from.at = end
  return bytes
}

/** A nested message; `read` reads up to `from.end`, which is set to its end. */
export function readNested<T>(from: ReadCursor, read: (from: ReadCursor) => T): T {
  const outer_end = from.end
  from.end = endOfSized(from)
  const value = read(from)
  from.end = outer_end
  return value
}

/** Skips the value of an unknown field. */
export function skipField(from: ReadCursor, tag: number): void {
  const kind = tag & 7
  if (kind === varint) readInteger(from)
  else if (kind === sized) from.at = endOfSized(from)
  else if (kind === fixed_64) skipBytes(from, 8)
  else if (kind === fixed_32) skipBytes(from, 4)
  else throw new RangeError(`a field of kind ${kind}`)
}

function endOfSized(from: ReadCursor): number {
  const length = readNumber(from)
  const end = from.at + length
  if (end > from.end) throw endsTooEarly()
  return end
}

function skipBytes(from: ReadCursor, bytes: number): void {
  from.at += bytes
  if (from.at > from.end) throw endsTooEarly()
}

function nextByte(from: ReadCursor): number {
  if (from.at >= from.end) throw endsTooEarly()
  return from.bytes[from.at++] as number
}

function endsTooEarly(): RangeError {
  return new RangeError('the message ends too early')
}

/** Node encodes longer texts faster than a loop; nearly all of ours are short names. */
const short_max = 48

/** The bytes of a text in UTF-8. */
export function textBytes(text: string): number {
  if (text.length > short_max) return Buffer.byteLength(text)
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) >= 0x80) return Buffer.byteLength(text)
  }
  return text.length
}

export function numberBytes(value: number | bigint): number {
  if (typeof value === 'bigint') return Math.ceil(value.toString(2).length / 7)
  let bytes = 1
  for (let left = value; left >= 0x80; left /= 0x80) bytes++
  return bytes
}

/** The bytes of a length-delimited field with a value of `bytes`: tag, length and value. */
export function sizedBytes(bytes: number): number {
  return 1 + numberBytes(bytes) + bytes
}

/** A varint from 0 to 2^64 - 1. */
export function writeNumber(to: WriteCursor, value: number | bigint): void {
  let left = value
  if (typeof left === 'bigint') {
    for (; left >= 0x80n; left >>= 7n) to.buffer[to.at++] = Number(left & 0x7fn) | 0x80
  } else {
    for (; left >= 0x80; left = Math.floor(left / 0x80)) to.buffer[to.at++] = (left % 0x80) | 0x80
  }
  to.buffer[to.at++] = Number(left)
}

/** The tag and length of a field; its value of `bytes` comes next. */
export function writeFieldHead(to: WriteCursor, tag: number, bytes: number): void {
  to.buffer[to.at++] = tag
  writeNumber(to, bytes)
}

export function writeText(to: WriteCursor, tag: number, text: string): void {
  const bytes = textBytes(text)
  writeFieldHead(to, tag, bytes)
  const { buffer, at } = to
  if (bytes !== text.length || bytes > short_max) buffer.write(text, at)
  else for (let n = 0; n < bytes; n++) buffer[at + n] = text.charCodeAt(n)
  to.at = at + bytes
}
