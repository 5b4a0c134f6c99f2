/**
 * A read of a whole key type goes in slices that hold nobody up, however many entries there are and
 * however long they are, and visits each once.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { variableKey } from '../src/codec/keys.ts'
import { eachEntry } from '../src/engine/transactions/scans.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Store } from '../src/store/store.ts'

const kib = 1024

/** [what, the bytes of each value, how many entries each slice has, 20 at most] */
const rows: readonly (readonly [string, readonly number[], readonly number[]])[] = [
  ['none', [], [0]],
  ['short ones, fewer than a slice has', Array(19).fill(10), [19]],
  ['short ones, as many as a slice has', Array(20).fill(10), [20, 0]],
  ['short ones, more than a slice has', Array(50).fill(10), [20, 20, 10]],
  ['long ones', Array(5).fill(50 * kib), [3, 2]],
  ['one that is longer than a slice', [10, 300 * kib, 10], [2, 1]],
  ['each longer than a slice', Array(3).fill(300 * kib), [1, 1, 1, 0]],
]
for (const [what, bytes, slices] of rows) {
  test(`slices: ${what}`, async () => {
    const all: Store = storeOf(memoryTree())
    const names = bytes.map((_, n) => String(n).padStart(3, '0'))
    await all.update((tx) => {
      for (const [n, size] of bytes.entries())
        tx.put(variableKey(names[n] as string), Buffer.alloc(size))
    })
    const visited: string[][] = []
    const store: Pick<Store, 'view'> = {
      view: (fn) => {
        visited.push([])
        return all.view(fn)
      },
    }
    const count = await eachEntry(store, 'variable', 20, (_view, { key }) => {
      visited.at(-1)?.push(key)
    })
    assert.equal(count, bytes.length)
    assert.deepEqual(
      visited.map(({ length }) => length),
      slices,
    )
    assert.deepEqual(visited.flat(), names.map(variableKey))
    await all.close()
  })
}
