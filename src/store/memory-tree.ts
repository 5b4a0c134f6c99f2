/**
 * The tree in memory, for tests and for `:memory:`: nothing outlives the process.
 */
import type { Key } from '../codec/keys.ts'
import { fault } from '../core/faults.ts'
import { newSortedKeys } from './sorted-keys.ts'
import type { Entry, Tree } from './store.ts'

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
    commit: async (writes) => {
      for (const [key, value] of writes) {
        if (value === null) {
          if (values.delete(key)) keys.remove(key)
        } else {
          if (!values.has(key)) keys.add(key)
          values.set(key, Buffer.from(value))
        }
      }
    },
    room: () => undefined,
    backup: async () => {
      throw fault('not_possible', 'a store in memory has no file to copy')
    },
    close: async () => {},
  }
}
