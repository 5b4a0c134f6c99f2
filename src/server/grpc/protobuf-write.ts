/**
 * The bytes of protobuf, written: fields into room that is there already, of the lengths that the
 * functions beside them tell. What has no presence of its own and is empty is left out by whoever
 * writes it.
 */

/** Where the next byte goes. */
export interface WriteCursor {
  readonly room: Buffer
  at: number
}

/** Longer texts are faster in the hands of node; nearly all of ours are names. */
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

/** A field of so many bytes, with its tag and its length. */
export function sizedBytes(bytes: number): number {
  return 1 + numberBytes(bytes) + bytes
}

/** A number as a field has it; from 0 to 2^64 - 1. */
export function writeNumber(to: WriteCursor, value: number | bigint): void {
  let left = value
  if (typeof left === 'bigint') {
    for (; left >= 0x80n; left >>= 7n) to.room[to.at++] = Number(left & 0x7fn) | 0x80
  } else {
    for (; left >= 0x80; left = Math.floor(left / 0x80)) to.room[to.at++] = (left % 0x80) | 0x80
  }
  to.room[to.at++] = Number(left)
}

/** The head of a field whose value of so many bytes comes next. */
export function writeFieldHead(to: WriteCursor, tag: number, bytes: number): void {
  to.room[to.at++] = tag
  writeNumber(to, bytes)
}

export function writeText(to: WriteCursor, tag: number, text: string): void {
  const bytes = textBytes(text)
  writeFieldHead(to, tag, bytes)
  const { room, at } = to
  if (bytes !== text.length || bytes > short_max) room.write(text, at)
  else for (let n = 0; n < bytes; n++) room[at + n] = text.charCodeAt(n)
  to.at = at + bytes
}
