/**
 * Changes by key, in memory: the writes of transactions until their commit, then the memtable of a
 * commit log segment. They are encoded in one arena (change-encoding), without an object per
 * change. A hash index finds the last change of a key; a sorted index is built when a range is
 * first read. Returned values are slices of the arena, valid until the buffer is changed.
 */
import type { Key } from '../../codec/keys.ts'
import {
  encodeChange,
  encodedBytes,
  firstByteAt,
  keyAt,
  type Offset,
  valueAt,
} from './change-encoding.ts'
import { hashOf, newHashIndex } from './hash-index.ts'
import { newSortedIndex } from './sorted-index.ts'

/** A key and its new value, `null` for a delete. */
export interface Change {
  readonly key: Key
  readonly value: Buffer | null
}

/** Iterates over the last change of each key, in the order of writing. */
export interface ChangeBuffer extends Iterable<readonly [Key, Buffer | null]> {
  readonly size: number
  /** Undefined without a change, `null` for a delete. */
  get(key: Key): Buffer | null | undefined
  /** Copies the value. */
  put(key: Key, value: Buffer | null): void
  /** Sets the state that `undo` returns to. */
  mark(): void
  undo(): void
  /** The keys that begin with this character, unordered and possibly repeated. */
  family(first_character: number): Iterable<Key>
  /** In key order. Nothing may be put during the iteration. */
  range(from: Key, to: Key, reverse: boolean): Iterable<Change>
  clear(): void
  /** As `clear`, and gives the memory back. */
  reset(): void

  /** Changes, including overwritten ones. */
  count(): number
  /** Used bytes of the arena: the offset of the next change. */
  bytes(): number
  arena(): Buffer
  reserve(bytes: number): void
  /** Copies the encoded changes to `at` in another arena. */
  copyTo(arena: Buffer, at: Offset): void
  /** Makes the changes visible in `target`, whose arena has a copy of them at `at`. */
  indexInto(target: ChangeBuffer, at: Offset): void
  /** Makes the change at `offset` visible as the last of its key. */
  index(offset: Offset, hash: number): void
  /** Sets `bytes` after changes were copied into the arena. */
  extendTo(bytes: number): void
}

export interface ArenaOptions {
  readonly first_bytes: number
  /** `clear` replaces a larger arena. */
  readonly kept_bytes_max: number
  readonly allocate: (bytes: number) => Buffer
  readonly first_slots?: number
}

const usual_arena: ArenaOptions = {
  first_bytes: 64 * 1024,
  kept_bytes_max: 4 * 1024 * 1024,
  allocate: (bytes) => Buffer.allocUnsafeSlow(bytes),
}

const first_entries = 2 * 256

export function newChangeBuffer(options: ArenaOptions = usual_arena): ChangeBuffer {
  const { first_bytes, kept_bytes_max, allocate, first_slots } = options
  let arena = allocate(first_bytes)
  let end = 0
  /** Hash and offset of each change. */
  let entries = new Int32Array(first_entries)
  let count = 0
  let marked_count = 0
  let marked_end = 0
  const last_by_key = newHashIndex(first_slots)
  let sorted = newSortedIndex()
  /** The changes before this count are in the sorted index. */
  let sorted_count = 0

  const hashAt = (n: number): number => entries[2 * n] as number
  const offsetAt = (n: number): Offset => entries[2 * n + 1] as Offset

  function reserve(bytes: number): void {
    if (bytes <= arena.length) return
    const larger = allocate(Math.max(2 * arena.length, bytes))
    arena.copy(larger, 0, 0, end)
    arena = larger
  }

  function index(offset: Offset, hash: number): void {
    if (2 * count === entries.length) {
      const larger = new Int32Array(2 * entries.length)
      larger.set(entries)
      entries = larger
    }
    last_by_key.set(arena, offset, hash)
    entries[2 * count] = hash
    entries[2 * count + 1] = offset
    count++
  }

  function get(key: Key): Buffer | null | undefined {
    if (count === 0) return undefined
    const offset = last_by_key.get(arena, key, hashOf(key))
    return offset === -1 ? undefined : valueAt(arena, offset)
  }

  function resetSorted(): void {
    sorted = newSortedIndex()
    sorted_count = 0
  }

  return {
    get size() {
      return last_by_key.size()
    },
    *[Symbol.iterator]() {
      for (let n = 0; n < count; n++) {
        const offset = offsetAt(n)
        const is_last = last_by_key.lastOf(arena, offset, hashAt(n)) === offset
        if (is_last) yield [keyAt(arena, offset), valueAt(arena, offset)]
      }
    },
    *family(first_character) {
      for (let n = 0; n < count; n++) {
        const offset = offsetAt(n)
        if (firstByteAt(arena, offset) === first_character) yield keyAt(arena, offset)
      }
    },
    get,
    put(key, value) {
      const bytes = encodedBytes(key, value)
      reserve(end + bytes)
      encodeChange(arena, end, key, value)
      index(end, hashOf(key))
      end += bytes
    },
    mark() {
      marked_count = count
      marked_end = end
    },
    undo() {
      if (count === marked_count) return
      count = marked_count
      end = marked_end
      last_by_key.clear()
      for (let n = 0; n < count; n++) last_by_key.set(arena, offsetAt(n), hashAt(n))
      resetSorted()
    },
    *range(from, to, reverse) {
      for (; sorted_count < count; sorted_count++) sorted.add(arena, offsetAt(sorted_count))
      for (const key of sorted.range(arena, from, to, reverse)) {
        yield { key, value: get(key) as Buffer | null }
      }
    },
    clear() {
      if (arena.length > kept_bytes_max) arena = allocate(first_bytes)
      count = 0
      end = 0
      last_by_key.clear()
      resetSorted()
    },
    reset() {
      arena = allocate(first_bytes)
      entries = new Int32Array(first_entries)
      count = 0
      end = 0
      last_by_key.reset()
      resetSorted()
    },
    count: () => count,
    bytes: () => end,
    arena: () => arena,
    reserve,
    copyTo: (other, at) => void arena.copy(other, at, 0, end),
    indexInto(target, at) {
      for (let n = 0; n < count; n++) target.index(at + offsetAt(n), hashAt(n))
    },
    index,
    extendTo(bytes) {
      end = bytes
    },
  }
}

export function changesOf(changes: Iterable<readonly [Key, Buffer | null]>): ChangeBuffer {
  const buffer = newChangeBuffer()
  for (const [key, value] of changes) buffer.put(key, value)
  return buffer
}
