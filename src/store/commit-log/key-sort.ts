/**
 * Sorts changes by key using only their offsets, without strings or garbage. Pure.
 *
 * A radix sort over words of four key bytes. In a run of keys that agree up to a depth, the next
 * word and the position are packed into one 64-bit number, which the engine's number sort orders
 * stably; ties continue with the next word. Each round reads four bytes of each key, so no choice
 * of keys is slow, and a sorted run is not sorted.
 */
import { keyBytesAt, keyStart, type Offset } from '../changes/change-encoding.ts'

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
  for (const [at, offset] of offsets.entries()) {
    if (at > 0 && compare(arena, offsets[kept - 1] as Offset, offset, 0) === 0) kept--
    offsets[kept++] = offset
  }
  return offsets.subarray(0, kept)
}

/** `to` is excluded; the keys agree in their first `depth` bytes. */
function sortRun(sort: Sort, from: number, to: number, depth: number): void {
  let [begin, deep] = [from, depth]
  while (to - begin > insertion_max) {
    const found = pack(sort, begin, to, deep)
    if (found === 'unordered') sortPacked(sort, begin, to)
    if (found !== 'equal') {
      sortTies(sort, begin, to, deep)
      return
    }
    begin = moveEndedToFront(sort, begin, to, deep)
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

function pack(
  { arena, offsets, words }: Sort,
  from: number,
  to: number,
  depth: number,
): 'equal' | 'ordered' | 'unordered' {
  const first = wordAt(arena, offsets[from] as Offset, depth)
  let last = first
  let is_ordered = true
  for (let at = from; at < to; at++) {
    const word = wordAt(arena, offsets[at] as Offset, depth)
    words[2 * (at - from)] = at - from
    words[2 * (at - from) + 1] = word
    if (word < last) is_ordered = false
    last = word
  }
  if (!is_ordered) return 'unordered'
  return last === first ? 'equal' : 'ordered'
}

function sortPacked({ offsets, scratch, packed, words }: Sort, from: number, to: number): void {
  packed.subarray(0, to - from).sort()
  scratch.set(offsets.subarray(from, to))
  for (let at = from; at < to; at++) {
    offsets[at] = scratch[words[2 * (at - from)] as number] as Offset
  }
}

/** Sorts each run of keys with the same word by the bytes after it. */
function sortTies(sort: Sort, from: number, to: number, depth: number): void {
  const { arena, offsets } = sort
  let begin = from
  let word = wordAt(arena, offsets[from] as Offset, depth)
  for (let at = from + 1; at <= to; at++) {
    const next = at < to ? wordAt(arena, offsets[at] as Offset, depth) : -1
    if (next === word) continue
    if (at - begin > 1) {
      sortRun(sort, moveEndedToFront(sort, begin, at, depth), at, depth + word_bytes)
    }
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
  const isLonger = (offset: Offset): boolean => keyBytesAt(arena, offset) > end
  const run = offsets.subarray(from, to)
  if (run.every(isLonger)) return from
  const run_before = scratch.subarray(0, to - from)
  run_before.set(run)
  let next = from
  for (let key_bytes = depth; key_bytes <= end; key_bytes++) {
    for (const offset of run_before)
      if (keyBytesAt(arena, offset) === key_bytes) offsets[next++] = offset
  }
  let other = next
  for (const offset of run_before) if (isLonger(offset)) offsets[other++] = offset
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
