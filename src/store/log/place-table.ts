/**
 * Where each key's last change stands in a room of frames: a hash table of numbers, with nothing in
 * it that a garbage collector would have to look at. Keys are not kept: the room has them.
 *
 * Open addressing, never more than half full; a slot is free where its place is 0, for no change
 * stands there. The hash is seeded, so that callers cannot choose refs that meet in one slot.
 */
import type { Key } from '../../bytes/keys.ts'
import { hasKeyAt, type Place } from './frame.ts'

export interface PlaceTable {
  /** How many keys. */
  size(): number
  /** 0 where the key has none. `room` is where all places of this table are. */
  get(room: Buffer, key: Key): Place
  /** Answers whether the key is new. */
  set(room: Buffer, key: Key, place: Place): boolean
  clear(): void
}

const first_slots = 1 << 12

export function newPlaceTable(seed: number): PlaceTable {
  let hashes = new Int32Array(first_slots)
  let places = new Int32Array(first_slots)
  let size = 0

  /** The slot of the key, or the free one where it would go. */
  function slotOf(room: Buffer, key: Key, hash: number): number {
    const mask = places.length - 1
    let slot = hash & mask
    for (;;) {
      const place = places[slot] as number
      if (place === 0) return slot
      if (hashes[slot] === hash && hasKeyAt(room, place, key)) return slot
      slot = (slot + 1) & mask
    }
  }

  function grow(): void {
    const [old_hashes, old_places] = [hashes, places]
    hashes = new Int32Array(2 * old_places.length)
    places = new Int32Array(2 * old_places.length)
    const mask = places.length - 1
    for (const [at, place] of old_places.entries()) {
      if (place === 0) continue
      const hash = old_hashes[at] as number
      let slot = hash & mask
      while (places[slot] !== 0) slot = (slot + 1) & mask
      hashes[slot] = hash
      places[slot] = place
    }
  }

  return {
    size: () => size,
    get(room, key) {
      if (size === 0) return 0
      return places[slotOf(room, key, hashOf(key, seed))] as number
    },
    set(room, key, place) {
      const hash = hashOf(key, seed)
      const slot = slotOf(room, key, hash)
      const is_new = places[slot] === 0
      hashes[slot] = hash
      places[slot] = place
      if (is_new && ++size * 2 > places.length) grow()
      return is_new
    },
    clear() {
      places.fill(0)
      size = 0
    },
  }
}

/** FNV-1a, stirred, so that its low bits depend on all of the key. */
function hashOf(key: Key, seed: number): number {
  let hash = seed
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return hash ^ (hash >>> 13)
}
