/**
 * Changes that lie over a tree: the last value of each key, `null` where it is deleted.
 *
 * Most keys are only ever asked for by name. So a key is merely noted as it comes in, and put in
 * order with the others that begin with the same byte once a range of those is asked for.
 */
import type { Key } from '../bytes/keys.ts'
import { newSortedKeys, type SortedKeys } from './sorted-keys.ts'
import type { Change, Writes } from './store.ts'

export interface Layer {
  readonly changes: Writes
  /** Answers what the key had before; undefined where it had not been set. */
  set(key: Key, value: Buffer | null): Buffer | null | undefined
  /** Takes a key out, as if it had never been set. */
  unset(key: Key): void
  /** In key order; nothing may be set meanwhile. */
  range(from: Key, to: Key, reverse: boolean): Iterable<Change>
}

/** The keys that begin with one byte. */
interface Shelf {
  sorted: SortedKeys | undefined
  fresh: Key[]
}

export function newLayer(): Layer {
  const changes = new Map<Key, Buffer | null>()
  const shelves: (Shelf | undefined)[] = []

  function* range(from: Key, to: Key, reverse: boolean): Generator<Change> {
    if (from >= to) return
    const first = from === '' ? 0 : from.charCodeAt(0)
    const last = Math.min(to.charCodeAt(0), shelves.length - 1)
    for (let n = 0; n <= last - first; n++) {
      const shelf = shelves[reverse ? last - n : first + n]
      if (shelf === undefined) continue
      for (const key of sortedOf(shelf).range(from, to, reverse)) {
        const value = changes.get(key)
        if (value !== undefined) yield { key, value }
      }
    }
  }

  return {
    changes,
    set(key, value) {
      const before = changes.get(key)
      if (before === undefined) {
        const byte = key.charCodeAt(0)
        const shelf = shelves[byte]
        if (shelf === undefined) shelves[byte] = { sorted: undefined, fresh: [key] }
        else shelf.fresh.push(key)
      }
      changes.set(key, value)
      return before
    },
    unset: (key) => void changes.delete(key),
    range,
  }
}

function sortedOf(shelf: Shelf): SortedKeys {
  shelf.sorted ??= newSortedKeys()
  if (shelf.fresh.length > 0) {
    for (const key of shelf.fresh) shelf.sorted.add(key)
    shelf.fresh = []
  }
  return shelf.sorted
}
