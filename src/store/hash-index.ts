/**
 * Where each key's last change stands in a room of changes: a hash table of numbers, with nothing
 * in it that a garbage collector would have to look at. Keys are not kept: the room has them.
 *
 * Open addressing, never more than half full. A slot is a hash and a place, side by side; it is
 * free where its place is 0, for no change stands there.
 */
import type { Key } from '../codec/keys.ts'
import { hasKeyAt, haveSameKey, type Offset } from './change-encoding.ts'

export interface HashIndex {
  /** How many keys. */
  size(): number
  /** 0 where the key has none. `room` is where all places of this table are. */
  get(room: Buffer, key: Key, hash: number): Offset
  /** The place of the last change of the key that the change at `place` is of; it has one. */
  lastOf(room: Buffer, place: Offset, hash: number): Offset
  /** The change at `place` is its key's last. */
  set(room: Buffer, place: Offset, hash: number): void
  clear(): void
}

const first_slots = 256
/** A table that was so much too large for what it held is smaller in its next round. */
const slots_a_key_max = 32

export function newHashIndex(): HashIndex {
  let slots = new Int32Array(2 * first_slots)
  let size = 0

  /** Where the slot of the key that stands at `place` begins, or the free one where it would go. */
  function slotOf(room: Buffer, place: Offset, hash: number): number {
    const mask = slots.length - 1
    let at = (hash << 1) & mask
    for (;;) {
      const found = slots[at + 1] as number
      if (found === 0 || (slots[at] === hash && haveSameKey(room, found, place))) return at
      at = (at + 2) & mask
    }
  }

  function resize(slot_count: number): void {
    const before = slots
    slots = new Int32Array(2 * slot_count)
    const mask = slots.length - 1
    for (let from = 0; from < before.length && size > 0; from += 2) {
      const place = before[from + 1] as number
      if (place === 0) continue
      const hash = before[from] as number
      let at = (hash << 1) & mask
      while (slots[at + 1] !== 0) at = (at + 2) & mask
      slots[at] = hash
      slots[at + 1] = place
    }
  }

  return {
    size: () => size,
    get(room, key, hash) {
      if (size === 0) return 0
      const mask = slots.length - 1
      let at = (hash << 1) & mask
      for (;;) {
        const place = slots[at + 1] as number
        if (place === 0 || (slots[at] === hash && hasKeyAt(room, place, key))) return place
        at = (at + 2) & mask
      }
    },
    lastOf: (room, place, hash) => slots[slotOf(room, place, hash) + 1] as number,
    set(room, place, hash) {
      const at = slotOf(room, place, hash)
      const is_new = slots[at + 1] === 0
      slots[at] = hash
      slots[at + 1] = place
      if (is_new && ++size * 4 > slots.length) resize(slots.length)
    },
    clear() {
      const slot_count = slots.length / 2
      const is_large = slot_count > first_slots && slot_count > size * slots_a_key_max
      size = 0
      if (is_large) resize(slot_count / 2)
      else slots.fill(0)
    },
  }
}
