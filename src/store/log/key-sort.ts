/**
 * Puts changes in key order by their places alone: no key is made a string, and nothing is left for
 * a garbage collector. Pure.
 *
 * A run of places whose keys agree up to some depth is ordered by the next four bytes, packed above
 * their number in the run, so that the engine's own sort of numbers does it and equal ones stay in
 * their order; runs that still agree go on four bytes deeper. Each round passes four bytes of each
 * key in it, so no choice of keys makes it slow; keys that are in order already, as ascending ids
 * and counters are, are not even sorted.
 */
import { keyBytesAt, keyStart, type Offset } from '../change-encoding.ts'

const word_bytes = 4
/** So few are put in order one by one. */
const few = 8

/** What a sort works with: `packed` and `words` are the same memory, low words first. */
interface Sort {
  readonly room: Buffer
  readonly places: Uint32Array
  readonly held: Uint32Array
  readonly packed: BigUint64Array
  readonly words: Uint32Array
}

/**
 * The place of the last change of each key, in key order. `places` stand in the order of the
 * changes, and are reordered; the answer is a part of them.
 */
export function sortLastByKey(room: Buffer, places: Uint32Array): Uint32Array {
  const packed = new BigUint64Array(places.length)
  const words = new Uint32Array(packed.buffer)
  const held = new Uint32Array(places.length)
  sortRun({ room, places, held, packed, words }, 0, places.length, 0)
  let kept = 0
  for (const [at, place] of places.entries()) {
    if (at > 0 && compare(room, places[kept - 1] as Offset, place, 0) === 0) kept--
    places[kept++] = place
  }
  return places.subarray(0, kept)
}

/** From `from` up to and without `to` keys agree in their first `depth` bytes, which all have. */
function sortRun(sort: Sort, from: number, to: number, depth: number): void {
  let [begin, deep] = [from, depth]
  while (to - begin > few) {
    const found = pack(sort, begin, to, deep)
    if (found === 'unordered') sortPacked(sort, begin, to)
    if (found !== 'equal') {
      sortTies(sort, begin, to, deep)
      return
    }
    begin = endedFirst(sort, begin, to, deep)
    deep += word_bytes
  }
  sortFew(sort, begin, to, deep)
}

/** Big-endian; zeros behind the end of the key. */
function wordAt(room: Buffer, place: Offset, depth: number): number {
  const left = keyBytesAt(room, place) - depth
  const at = keyStart(place) + depth
  if (left >= word_bytes) {
    const high = ((room[at] as number) << 24) | ((room[at + 1] as number) << 16)
    return (high | ((room[at + 2] as number) << 8) | (room[at + 3] as number)) >>> 0
  }
  let word = 0
  for (let n = 0; n < left; n++) word |= (room[at + n] as number) << (24 - 8 * n)
  return word >>> 0
}

function pack(
  { room, places, words }: Sort,
  from: number,
  to: number,
  depth: number,
): 'equal' | 'ordered' | 'unordered' {
  const first = wordAt(room, places[from] as Offset, depth)
  let last = first
  let is_ordered = true
  for (let at = from; at < to; at++) {
    const word = wordAt(room, places[at] as Offset, depth)
    words[2 * (at - from)] = at - from
    words[2 * (at - from) + 1] = word
    if (word < last) is_ordered = false
    last = word
  }
  if (!is_ordered) return 'unordered'
  return last === first ? 'equal' : 'ordered'
}

function sortPacked({ places, held, packed, words }: Sort, from: number, to: number): void {
  packed.subarray(0, to - from).sort()
  held.set(places.subarray(from, to))
  for (let at = from; at < to; at++) {
    places[at] = held[words[2 * (at - from)] as number] as Offset
  }
}

/** Goes on with each run of keys whose words are the same. */
function sortTies(sort: Sort, from: number, to: number, depth: number): void {
  const { room, places } = sort
  let begin = from
  let word = wordAt(room, places[from] as Offset, depth)
  for (let at = from + 1; at <= to; at++) {
    const next = at < to ? wordAt(room, places[at] as Offset, depth) : -1
    if (next === word) continue
    if (at - begin > 1) {
      sortRun(sort, endedFirst(sort, begin, at, depth), at, depth + word_bytes)
    }
    begin = at
    word = next
  }
}

/**
 * Of keys with the same word, those that end in it are beginnings of the others: puts them first,
 * the shorter before the longer. Answers where the others begin.
 */
function endedFirst({ room, places, held }: Sort, from: number, to: number, depth: number): number {
  const end = depth + word_bytes
  const isLonger = (place: Offset): boolean => keyBytesAt(room, place) > end
  const run = places.subarray(from, to)
  if (run.every(isLonger)) return from
  const old = held.subarray(0, to - from)
  old.set(run)
  let next = from
  for (let key_bytes = depth; key_bytes <= end; key_bytes++) {
    for (const place of old) if (keyBytesAt(room, place) === key_bytes) places[next++] = place
  }
  let other = next
  for (const place of old) if (isLonger(place)) places[other++] = place
  return next
}

function sortFew({ room, places }: Sort, from: number, to: number, depth: number): void {
  for (let at = from + 1; at < to; at++) {
    const place = places[at] as Offset
    let free = at
    while (free > from && compare(room, places[free - 1] as Offset, place, depth) > 0) {
      places[free] = places[free - 1] as Offset
      free--
    }
    places[free] = place
  }
}

/** Below, above or 0 as the first key is to the other; both have the same first `depth` bytes. */
function compare(room: Buffer, one: Offset, other: Offset, depth: number): number {
  const [one_bytes, other_bytes] = [keyBytesAt(room, one), keyBytesAt(room, other)]
  const both_bytes = Math.min(one_bytes, other_bytes)
  const [one_at, other_at] = [keyStart(one), keyStart(other)]
  for (let n = depth; n < both_bytes; n++) {
    const difference = (room[one_at + n] as number) - (room[other_at + n] as number)
    if (difference !== 0) return difference
  }
  return one_bytes - other_bytes
}
