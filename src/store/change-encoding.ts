/**
 * One change as bytes, in memory and in the log: bytes of the key (2), of the value or ffffffff
 * where it is deleted (4), key, value. Numbers are big-endian. Pure.
 */
import type { Key } from '../codec/keys.ts'
import type { KeyBytes } from './key-bytes.ts'

/** Where in a room of changes one stands: the place of its first byte. */
export type Offset = number

const head_bytes = 6
const deleted = 0xffffffff

export function encodedBytes(key: Key, value: Buffer | null): number {
  return head_bytes + key.length + (value === null ? 0 : value.length)
}

/** Into `room` at `place`, where it must fit. */
export function encodeChange(room: Buffer, place: Offset, key: Key, value: Buffer | null): void {
  const told = value === null ? deleted : value.length
  room[place] = key.length >>> 8
  room[place + 1] = key.length
  room[place + 2] = told >>> 24
  room[place + 3] = told >>> 16
  room[place + 4] = told >>> 8
  room[place + 5] = told
  ;(room as Buffer & KeyBytes).latin1Write(key, place + head_bytes)
  if (value !== null && value.length > 0) room.set(value, place + head_bytes + key.length)
}

/** The place behind a change, where the next one may stand. */
export function nextOffset(room: Buffer, place: Offset): Offset {
  const value_bytes = Math.max(0, valueBytesAt(room, place))
  return keyStart(place) + keyBytesAt(room, place) + value_bytes
}

/** Where the key of a change begins; its value begins behind it. */
export function keyStart(place: Offset): number {
  return place + head_bytes
}

export function keyBytesAt(room: Buffer, place: Offset): number {
  return ((room[place] as number) << 8) | (room[place + 1] as number)
}

/** -1 where the key is deleted. */
export function valueBytesAt(room: Buffer, place: Offset): number {
  const told = room.readUInt32BE(place + 2)
  return told === deleted ? -1 : told
}

export function keyAt(room: Buffer, place: Offset): Key {
  const from = keyStart(place)
  return (room as Buffer & KeyBytes).latin1Slice(from, from + keyBytesAt(room, place))
}

/** A part of `room`; `null` where the key is deleted. */
export function valueAt(room: Buffer, place: Offset): Buffer | null {
  const value_bytes = valueBytesAt(room, place)
  if (value_bytes === -1) return null
  const from = keyStart(place) + keyBytesAt(room, place)
  return room.subarray(from, from + value_bytes)
}

/** The first byte of the key; no key is empty. */
export function firstByteAt(room: Buffer, place: Offset): number {
  return room[keyStart(place)] as number
}

export function hasKeyAt(room: Buffer, place: Offset, key: Key): boolean {
  if (keyBytesAt(room, place) !== key.length) return false
  const from = keyStart(place)
  for (let at = key.length - 1; at >= 0; at--) {
    if (room[from + at] !== key.charCodeAt(at)) return false
  }
  return true
}

export function haveSameKey(room: Buffer, place: Offset, other: Offset): boolean {
  const bytes = keyBytesAt(room, place)
  if (keyBytesAt(room, other) !== bytes) return false
  for (let at = head_bytes + bytes - 1; at >= head_bytes; at--) {
    if (room[place + at] !== room[other + at]) return false
  }
  return true
}
