/**
 * A Bloom filter over one family of keys, the refs, so that a task with a new ref costs no lookup.
 * A key sets three bits of one word; bits are never cleared.
 *
 * There are no false negatives: keys are added before their commit, and no key is reported absent
 * before all keys of the tree were read: those in memory at once, those in the file after commits,
 * in small parts and only while lookups are made.
 */
import type { Key, KeyRange } from '../codec/keys.ts'
import { hashOf } from './changes/hash-index.ts'
import type { Tree } from './tree.ts'

export interface BloomFilter {
  /** True only if the key is not in the tree. */
  isAbsent(key: Key): boolean
  /** Call before a commit that may put the key into the tree. */
  add(key: Key): void
  /** Reads the next keys of the file, if there was a lookup and the pause is over. */
  fill(): void
}

export interface BloomFilterBounds {
  /** 32-bit words, powers of two. The filter grows between the two, one word per key. */
  readonly words_min: number
  readonly words_max: number
  /** Keys read after a commit, and at once at the start. */
  readonly keys_per_commit: number
  readonly keys_at_first: number
  /** Reading pauses for this multiple of the time it took. */
  readonly pause_factor: number
}

const usual: BloomFilterBounds = {
  words_min: 16 * 1024,
  words_max: 4 * 1024 * 1024,
  keys_per_commit: 64,
  keys_at_first: 256,
  pause_factor: 49,
}

/** The keys of the range share a first character that no other key has. */
export function newBloomFilter(
  tree: Pick<Tree, 'range' | 'parts'>,
  { from, to }: KeyRange,
  bounds: Partial<BloomFilterBounds> = {},
): BloomFilter {
  const { words_min, words_max, keys_per_commit, keys_at_first, pause_factor } = {
    ...usual,
    ...bounds,
  }
  const family = from.charCodeAt(0)
  const { newer, below } = tree.parts?.() ?? { newer: [], below: tree }
  let words = new Int32Array(words_min)
  let keys = 0
  let has_lookup = false
  let resumes_ms = 0

  function addHash(hash: number): void {
    if (++keys > words.length && words.length < words_max) double()
    const at = hash & (words.length - 1)
    words[at] = (words[at] as number) | bitsOf(hash)
  }

  function addOwn(key: Key): void {
    if (key.charCodeAt(0) === family) addHash(hashOf(key))
  }

  /** One more bit of the hash selects the word, so each set bit is copied to both halves. */
  function double(): void {
    const twice = new Int32Array(2 * words.length)
    twice.set(words)
    twice.set(words, words.length)
    words = twice
  }

  /** Returns where to continue; undefined at the end of the range. */
  function readKeys(begin: Key, count: number): Key | undefined {
    let left = count
    for (const { key } of below.range(begin, to, false)) {
      addHash(hashOf(key))
      if (--left === 0) return `${key}\0`
    }
    return undefined
  }

  for (const changes of newer) for (const key of changes.family(family)) addHash(hashOf(key))
  let unread_from = readKeys(from, keys_at_first)
  return {
    isAbsent(key) {
      if (key.charCodeAt(0) !== family) return false
      if (unread_from !== undefined) {
        has_lookup = true
        return false
      }
      const hash = hashOf(key)
      const bits = bitsOf(hash)
      return ((words[hash & (words.length - 1)] as number) & bits) !== bits
    },
    add: addOwn,
    fill() {
      if (!has_lookup || unread_from === undefined) return
      const began_ms = performance.now()
      if (began_ms < resumes_ms) return
      has_lookup = false
      try {
        unread_from = readKeys(unread_from, keys_per_commit)
      } catch {
        // A broken tree is reported by the reads that need it.
      }
      const ended_ms = performance.now()
      resumes_ms = ended_ms + pause_factor * (ended_ms - began_ms)
    },
  }
}

/** The low bits of the hash select the word, all of its bits these three. */
function bitsOf(hash: number): number {
  const mixed = Math.imul(hash, 0x9e3779b1)
  return (1 << (mixed >>> 27)) | (1 << ((mixed >>> 22) & 31)) | (1 << ((mixed >>> 17) & 31))
}
