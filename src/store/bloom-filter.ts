/**
 * Which keys of a family the tree certainly lacks, so that nobody looks for them there: most refs
 * of new tasks are new, and to find nothing costs as much as to find something.
 *
 * Each key that the tree may hold has set three bits of one word, which its hash chooses; a key
 * whose bits are not all set is not there. Keys that are put set theirs before they are committed;
 * those the tree held at first are read little by little behind commits, as long as somebody asks
 * and for a small part of the time, and until all are nothing is lacking. So what is said to lack
 * is never there. Bits are never taken back: after very many keys everything may be there, and it
 * costs a look-up as it did before.
 */
import type { Key, KeyRange } from '../codec/keys.ts'
import { hashOf } from './key-hash.ts'
import type { Tree } from './store.ts'

export interface BloomFilter {
  isAbsent(key: Key): boolean
  /** The key is put, and may be in the tree from its next commit on. */
  add(key: Key): void
  /** Reads on in what the tree held at first, where there was a question since and it is time. */
  fill(): void
}

export interface BloomFilterBounds {
  /** Powers of two. A word is of 32 bits, and there are as many as keys up to the last of them. */
  readonly words_min: number
  readonly words_max: number
  /** How many keys are read behind a commit, and at once to begin with. */
  readonly keys_a_commit: number
  readonly keys_at_first: number
  /** Reading rests so many times as long as it took. */
  readonly rests: number
}

const usual: BloomFilterBounds = {
  words_min: 16 * 1024,
  words_max: 4 * 1024 * 1024,
  keys_a_commit: 64,
  keys_at_first: 256,
  rests: 49,
}

/**
 * Of a tree whose every change from now on is noted. All keys of the span begin with one character,
 * which no others do.
 */
export function newBloomFilter(
  tree: Pick<Tree, 'range'>,
  { from, to }: KeyRange,
  bounds: Partial<BloomFilterBounds> = {},
): BloomFilter {
  const { words_min, words_max, keys_a_commit, keys_at_first, rests } = { ...usual, ...bounds }
  const family = from.charCodeAt(0)
  let words = new Int32Array(words_min)
  let keys = 0
  let is_asked = false
  let resumes_ms = 0

  function add(hash: number): void {
    if (++keys > words.length && words.length < words_max) double()
    const at = hash & (words.length - 1)
    words[at] = (words[at] as number) | bitsOf(hash)
  }

  /** A hash chooses among twice as many by one bit more; what is set is set in both halves. */
  function double(): void {
    const twice = new Int32Array(2 * words.length)
    twice.set(words)
    twice.set(words, words.length)
    words = twice
  }

  /** Answers where the rest of the span begins; undefined where nothing is left. */
  function read(begin: Key, count: number): Key | undefined {
    let left = count
    for (const { key } of tree.range(begin, to, false)) {
      add(hashOf(key))
      if (--left === 0) return `${key}\0`
    }
    return undefined
  }

  let rest = read(from, keys_at_first)
  return {
    isAbsent(key) {
      if (key.charCodeAt(0) !== family) return false
      if (rest !== undefined) {
        is_asked = true
        return false
      }
      const hash = hashOf(key)
      const bits = bitsOf(hash)
      return ((words[hash & (words.length - 1)] as number) & bits) !== bits
    },
    add(key) {
      if (key.charCodeAt(0) === family) add(hashOf(key))
    },
    fill() {
      if (!is_asked || rest === undefined) return
      const began_ms = performance.now()
      if (began_ms < resumes_ms) return
      is_asked = false
      try {
        rest = read(rest, keys_a_commit)
      } catch {
        // What is wrong with the tree is told to who needs it.
      }
      const ended_ms = performance.now()
      resumes_ms = ended_ms + rests * (ended_ms - began_ms)
    },
  }
}

/** The word is chosen by the low bits of the hash, these by all of them. */
function bitsOf(hash: number): number {
  const mixed = Math.imul(hash, 0x9e3779b1)
  return (1 << (mixed >>> 27)) | (1 << ((mixed >>> 22) & 31)) | (1 << ((mixed >>> 17) & 31))
}
