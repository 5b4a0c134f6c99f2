/**
 * The tree in memory, for tests and for `:memory:`: nothing outlives the process.
 *
 * Keys stand sorted in chunks of bounded size, so that a put costs a short shift and a scan starts
 * with two binary searches. No chunk but the only one is empty.
 */
import type { Key } from '../bytes/keys.ts'
import { fault } from '../words/faults.ts'
import type { Entry, Tree } from './store.ts'

const chunk_keys_max = 512

export function memoryTree(): Tree {
  const values = new Map<Key, Buffer>()
  const chunks: Key[][] = [[]]

  function insert(key: Key): void {
    const at = chunkOf(chunks, key)
    const chunk = chunks[at] as Key[]
    chunk.splice(firstFrom(chunk, key), 0, key)
    if (chunk.length > chunk_keys_max) {
      chunks.splice(at + 1, 0, chunk.splice(chunk_keys_max >> 1))
    }
  }

  function remove(key: Key): void {
    const at = chunkOf(chunks, key)
    const chunk = chunks[at] as Key[]
    chunk.splice(firstFrom(chunk, key), 1)
    if (chunk.length === 0 && chunks.length > 1) chunks.splice(at, 1)
  }

  function* range(from: Key, to: Key, reverse: boolean): Generator<Entry> {
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
      yield { key, value: values.get(key) as Buffer }
      next += step
    }
  }

  return {
    get: (key) => values.get(key),
    range,
    commit: async (writes) => {
      for (const [key, value] of writes) {
        const had = values.has(key)
        if (value === null) {
          if (had) {
            values.delete(key)
            remove(key)
          }
        } else {
          if (!had) insert(key)
          values.set(key, value)
        }
      }
    },
    freeBytes: async () => undefined,
    backup: async () => {
      throw fault('not_possible', 'a store in memory has no file to copy')
    },
    close: async () => {},
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
