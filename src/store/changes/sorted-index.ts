/**
 * Keys in byte order. `SortedKeys` is always sorted; `SortedIndex` sorts when a range is read,
 * because most keys of a change buffer are only looked up by name.
 */
import type { Key } from '../../codec/keys.ts'
import { firstByteAt, keyAt, type Offset } from './change-encoding.ts'

export interface SortedKeys {
  /** Ignores a key that is there already. */
  add(key: Key): void
  remove(key: Key): void
  /** `to` is excluded. The keys must not change during the iteration. */
  range(from: Key, to: Key, reverse: boolean): Iterable<Key>
}

export interface SortedIndex {
  /** A key may come more than once. */
  add(arena: Buffer, offset: Offset): void
  /** Each key once. All offsets are in `arena`; nothing may be added during the iteration. */
  range(arena: Buffer, from: Key, to: Key, reverse: boolean): Iterable<Key>
}

/** Keys with the same first byte: those sorted, and the changes not sorted yet. */
interface Bucket {
  readonly sorted: SortedKeys
  readonly unsorted: Offset[]
}

/** One bucket per first byte, sorted when a range first covers it. */
export function newSortedIndex(): SortedIndex {
  const buckets: (Bucket | undefined)[] = []

  function sortedOf(arena: Buffer, { sorted, unsorted }: Bucket): SortedKeys {
    for (const offset of unsorted) sorted.add(keyAt(arena, offset))
    unsorted.length = 0
    return sorted
  }

  return {
    add(arena, offset) {
      const first_byte = firstByteAt(arena, offset)
      const bucket = buckets[first_byte]
      if (bucket !== undefined) bucket.unsorted.push(offset)
      else buckets[first_byte] = { sorted: newSortedKeys(), unsorted: [offset] }
    },
    *range(arena, from, to, reverse) {
      if (from >= to) return
      const first = from === '' ? 0 : from.charCodeAt(0)
      const last = Math.min(to.charCodeAt(0), buckets.length - 1)
      for (let n = 0; n <= last - first; n++) {
        const bucket = buckets[reverse ? last - n : first + n]
        if (bucket !== undefined) yield* sortedOf(arena, bucket).range(from, to, reverse)
      }
    },
  }
}

const chunk_keys_max = 512

/**
 * Chunks of bounded size: an insertion shifts one chunk, and a range starts with two binary
 * searches. A chunk is empty only if it is the only one.
 */
export function newSortedKeys(): SortedKeys {
  const chunks: Key[][] = [[]]
  return {
    add(key) {
      const at = chunkOf(chunks, key)
      const chunk = chunks[at] as Key[]
      const position = firstFrom(chunk, key)
      if (chunk[position] === key) return
      chunk.splice(position, 0, key)
      if (chunk.length > chunk_keys_max) {
        chunks.splice(at + 1, 0, chunk.splice(chunk_keys_max >> 1))
      }
    },
    remove(key) {
      const at = chunkOf(chunks, key)
      const chunk = chunks[at] as Key[]
      const position = firstFrom(chunk, key)
      if (chunk[position] !== key) return
      chunk.splice(position, 1)
      if (chunk.length === 0 && chunks.length > 1) chunks.splice(at, 1)
    },
    *range(from, to, reverse) {
      const step = reverse ? -1 : 1
      let at = chunkOf(chunks, reverse ? to : from)
      let chunk = chunks[at]
      let next = chunk === undefined ? 0 : firstFrom(chunk, reverse ? to : from)
      if (reverse) next--
      while (chunk !== undefined) {
        const key = chunk[next]
        if (key === undefined) {
          at += step
          chunk = chunks[at]
          next = reverse ? (chunk?.length ?? 0) - 1 : 0
          continue
        }
        if (reverse ? key < from : key >= to) return
        yield key
        next += step
      }
    },
  }
}

/** The last chunk whose first key is at most `key`; else the first chunk. */
function chunkOf(chunks: readonly Key[][], key: Key): number {
  let low = 0
  let high = chunks.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((chunks[middle]?.[0] as Key) <= key) low = middle
    else high = middle - 1
  }
  return low
}

/** The position of the first key of the chunk that is at least `key`. */
function firstFrom(chunk: readonly Key[], key: Key): number {
  let low = 0
  let high = chunk.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((chunk[middle] as Key) < key) low = middle + 1
    else high = middle
  }
  return low
}
