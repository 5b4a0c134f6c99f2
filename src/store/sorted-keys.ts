/**
 * Keys in byte order. They stand in chunks of bounded size, so that adding one costs a short shift
 * and a range starts with two binary searches. No chunk but the only one is empty, and no key is
 * there twice.
 */
import type { Key } from '../codec/keys.ts'

export interface SortedKeys {
  add(key: Key): void
  remove(key: Key): void
  /** From `from` up to and without `to`; nothing may be added or removed meanwhile. */
  range(from: Key, to: Key, reverse: boolean): Iterable<Key>
}

const chunk_keys_max = 512

export function newSortedKeys(): SortedKeys {
  const chunks: Key[][] = [[]]
  return {
    add(key) {
      const at = chunkOf(chunks, key)
      const chunk = chunks[at] as Key[]
      const place = firstFrom(chunk, key)
      if (chunk[place] === key) return
      chunk.splice(place, 0, key)
      if (chunk.length > chunk_keys_max) {
        chunks.splice(at + 1, 0, chunk.splice(chunk_keys_max >> 1))
      }
    },
    remove(key) {
      const at = chunkOf(chunks, key)
      const chunk = chunks[at] as Key[]
      const place = firstFrom(chunk, key)
      if (chunk[place] !== key) return
      chunk.splice(place, 1)
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

/** The last chunk whose first key is not behind `key`; the first where there is none. */
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

/** The place of the first key of the chunk that is `key` or behind it. */
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
