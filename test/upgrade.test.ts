/**
 * A file of format 1 becomes one of the present format, whole and also if it is broken off after
 * each of its slices. The file (test/golden/format-1) was written by the last program of that
 * format: tasks of each status, and refs that were used again, in process 7; process 8 was removed.
 * A file of format 2 gets the present format, or goes on where an upgrade of format 1 stopped.
 */
import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { failedOf, metaKey, timeOfKey } from '../src/codec/keys.ts'
import type { Emit } from '../src/core/events.ts'
import { beginUpgrade, upgradeFile } from '../src/engine/file/upgrade.ts'
import { openEngine } from '../src/open.ts'
import { changesOf } from '../src/store/change-buffer.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { openReadOnly } from '../src/store/read-only.ts'
import type { Store } from '../src/store/store.ts'
import type { Tree } from '../src/store/tree.ts'
import { openInProcess } from './support/in-process-tree.ts'
import { engineOn } from './support/model-setup.ts'
import { tempFolder } from './support/package-folder.ts'

const everything = ['', '\xff', false] as const
const golden = gunzipSync(readFileSync(new URL('golden/format-1.gz', import.meta.url)))
const folder = tempFolder()
const path = join(folder.path, 'tasks.lmdb')
let entries: [string, Buffer][] = []

async function entriesOf(file: string): Promise<[string, Buffer][]> {
  const tree = await openInProcess(file)
  const found = [...tree.range(...everything)]
  const copies = found.map(({ key, value }): [string, Buffer] => [key, Buffer.from(value)])
  await tree.close()
  return copies
}

before(async () => {
  writeFileSync(path, golden)
  entries = await entriesOf(path)
})
after(() => folder.remove())

async function oldTree(): Promise<Tree> {
  const tree = memoryTree()
  await tree.commit(changesOf(entries))
  const changes = changesOf([])
  beginUpgrade(changes, tree)
  await tree.commit(changes)
  return tree
}

const dump = (tree: Tree): string[] =>
  [...tree.range(...everything)].map(({ key, value }) => `${key} ${value.toString('hex')}`)

async function upgraded(slice_tasks?: number): Promise<Tree> {
  const tree = await oldTree()
  await upgradeFile(storeOf(tree), slice_tasks === undefined ? {} : { slice_tasks })
  return tree
}

/** A store that fails after some transactions, as a process that is killed. */
function killedAfter(store: Store, updates: number): Store {
  let left = updates
  return {
    ...store,
    update: (fn) => (left-- > 0 ? store.update(fn) : Promise.reject(new Error('killed'))),
  }
}

describe('an upgrade', () => {
  for (const slice_tasks of [1, 2, 7, 50]) {
    it(`in slices of ${slice_tasks}, killed after each, ends as in one`, async () => {
      const whole = dump(await upgraded())
      const tree = await oldTree()
      let kills = 0
      for (; ; kills++) {
        const store = killedAfter(storeOf(tree), 1)
        const end = await upgradeFile(store, { slice_tasks }).catch((error: Error) => error.message)
        if (end === undefined) break
        assert.equal(end, 'killed')
      }
      assert.ok(kills >= 20 / slice_tasks / 2, `${kills} kills`)
      assert.deepEqual(dump(tree), whole)
    })
  }

  it('writes nothing the second time', async () => {
    const tree = await upgraded()
    const before = dump(tree)
    await upgradeFile(killedAfter(storeOf(tree), 1))
    assert.deepEqual(dump(tree), before)
    assert.equal(tree.get(metaKey('format'))?.toString(), '3')
  })

  it('is made when a file is opened, once', async () => {
    for (let opened = 0; opened < 2; opened++) {
      const engine = await openEngine(path, { secret_key: '11'.repeat(32), background: false })
      assert.equal((await engine.task({ conv_id: 7, ref: 'kept-0' }))?.status, 'processed')
      assert.deepEqual((await engine.check()).breaches, [])
      // After a kill here an earlier program would find this, and none of the commit log.
      copyFileSync(path, `${path}-killed`)
      const below = new Map(await entriesOf(`${path}-killed`))
      assert.equal(below.get(metaKey('format'))?.toString(), '3')
      await engine.close()
      const closed = await openReadOnly(path)
      assert.equal(closed.get(metaKey('format'))?.toString(), '3')
      assert.equal(closed.get(metaKey('upgrade')), undefined)
      await closed.close()
    }
  })

  it('of format 2 is its format alone, and goes on where one of format 1 was broken off', async () => {
    for (const cursor of [undefined, '\x08']) {
      const tree = await upgraded()
      const whole = dump(tree)
      const two = changesOf([[metaKey('format'), Buffer.from('2')]])
      if (cursor !== undefined) two.put(metaKey('upgrade'), Buffer.from('\x08\xff'))
      await tree.commit(two)
      const changes = changesOf([])
      beginUpgrade(changes, tree)
      assert.deepEqual([...changes].length, cursor === undefined ? 2 : 1)
      await tree.commit(changes)
      const told: unknown[] = []
      await upgradeFile(storeOf(tree), { emit: (event) => void told.push(event) })
      assert.deepEqual(told, ['upgraded'])
      assert.deepEqual(dump(tree), whole)
    }
  })

  it('tells of its end, and of its beginning where it takes long', async () => {
    const told: unknown[] = []
    const emit: Emit = (event, { tasks }) => void told.push([event, tasks])
    await upgradeFile(storeOf(await oldTree()), { emit })
    assert.deepEqual(told, [['upgraded', 21]])
    told.length = 0
    await upgradeFile(storeOf(await oldTree()), { emit, slice_tasks: 1 })
    assert.deepEqual(told, [
      ['upgrade_begun', undefined],
      ['upgraded', 21],
    ])
  })

  /** [ref, status and data of the task that a show by it answers] */
  const found: readonly (readonly [string, string | undefined])[] = [
    ['live-0', 'delayed {"amount":"x"}'],
    ['failed-0', 'failed {"amount":"x","to_be":"fail","to":"fail"}'],
    ['kept-0', 'processed {"amount":"x","to_be":"kept","to":"kept"}'],
    ['gone-0', undefined],
    ['canceled-0', 'canceled {"amount":"x"}'],
    ['twice', 'processed {"amount":"second","to":"kept"}'],
    ['then-gone', 'processed {"amount":"x","to_be":"kept","to":"kept"}'],
    ['then-live', 'delayed {"amount":"second"}'],
    ['then-failed', 'failed {"amount":"x","to_be":"fail","to":"fail"}'],
  ]
  it('leaves each ref to its live task, or else to the newest ended one', async () => {
    const tree = await upgraded()
    const engine = await engineOn(tree, { background: false })
    const shown = async (ref: string) => {
      const task = await engine.task({ conv_id: 7, ref })
      return task && `${task.status} ${task.data_text}`
    }
    for (const [ref, expected] of found) assert.equal(await shown(ref), expected, ref)
    assert.deepEqual((await engine.check()).breaches, [])
    // The live task of this ref is not kept: the ended one before it is found again.
    await engine.modify({ conv_id: 7, ref: 'then-live', data: { to: 'gone' } })
    assert.equal(await shown('then-live'), 'processed {"amount":"x","to_be":"kept","to":"kept"}')
    await engine.create({ conv_id: 7, ref: 'twice', data: {} })
    assert.deepEqual((await engine.check()).breaches, [])
    const failed = [...tree.range(failedOf('7').from, failedOf('7').to, true)]
    const { tasks: listed } = await engine.tasks.list({ conv_id: 7, status: 'failed' })
    assert.deepEqual(
      failed.map(({ key }) => timeOfKey(key).obj_id),
      listed.map(({ obj_id }) => obj_id).reverse(),
    )
    await engine.close()
  })
})
