/**
 * Keeps pages full where a commit puts many new keys between two neighbours, such as the keys of
 * new tasks. LMDB splits a full page in the middle, and at its end only if the new key is the last
 * one there. A fence makes it so: two keys that fill a page, put after the last key of such a run
 * and removed before the end of the commit.
 */
import type { Key } from '../../codec/keys.ts'
import { keyAt, type Offset } from '../changes/change-encoding.ts'
import { key_bytes_max } from '../tree.ts'
import type { LmdbTree, LmdbWriter } from './lmdb-tree.ts'

/** About as many of the smallest keys fill a page. */
const run_min = 128
/** Of key and value: two of them leave no room for a third. */
const fence_bytes = 2_026
const zeros = Buffer.alloc(fence_bytes)
const [first_end, last_end] = ['\x00\x00', '\x00\x01']

/**
 * The last keys of long runs without a key of the file in between, where a fence is no key of the
 * file. Every `run_min`th key is checked. `sorted`: offsets of keys in their arena, in key order.
 */
export function lastOfRuns(
  tree: Pick<LmdbTree, 'range' | 'refresh'>,
  arena: Buffer,
  sorted: Uint32Array,
): Key[] {
  const keyOf = (place: number): Key => keyAt(arena, sorted[place] as Offset)
  function placeOf(key: Key, from: number): number {
    let [low, high] = [from, sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (keyOf(middle) < key) low = middle + 1
      else high = middle
    }
    return low
  }
  const found: Key[] = []
  if (sorted.length >= run_min) tree.refresh()
  for (let from = 0; from + run_min <= sorted.length; ) {
    const [next] = tree.range(keyOf(from), '\xff', false)
    // LMDB fills the pages at the end of the file.
    if (next === undefined) break
    const to = placeOf(next.key, from)
    if (to - from >= run_min) {
      const last = keyOf(to - 1)
      const has_room = last.length + last_end.length <= key_bytes_max
      if (has_room && !next.key.startsWith(`${last}\x00`)) found.push(last)
    }
    from = Math.max(from + run_min, to)
  }
  return found
}

/** Before the puts of the runs. */
export function putFences(writer: LmdbWriter, last_keys: readonly Key[]): void {
  for (const key of last_keys) {
    const value = zeros.subarray(key.length + last_end.length)
    writer.put(key + first_end, value)
    writer.put(key + last_end, value)
    // The last page of the run is open at its end again.
    writer.put(key + first_end, null)
  }
}

/** After the puts. */
export function removeFences(writer: LmdbWriter, last_keys: readonly Key[]): void {
  for (const key of last_keys) writer.put(key + last_end, null)
}
