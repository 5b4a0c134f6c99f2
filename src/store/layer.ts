/**
 * Changes that lie over a tree: the last value of each key, `null` where it is deleted.
 */
import type { Key } from '../bytes/keys.ts'
import { newShelves } from './shelves.ts'
import type { Change, Writes } from './store.ts'

export interface Layer {
  readonly changes: Writes
  set(key: Key, value: Buffer | null): void
  /** Takes a key out, as if it had never been set. */
  unset(key: Key): void
  /** In key order; nothing may be set meanwhile. */
  range(from: Key, to: Key, reverse: boolean): Iterable<Change>
}

export function newLayer(): Layer {
  const changes = new Map<Key, Buffer | null>()
  const shelves = newShelves((key: Key) => key)
  return {
    changes,
    set(key, value) {
      const size = changes.size
      changes.set(key, value)
      if (changes.size > size) shelves.add(key.charCodeAt(0), key)
    },
    unset: (key) => void changes.delete(key),
    *range(from, to, reverse) {
      for (const key of shelves.keys(from, to, reverse)) {
        const value = changes.get(key)
        if (value !== undefined) yield { key, value }
      }
    },
  }
}
