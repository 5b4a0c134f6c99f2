/** The tree in memory, for tests and for `:memory:`. */
import type { Key } from '../codec/keys.ts'
import { fault } from '../core/faults.ts'
import { newSortedKeys } from './changes/sorted-index.ts'
import type { Entry } from './store.ts'
import type { Tree } from './tree.ts'

export function memoryTree(): Tree {
  const values = new Map<Key, Buffer>()
  const keys = newSortedKeys()

  function* range(from: Key, to: Key, reverse: boolean): Generator<Entry> {
    for (const key of keys.range(from, to, reverse)) {
      yield { key, value: values.get(key) as Buffer }
    }
  }

  return {
    get: (key) => values.get(key),
    range,
    commit: async (changes) => {
      for (const [key, value] of changes) {
        if (value === null) {
          if (values.delete(key)) keys.remove(key)
        } else {
          if (!values.has(key)) keys.add(key)
          values.set(key, Buffer.from(value))
        }
      }
    },
    freeBytes: () => undefined,
    backup: async () => {
      throw fault('not_possible', 'a store in memory has no file to copy')
    },
    close: async () => {},
  }
}
