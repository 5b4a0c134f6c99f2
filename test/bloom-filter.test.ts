/**
 * The Bloom filter never reports a key absent that the tree holds or may come to hold, and reports
 * nearly all others. The store's suite has random histories with a filter.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type BloomFilterBounds, newBloomFilter } from '../src/store/bloom-filter.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Tree } from '../src/store/tree.ts'

const span = { from: 'r', to: 's' }
const keysOf = (letter: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `r${letter}${n}`)

async function treeWith(keys: readonly string[]): Promise<Tree> {
  const tree = memoryTree()
  await tree.commit(changesOf(keys.map((key) => [key, Buffer.from('v')])))
  return tree
}

/** [what, stored before, commits behind which it reads on, noted, bounds, key, whether it lacks] */
// biome-ignore format: a table
const rows: readonly (readonly [string, string[], number, string[], Partial<BloomFilterBounds>, string, boolean])[] = [
  ['an empty tree',                    [],               0, [],     {},                                    'rx', true],
  ['a key of another type',            [],               0, [],     {},                                    'qx', false],
  ['a stored key',                     ['rx'],           0, [],     {},                                    'rx', false],
  ['beside a stored key',              ['rx'],           0, [],     {},                                    'ry', true],
  ['an added key',                     [],               0, ['rx'], {},                                    'rx', false],
  ['a key that is not read yet',           ['ra', 'rx'],     0, [],     { keys_at_first: 1 },                  'rx', false],
  ['no key before all are read',        ['ra', 'rx'],    0, [],     { keys_at_first: 1 },                  'ry', false],
  ['nor while more may come',           ['ra', 'rx'],     1, [],     { keys_at_first: 1, keys_per_commit: 1 }, 'ry', false],
  ['but then it is',                   ['ra', 'rx'],     2, [],     { keys_at_first: 1, keys_per_commit: 1 }, 'ry', true],
  ['but not a key that was read',      ['ra', 'rx'],     2, [],     { keys_at_first: 1, keys_per_commit: 1 }, 'rx', false],
  ['keys outside are not read',        ['q', 's', 't'],  0, [],     { keys_at_first: 1 },                  'rx', true],
]

describe('isAbsent', () => {
  for (const [what, stored, commits, noted, bounds, key, expected] of rows) {
    test(`${what}: ${expected}`, async () => {
      const filter = newBloomFilter(await treeWith(stored), span, { ...bounds, pause_factor: 0 })
      for (const one of noted) filter.add(one)
      for (let n = 0; n < commits; n++) {
        filter.isAbsent(key)
        filter.fill()
      }
      assert.equal(filter.isAbsent(key), expected)
    })
  }
})

/** [keys stored, keys noted, words at most, how many of the others may be taken for there] */
// biome-ignore format: a table
const crowds: readonly (readonly [number, number, number, number])[] = [
  [0,      1_000,   1_024,  0.05],
  [20_000, 20_000,  65_536, 0.15],
  [20_000, 80_000,  65_536, 0.3],
  [0,      100_000, 16,     1],
]

describe('many keys', () => {
  for (const [stored, noted, words_max, share] of crowds) {
    test(`${stored} stored and ${noted} added in ${words_max} words`, async () => {
      const there = [...keysOf('s', stored), ...keysOf('n', noted)]
      const tree = await treeWith(there.slice(0, stored))
      const bounds = {
        words_min: Math.min(1_024, words_max),
        words_max,
        keys_per_commit: 1_000,
        pause_factor: 0,
      }
      const filter = newBloomFilter(tree, span, bounds)
      for (const key of there.slice(stored)) filter.add(key)
      for (let read = 0; read <= stored; read += 1_000) {
        filter.isAbsent('rx')
        filter.fill()
      }
      assert.deepEqual(there.filter(filter.isAbsent), [])
      const others = keysOf('o', 10_000)
      const taken = others.filter((key) => !filter.isAbsent(key)).length
      assert.ok(taken <= share * others.length, `${taken} of ${others.length}`)
    })
  }
})

test('no key of a tree that cannot be read is absent', async () => {
  let reads = 0
  const tree: Pick<Tree, 'range'> = {
    *range(from) {
      if (++reads > 1) throw new Error('gone')
      yield { key: `${from}a`, value: Buffer.alloc(0) }
    },
  }
  const filter = newBloomFilter(tree, span, { keys_at_first: 1 })
  filter.isAbsent('rx')
  filter.fill()
  assert.equal(filter.isAbsent('rx'), false)
})

test('of a tree in parts it knows the keys in memory, and reads only what lies below', async () => {
  const tree = {
    range: () => assert.fail('the whole tree was scanned'),
    parts: () => ({ newer: [changesOf([['rx', Buffer.from('v')]])], below }),
  }
  const below = await treeWith(['ra', 'rb'])
  const filter = newBloomFilter(tree, span)
  assert.deepEqual(['rx', 'ra', 'rb', 'ry'].map(filter.isAbsent), [false, false, false, true])
})

test('a store adds the keys that are put, and fills the filter after each commit', async () => {
  const tree = await treeWith(['ra', 'rb', 'rc'])
  const filter = newBloomFilter(tree, span, {
    keys_at_first: 1,
    keys_per_commit: 1,
    pause_factor: 0,
  })
  const store = storeOf(tree, { filter })
  const found = (): Promise<string> =>
    store.update((tx) =>
      ['ra', 'rb', 'rc', 'rd', 'rx'].filter((key) => tx.get(key) !== undefined).join(' '),
    )
  const put = (key: string): Promise<void> => store.update((tx) => tx.put(key, Buffer.from('v')))
  for (const key of ['rd', 'q1', 'q2', 'q3', 'q4']) {
    await found()
    await put(key)
  }
  assert.deepEqual([filter.isAbsent('rx'), await found()], [true, 'ra rb rc rd'])
  await store.update((tx) => tx.del('rd'))
  assert.equal(await found(), 'ra rb rc')
  await put('rd')
  assert.equal(await found(), 'ra rb rc rd')
  await store.close()
})

test('is not filled without lookups, nor without a pause', async () => {
  let reads = 0
  const stored = await treeWith(keysOf('s', 1_000))
  const tree: Pick<Tree, 'range'> = {
    range(...span) {
      reads++
      return stored.range(...span)
    },
  }
  const filter = newBloomFilter(tree, span, { keys_at_first: 1, pause_factor: 1e9 })
  filter.fill()
  assert.equal(reads, 1)
  for (let n = 0; n < 3; n++) {
    filter.isAbsent('rx')
    filter.fill()
  }
  assert.equal(reads, 2)
})
