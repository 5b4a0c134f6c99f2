/**
 * The suite of every tree, run below store/group-commit: rows of scans, the promises of the port
 * one by one, and random histories against a model. A new tree calls `storeSuite`.
 */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { after } from '../../src/codec/keys.ts'
import { type Fault, fault } from '../../src/core/faults.ts'
import { storeOf } from '../../src/store/group-commit.ts'
import type { Entry, Range, Store, View } from '../../src/store/store.ts'
import { key_bytes_max, type Tree } from '../../src/store/tree.ts'
import { checkAgainstModel } from './store-model.ts'
import { failingTree, heldTree, turns } from './store-trees.ts'

/** A place for one tree. */
export interface TreeHarness {
  /** Opens the tree; after a close the same one again, where it lasts. */
  open(): Promise<Tree>
  readonly lasts: boolean
  remove(): Promise<void>
}

const longest = 'z'.repeat(key_bytes_max)
/** Keys that are put, in no order; each value is the key's place here. */
const put_keys = ['b', 'a', 'ab', 'a\x00', '\xff', longest, '\x01', 'c', 'a\xff', '\xff\xff']
const all = ['\x01', 'a', 'a\x00', 'ab', 'a\xff', 'b', 'c', longest, '\xff', '\xff\xff']

const scanRows: [what: string, range: Range, keys: string[]][] = [
  ['everything', { from: '', to: '\xff\xff\xff', limit: 99 }, all],
  [
    'everything backwards',
    { from: '', to: '\xff\xff\xff', limit: 99, reverse: true },
    [...all].reverse(),
  ],
  ['from is in, to is not', { from: 'a', to: 'b', limit: 99 }, ['a', 'a\x00', 'ab', 'a\xff']],
  [
    'the same backwards',
    { from: 'a', to: 'b', limit: 99, reverse: true },
    ['a\xff', 'ab', 'a\x00', 'a'],
  ],
  ['bounds that are no keys', { from: 'aa', to: 'bb', limit: 99 }, ['ab', 'a\xff', 'b']],
  ['the same backwards', { from: 'aa', to: 'bb', limit: 99, reverse: true }, ['b', 'a\xff', 'ab']],
  ['a limit', { from: 'a', to: 'z', limit: 2 }, ['a', 'a\x00']],
  ['a limit backwards', { from: 'a', to: 'z', limit: 2, reverse: true }, ['c', 'b']],
  ['no limit left', { from: 'a', to: 'z', limit: 0 }, []],
  ['nothing between', { from: 'd', to: 'e', limit: 9 }, []],
  ['nothing between, backwards', { from: 'd', to: 'e', limit: 9, reverse: true }, []],
  ['one key', { from: 'c', to: 'c\x00', limit: 9 }, ['c']],
  ['an empty range', { from: 'c', to: 'c', limit: 9 }, []],
  ['a range the wrong way round', { from: 'c', to: 'a', limit: 9 }, []],
  ['the wrong way round, backwards', { from: 'c', to: 'a', limit: 9, reverse: true }, []],
  ['from behind the longest key', { from: after(longest), to: '\xff\xff', limit: 9 }, ['\xff']],
  [
    'the same backwards',
    { from: after(longest), to: '\xff\xff', limit: 9, reverse: true },
    ['\xff'],
  ],
  ['to behind the longest key', { from: 'c', to: after(longest), limit: 9 }, ['c', longest]],
  [
    'the same backwards',
    { from: 'c', to: after(longest), limit: 9, reverse: true },
    [longest, 'c'],
  ],
  ['up to the last byte', { from: '\xff', to: '\xff\xff', limit: 9 }, ['\xff']],
  ['behind the last byte', { from: '\xff\x00', to: '\xff\xff\xff', limit: 9 }, ['\xff\xff']],
]

/** Declares the suite; `runs` is how many random histories are tried. */
export function storeSuite(
  name: string,
  makeHarness: () => Promise<TreeHarness>,
  runs = 100,
): void {
  const withStore = (fn: (store: Store, tree: Tree) => Promise<void>) => async () => {
    const harness = await makeHarness()
    const tree = await harness.open()
    const store = storeOf(tree)
    try {
      await fn(store, tree)
    } finally {
      await store.close()
      await harness.remove()
    }
  }
  const withTree = (fn: (tree: Tree) => Promise<void>) => async () => {
    const harness = await makeHarness()
    try {
      await fn(await harness.open())
    } finally {
      await harness.remove()
    }
  }

  describe(`${name}: scans`, () => {
    const ranges = scanRows.map(([, range]) => range)
    let [scanned, viewed, again]: Entry[][][] = []
    before(
      withStore(async (store) => {
        const copies = (scan: View['scan']): Entry[][] => ranges.map((range) => copyOf(scan(range)))
        scanned = await store.update((tx) => {
          for (const [place, key] of put_keys.entries()) tx.put(key, Buffer.from([place]))
          tx.put('bz', Buffer.from('gone'))
          tx.del('bz')
          return copies(tx.scan)
        })
        viewed = await store.view((view) => copies(view.scan))
        again = await store.update((tx) => {
          tx.put('aa', Buffer.from('new'))
          tx.del('aa')
          tx.put('b', Buffer.from('newer'))
          return copies(tx.scan)
        })
      }),
    )
    for (const [index, [what, , keys]] of scanRows.entries()) {
      it(`${index} ${what}`, () => {
        assert.deepEqual(keysOf(scanned?.[index] ?? []), keys, 'over what is not on disk yet')
        assert.deepEqual(keysOf(viewed?.[index] ?? []), keys, 'over the tree')
        assert.deepEqual(keysOf(again?.[index] ?? []), keys, 'over both')
        for (const { key, value } of again?.[index] ?? []) {
          const expected = key === 'b' ? 'newer' : String.fromCharCode(put_keys.indexOf(key))
          assert.equal(value.toString('latin1'), expected)
        }
      })
    }
  })

  describe(`${name}: promises of the port`, () => {
    it(
      'a transaction that throws changes nothing and rejects with what it threw',
      withStore(async (store) => {
        const thrown = new Error('on purpose')
        await store.update((tx) => tx.put('kept', Buffer.from('1')))
        const before = store.update((tx) => tx.put('with it', Buffer.from('2')))
        const failed = store.update((tx) => {
          tx.put('kept', Buffer.from('changed'))
          tx.put('kept', Buffer.from('changed twice'))
          tx.del('with it')
          tx.put('new', Buffer.from('3'))
          throw thrown
        })
        await assert.rejects(failed, (error) => error === thrown)
        await before
        const state = await store.view((view) => view.scan({ from: '', to: '\xff', limit: 9 }))
        assert.deepEqual(textsOf(state), ['kept=1', 'with it=2'])
      }),
    )

    it(
      'an update resolves when its commit does, and so does one that only read',
      withTree(async (below) => {
        const { tree, asked, letThrough } = heldTree(below)
        const store = storeOf(tree)
        const order: string[] = []
        const note = (what: string) => () => void order.push(what)
        const first = store.update((tx) => tx.put('a', Buffer.from('1'))).then(note('first'))
        await turns()
        assert.equal(asked(), 1)
        const early = store.update((tx) => tx.get('a')?.toString())
        const earlyDone = early.then(note('early'))
        const second = store
          .update((tx) => {
            assert.equal(tx.get('a')?.toString(), '1', 'sees what is being written')
            tx.put('a', Buffer.from('2'))
          })
          .then(note('second'))
        const reader = store.update((tx) => tx.get('a')?.toString())
        const readerDone = reader.then(note('reader'))
        await turns()
        assert.deepEqual(order, [], 'nothing is durable yet')
        assert.equal(await store.view((view) => view.get('a')), undefined)
        letThrough()
        await first
        await turns()
        assert.deepEqual([order, await early], [['first', 'early'], '1'])
        await earlyDone
        assert.equal(await store.view((view) => view.get('a')?.toString()), '1')
        assert.equal(asked(), 2)
        letThrough()
        await Promise.all([second, readerDone])
        assert.deepEqual([order, await reader], [['first', 'early', 'second', 'reader'], '2'])
        const idle = store.update((tx) => tx.get('a')?.toString())
        assert.equal(await idle, '2', 'with nothing under way it waits for nothing')
        await store.close()
      }),
    )

    it(
      'updates that come while a commit is under way share the next',
      withTree(async (below) => {
        const { tree, asked, letThrough } = heldTree(below)
        const store = storeOf(tree)
        const sent = ['a', 'b', 'c'].map((key) =>
          store.update((tx) => tx.put(key, Buffer.from(key))),
        )
        await turns()
        assert.equal(asked(), 1)
        letThrough()
        await sent[0]
        assert.equal(asked(), 2)
        letThrough()
        await Promise.all(sent)
        assert.equal(asked(), 2)
        await store.close()
      }),
    )

    it(
      'a commit for which there is no space is refused, with what saw its changes, and all goes on',
      withTree(async (below) => {
        let is_full = true
        const { tree, letThrough } = heldTree({
          ...below,
          commit: async (writes) => {
            if (is_full) throw fault('no_space')
            await below.commit(writes)
          },
        })
        const store = storeOf(tree)
        const sent = ['a', 'b'].map((key) => store.update((tx) => tx.put(key, Buffer.from('1'))))
        await turns()
        letThrough()
        for (const one of sent) await assert.rejects(one, { code: 'no_space' })
        assert.equal(await store.update((tx) => tx.get('a')), undefined)
        is_full = false
        const later = store.update((tx) => tx.put('c', Buffer.from('1')))
        await turns()
        letThrough()
        await later
        const state = await store.view((view) => view.scan({ from: '', to: '\xff', limit: 9 }))
        assert.deepEqual(textsOf(state), ['c=1'])
        await store.close()
      }),
    )

    it(
      'after a failed commit nothing is written any more, and views still answer',
      withTree(async (below) => {
        const told: Fault[] = []
        const { tree, letThrough } = heldTree(failingTree(below, 2))
        const store = storeOf(tree, { onFail: (failure) => told.push(failure) })
        const first = store.update((tx) => tx.put('a', Buffer.from('1')))
        await turns()
        letThrough()
        await first
        const in_flight = [
          store.update((tx) => tx.put('a', Buffer.from('2'))),
          store.update((tx) => tx.put('b', Buffer.from('2'))),
        ]
        await turns()
        const open = [
          store.update((tx) => tx.put('c', Buffer.from('3'))),
          store.update((tx) => tx.get('c')),
        ]
        letThrough()
        const sent = await Promise.allSettled([...in_flight, ...open])
        const late = await Promise.allSettled([store.update((tx) => tx.get('a'))])
        for (const one of [...sent, ...late]) {
          assert.equal(one.status === 'rejected' && one.reason.code, 'store_failed')
        }
        assert.deepEqual(
          told.map((failure) => [failure.code, (failure.cause as Error).message]),
          [['store_failed', 'the disk is broken']],
        )
        const state = await store.view((view) => view.scan({ from: '', to: '\xff', limit: 9 }))
        assert.deepEqual(textsOf(state), ['a=1'])
        await store.close()
      }),
    )

    it(
      'closing waits for what was sent and refuses what comes then',
      withTree(async (tree) => {
        const store = storeOf(tree)
        const sent = [1, 2, 3].map((n) => store.update((tx) => tx.put('n', Buffer.from([n]))))
        const closed = store.close()
        await assert.rejects(
          store.update((tx) => tx.get('n')),
          { code: 'shutting_down' },
        )
        await assert.rejects(
          store.view((view) => view.get('n')),
          { code: 'shutting_down' },
        )
        await closed
        await Promise.all(sent)
        await store.close()
      }),
    )

    for (const [what, key] of [
      ['one byte too many', 'k'.repeat(key_bytes_max + 1)],
      ['no byte', ''],
    ] as const) {
      it(
        `a key with ${what} is refused before anything is written`,
        withStore(async (store, tree) => {
          const refused = store.update((tx) => {
            tx.put('before', Buffer.from('1'))
            tx.put(key, Buffer.from('2'))
          })
          await assert.rejects(refused, { code: 'internal_error' })
          await assert.rejects(
            store.update((tx) => tx.del(key)),
            { code: 'internal_error' },
          )
          assert.equal(await store.update((tx) => tx.get(key)), undefined)
          assert.deepEqual([...tree.range('', '\xff', false)], [])
        }),
      )
    }

    it(
      'the longest key, large values and empty ones come back as they were',
      withStore(async (store) => {
        const longest = '\xff'.repeat(key_bytes_max)
        const large = Buffer.alloc(5_000_000, 'large')
        const page = Buffer.alloc(40_000, 'page')
        await store.update((tx) => {
          tx.put(longest, Buffer.from('longest'))
          tx.put('large', large)
          tx.put('page', page)
          tx.put('empty', Buffer.alloc(0))
        })
        await store.view((view) => {
          const got = view.get('large')
          const other = view.get('page')
          assert.equal(view.get('empty')?.length, 0)
          assert.equal(view.get(longest)?.toString(), 'longest')
          assert.ok(got?.equals(large), 'a read is good until the function returns')
          assert.ok(other?.equals(page))
          const scanned = view.scan({ from: '', to: longest, limit: 9 })
          assert.deepEqual(keysOf(scanned), ['empty', 'large', 'page'])
          assert.ok(scanned[1]?.value.equals(large))
          assert.ok(scanned[2]?.value.equals(page))
        })
      }),
    )

    it(
      'many keys of one commit are there at once, and deletes of what is not there do no harm',
      withStore(async (store) => {
        const keys = Array.from({ length: 2_000 }, (_, n) => `k${String(n).padStart(5, '0')}`)
        await store.update((tx) => {
          for (const key of keys) tx.put(key, Buffer.from(key))
          for (const key of keys) tx.del(`no ${key}`)
        })
        const range = { from: 'k', to: 'l', limit: 10_000 }
        assert.deepEqual(keysOf(await store.view((view) => view.scan(range))), keys)
        await store.update((tx) => {
          for (const key of keys) if (!key.endsWith('7')) tx.del(key)
        })
        const left = await store.view((view) => view.scan({ ...range, reverse: true }))
        assert.deepEqual(keysOf(left), keys.filter((key) => key.endsWith('7')).reverse())
        assert.equal(await store.update((tx) => tx.del('nothing')), undefined)
      }),
    )

    it('random histories end as a plain map does', async () => {
      await checkAgainstModel(makeHarness, runs)
    })
  })
}

/** A read Buffer is valid until the reading function returns. */
function copyOf(entries: readonly Entry[]): Entry[] {
  return entries.map(({ key, value }) => ({ key, value: Buffer.from(value) }))
}

function keysOf(entries: readonly { readonly key: string }[]): string[] {
  return entries.map(({ key }) => key)
}

function textsOf(entries: readonly { readonly key: string; readonly value: Buffer }[]): string[] {
  return entries.map(({ key, value }) => `${key}=${value}`)
}
