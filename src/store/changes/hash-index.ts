/**
 * A hash table from a key to the offset of its last change in an arena, as one array of integers,
 * which the garbage collector need not trace. Open addressing, at most half full. A slot is a hash
 * and the offset plus one, so zeros are free slots and untouched memory is not used.
 */
import type { Key } from '../../codec/keys.ts'
import { systemChance } from '../../core/clock.ts'
import { hasKeyAt, haveSameKey, type Offset } from './change-encoding.ts'

export interface HashIndex {
  size(): number
  /** -1 without a change. All offsets of the index are in `arena`. */
  get(arena: Buffer, key: Key, hash: number): Offset
  /** The key at `offset` must be in the index. */
  lastOf(arena: Buffer, offset: Offset, hash: number): Offset
  set(arena: Buffer, offset: Offset, hash: number): void
  clear(): void
  /** As `clear`, and gives the memory back. */
  reset(): void
}

/** Random, so that callers cannot choose colliding keys. Nothing stored depends on it. */
const seed = systemChance.bytes(4).readInt32BE(0)

let last_key: Key = ''
let last_hash = 0

/**
 * FNV-1a with a final mix, so that the low bits depend on the whole key. The last result is cached:
 * a key is looked up in several indexes in a row.
 */
export function hashOf(key: Key): number {
  if (key === last_key) return last_hash
  let hash = seed
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  last_key = key
  last_hash = hash ^ (hash >>> 13)
  return last_hash
}

const free = 0
/** `clear` halves a table with more slots per key. */
const slots_per_key_max = 32

/** `first_slots` is a power of two; half as many keys fit before the first resize. */
export function newHashIndex(first_slots = 256): HashIndex {
  let slots = new Int32Array(2 * first_slots)
  let size = 0

  /** The slot of the key at `offset`, or the free one for it. */
  function slotOf(arena: Buffer, offset: Offset, hash: number): number {
    const mask = slots.length - 1
    let at = (hash << 1) & mask
    for (;;) {
      const found = slots[at + 1] as number
      if (found === free || (slots[at] === hash && haveSameKey(arena, found - 1, offset))) return at
      at = (at + 2) & mask
    }
  }

  function resize(slot_count: number): void {
    const before = slots
    slots = new Int32Array(2 * slot_count)
    const mask = slots.length - 1
    for (let from = 0; from < before.length && size > 0; from += 2) {
      const used = before[from + 1] as number
      if (used === free) continue
      const hash = before[from] as number
      let at = (hash << 1) & mask
      while (slots[at + 1] !== free) at = (at + 2) & mask
      slots[at] = hash
      slots[at + 1] = used
    }
  }

  return {
    size: () => size,
    get(arena, key, hash) {
      if (size === 0) return -1
      const mask = slots.length - 1
      let at = (hash << 1) & mask
      for (;;) {
        const found = slots[at + 1] as number
        if (found === free || (slots[at] === hash && hasKeyAt(arena, found - 1, key))) {
          return found - 1
        }
        at = (at + 2) & mask
      }
    },
    lastOf: (arena, offset, hash) => (slots[slotOf(arena, offset, hash) + 1] as number) - 1,
    set(arena, offset, hash) {
      const at = slotOf(arena, offset, hash)
      const is_new = slots[at + 1] === free
      slots[at] = hash
      slots[at + 1] = offset + 1
      if (is_new && ++size * 4 > slots.length) resize(slots.length)
    },
    clear() {
      const slot_count = slots.length / 2
      const is_large = slot_count > first_slots && slot_count > size * slots_per_key_max
      size = 0
      if (is_large) resize(slot_count / 2)
      else slots.fill(free)
    },
    reset() {
      size = 0
      slots = new Int32Array(2 * first_slots)
    },
  }
}
