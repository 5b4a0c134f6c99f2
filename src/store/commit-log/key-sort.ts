/**
 * Sorts changes by key using only their offsets, without strings or garbage. Pure.
 *
 * A radix sort over words of four key bytes. In a run of keys that agree up to a depth, the next
 * word and the position are packed into one 64-bit number, which the engine's number sort orders
 * stably; ties continue with the next word. Each round reads four bytes of each key, so no choice
 * of keys is slow, and a sorted run is not sorted.
 */
import { haveSameKey, keyBytesAt, keyStart, type Offset } from '../changes/change-encoding.ts'

const word_bytes = 4
const insertion_max = 8

/** `packed` and `words` share their memory, low words first. */
interface Sort {
  readonly arena: Buffer
  readonly offsets: Uint32Array
  readonly scratch: Uint32Array
  readonly packed: BigUint64Array
  readonly words: Uint32Array
}

/**
 * The offset of the last change of each key, in key order. `offsets` are all changes in the order
 * of writing; they are reordered, and the result is a slice of them.
 */
export function sortLastByKey(arena: Buffer, offsets: Uint32Array): Uint32Array {
  const packed = new BigUint64Array(offsets.length)
  const words = new Uint32Array(packed.buffer)
  const scratch = new Uint32Array(offsets.length)
  sortRun({ arena, offsets, scratch, packed, words }, 0, offsets.length, 0)
  let kept = 0
  for (let at = 0; at < offsets.length; at++) {
    const offset = offsets[at] as Offset
    if (kept > 0 && haveSameKey(arena, offsets[kept - 1] as Offset, offset)) kept--
    offsets[kept++] = offset
  }
  return offsets.subarray(0, kept)
}

/** `to` is excluded; the keys agree in their first `depth` bytes, and zeros for what they lack. */
function sortRun(sort: Sort, from: number, to: number, depth: number): void {
  let [begin, deep] = [from, depth]
  while (to - begin > insertion_max) {
    const { order, has_ended } = pack(sort, begin, to, deep)
    if (order === 'unordered') sortPacked(sort, begin, to)
    if (order !== 'equal') {
      sortTies(sort, begin, to, deep, has_ended)
      return
    }
    if (has_ended) begin = moveEndedToFront(sort, begin, to, deep)
    deep += word_bytes
  }
  insertionSort(sort, begin, to, deep)
}

/** The four key bytes at `depth`, big-endian, with zeros after the key. */
function wordAt(arena: Buffer, offset: Offset, depth: number): number {
  const left = keyBytesAt(arena, offset) - depth
  const at = keyStart(offset) + depth
  if (left >= word_bytes) {
    const high = ((arena[at] as number) << 24) | ((arena[at + 1] as number) << 16)
    return (high | ((arena[at + 2] as number) << 8) | (arena[at + 3] as number)) >>> 0
  }
  let word = 0
  for (let n = 0; n < left; n++) word |= (arena[at + n] as number) << (24 - 8 * n)
  return word >>> 0
}

/** What `pack` has found; one object, as it is read at once. */
const found = { order: 'equal' as 'equal' | 'ordered' | 'unordered', has_ended: false }

function pack({ arena, offsets, words }: Sort, from: number, to: number, depth: number) {
  const end = depth + word_bytes
  const first = wordAt(arena, offsets[from] as Offset, depth)
  let last = first
  found.order = 'equal'
  found.has_ended = false
  for (let at = from; at < to; at++) {
    const offset = offsets[at] as Offset
    const word = wordAt(arena, offset, depth)
    if (keyBytesAt(arena, offset) <= end) found.has_ended = true
    words[2 * at] = at
    words[2 * at + 1] = word
    if (word < last) found.order = 'unordered'
    else if (word > last && found.order === 'equal') found.order = 'ordered'
    last = word
  }
  return found
}

function sortPacked({ offsets, scratch, packed, words }: Sort, from: number, to: number): void {
  packed.subarray(from, to).sort()
  scratch.set(offsets.subarray(from, to), from)
  for (let at = from; at < to; at++) offsets[at] = scratch[words[2 * at] as number] as Offset
}

/** Sorts each run of keys with the same word by the bytes after it. */
function sortTies(sort: Sort, from: number, to: number, depth: number, has_ended: boolean): void {
  const { words } = sort
  const deep = depth + word_bytes
  let begin = from
  let word = words[2 * from + 1]
  for (let at = from + 1; at <= to; at++) {
    const next = at < to ? words[2 * at + 1] : -1
    if (next === word) continue
    if (at - begin > insertion_max) {
      sortRun(sort, has_ended ? moveEndedToFront(sort, begin, at, depth) : begin, at, deep)
    } else if (at - begin > 1) insertionSort(sort, begin, at, deep)
    begin = at
    word = next
  }
}

/**
 * Moves keys that end in the word to the front, shorter ones first: they are prefixes of the
 * others. Returns where the others begin.
 */
function moveEndedToFront(
  { arena, offsets, scratch }: Sort,
  from: number,
  to: number,
  depth: number,
): number {
  const end = depth + word_bytes
  const run_before = scratch.subarray(from, to)
  run_before.set(offsets.subarray(from, to))
  let next = from
  for (let key_bytes = depth; key_bytes <= end; key_bytes++) {
    for (const offset of run_before)
      if (keyBytesAt(arena, offset) === key_bytes) offsets[next++] = offset
  }
  let other = next
  for (const offset of run_before) if (keyBytesAt(arena, offset) > end) offsets[other++] = offset
  return next
}

function insertionSort({ arena, offsets }: Sort, from: number, to: number, depth: number): void {
  for (let at = from + 1; at < to; at++) {
    const offset = offsets[at] as Offset
    let free = at
    while (free > from && compare(arena, offsets[free - 1] as Offset, offset, depth) > 0) {
      offsets[free] = offsets[free - 1] as Offset
      free--
    }
    offsets[free] = offset
  }
}

/** Both keys have the same first `depth` bytes. */
function compare(arena: Buffer, one: Offset, other: Offset, depth: number): number {
  const [one_bytes, other_bytes] = [keyBytesAt(arena, one), keyBytesAt(arena, other)]
  const both_bytes = Math.min(one_bytes, other_bytes)
  const [one_at, other_at] = [keyStart(one), keyStart(other)]
  for (let n = depth; n < both_bytes; n++) {
    const difference = (arena[one_at + n] as number) - (arena[other_at + n] as number)
    if (difference !== 0) return difference
  }
  return one_bytes - other_bytes
}
