/**
 * The encoding of one change, in memory and in the commit log. Pure. Integers are big-endian:
 *
 *     0  bytes of the key (2)
 *     2  bytes of the value, ffffffff for a delete (4)
 *     6  key, then value
 *
 * An arena is a buffer with many changes; an offset is a change's first byte in its arena.
 */
import type { Key } from '../../codec/keys.ts'

export type Offset = number

/** Keys are byte strings, as Latin-1. Node's buffers have these methods, its types lack them. */
export interface KeyBytes {
  latin1Write(key: string, at: number): number
  latin1Slice(from: number, to: number): string
}

const header_bytes = 6
const deleted = 0xffffffff

export function encodedBytes(key: Key, value: Buffer | null): number {
  return header_bytes + key.length + (value === null ? 0 : value.length)
}

/**
 * Writes the change at `offset`; the arena must have room. The key is written char by char, because
 * keys are short and a call of `latin1Write` takes longer.
 */
export function encodeChange(arena: Buffer, offset: Offset, key: Key, value: Buffer | null): void {
  const value_field = value === null ? deleted : value.length
  arena[offset] = key.length >>> 8
  arena[offset + 1] = key.length
  arena[offset + 2] = value_field >>> 24
  arena[offset + 3] = value_field >>> 16
  arena[offset + 4] = value_field >>> 8
  arena[offset + 5] = value_field
  const key_at = offset + header_bytes
  for (let at = 0; at < key.length; at++) arena[key_at + at] = key.charCodeAt(at)
  if (value !== null && value.length > 0) arena.set(value, offset + header_bytes + key.length)
}

export function nextOffset(arena: Buffer, offset: Offset): Offset {
  const value_bytes = Math.max(0, valueBytesAt(arena, offset))
  return keyStart(offset) + keyBytesAt(arena, offset) + value_bytes
}

/** The value follows the key. */
export function keyStart(offset: Offset): number {
  return offset + header_bytes
}

export function keyBytesAt(arena: Buffer, offset: Offset): number {
  return ((arena[offset] as number) << 8) | (arena[offset + 1] as number)
}

/** -1 for a delete. */
export function valueBytesAt(arena: Buffer, offset: Offset): number {
  const value_field = arena.readUInt32BE(offset + 2)
  return value_field === deleted ? -1 : value_field
}

export function keyAt(arena: Buffer, offset: Offset): Key {
  const from = keyStart(offset)
  return (arena as Buffer & KeyBytes).latin1Slice(from, from + keyBytesAt(arena, offset))
}

/** A slice of the arena; `null` for a delete. */
export function valueAt(arena: Buffer, offset: Offset): Buffer | null {
  const value_bytes = valueBytesAt(arena, offset)
  if (value_bytes === -1) return null
  const from = keyStart(offset) + keyBytesAt(arena, offset)
  return arena.subarray(from, from + value_bytes)
}

/** Keys are never empty. */
export function firstByteAt(arena: Buffer, offset: Offset): number {
  return arena[keyStart(offset)] as number
}

export function hasKeyAt(arena: Buffer, offset: Offset, key: Key): boolean {
  if (keyBytesAt(arena, offset) !== key.length) return false
  const from = keyStart(offset)
  for (let at = key.length - 1; at >= 0; at--) {
    if (arena[from + at] !== key.charCodeAt(at)) return false
  }
  return true
}

export function haveSameKey(arena: Buffer, offset: Offset, other: Offset): boolean {
  const bytes = keyBytesAt(arena, offset)
  if (keyBytesAt(arena, other) !== bytes) return false
  for (let at = header_bytes + bytes - 1; at >= header_bytes; at--) {
    if (arena[offset + at] !== arena[other + at]) return false
  }
  return true
}
