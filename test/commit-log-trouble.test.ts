/**
 * A checkpoint that fails while callers go on: nothing is written any more, every acknowledged
 * group can be read and is there at the next open, and the close ends.
 */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rename, rm, rmdir } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { EventName } from '../src/core/event-table.ts'
import type { Tell } from '../src/core/events.ts'
import { type CheckpointerPort, newCheckpointer } from '../src/store/commit-log/checkpointer.ts'
import type { CommitLogWriter } from '../src/store/commit-log/writer.ts'
import { storeOf } from '../src/store/group-commit.ts'
import {
  assertState,
  closedState,
  groupOf,
  openWithCommitLog,
  stateOf,
  tiny_bounds,
} from './support/commit-log-setup.ts'
import { turns } from './support/store-trees.ts'

const { errno } = constants

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'conveyor-trouble-'))
})
after(() => rm(folder, { recursive: true, force: true }))

/** The checkpoint's thread, which opens the data file with its first job, finds no file there. */
async function hide(path: string): Promise<void> {
  await rename(path, `${path}-away`)
  await mkdir(path)
}

async function bringBack(path: string): Promise<void> {
  await rmdir(path)
  await rename(`${path}-away`, path)
}

it('no segment is frozen that has a refused frame on disk', () => {
  const commit_log = {
    active: () => ({ bytes: () => 64 }),
    frozen: () => ({ bytes: () => 0 }),
    isSettled: () => false,
    rotate: () => assert.fail('the next frame would have the number of the refused one'),
  } as unknown as CommitLogWriter
  const port = {
    ...{ commitLog: () => commit_log, slice: tiny_bounds.slice, options: { tell() {} } },
  } as unknown as CheckpointerPort
  const checkpointer = newCheckpointer(port)
  checkpointer.begin()
  assert.equal(checkpointer.running(), undefined)
})

describe('a close whose last commit fails leaves the rest to the commit log', () => {
  const rows: readonly (readonly [keyof typeof errno, readonly string[]])[] = [
    ['EIO', ['checkpoint_failed', 'broken']],
    ['ENOSPC', []],
  ]
  for (const [name, expected] of rows) {
    it(name, async () => {
      const heard: string[] = []
      const empty = { bytes: () => 0 }
      const port = {
        commitLog: () => ({ active: () => empty, frozen: () => empty, seq: () => 1 }),
        tree: {
          commit() {
            throw Object.assign(new Error('it cannot'), { code: errno[name] })
          },
        },
        ...{ id: Buffer.alloc(16), is_left_behind: true, slice: tiny_bounds.slice },
        options: { tell: (event: string) => void heard.push(event) },
        onBroken: () => void heard.push('broken'),
      } as unknown as CheckpointerPort
      assert.equal(await newCheckpointer(port).finish(), false)
      assert.deepEqual(heard, expected)
    })
  }
})

describe('a checkpoint without disk space is tried again', () => {
  const mib = 1024 * 1024
  /** [when, bytes that become free, attempts] */
  const rows: readonly (readonly [string, number, number])[] = [
    ['later where no more is free', 0, 1],
    ['later where little more is free', mib - 1, 1],
    ['at once where others have made room', mib, 2],
  ]
  for (const [when, more_bytes, attempts] of rows) {
    it(when, async () => {
      let free_bytes = -8 * mib
      let tried = 0
      const frames = Buffer.alloc(64)
      const frozenFrames = () => {
        tried++
        return { frames, first_seq: 1, last_seq: 0 }
      }
      const port = {
        commitLog: () => ({ frozen: () => ({ bytes: () => 64, size: 1 }), frozenFrames }),
        tree: { freeBytes: () => free_bytes, refresh() {} },
        ...{ id: Buffer.alloc(16), is_left_behind: true, slice: tiny_bounds.slice },
        options: {
          tell(event: string) {
            assert.equal(event, 'checkpoint_waits')
            free_bytes += more_bytes
          },
        },
        onBroken: assert.fail,
      } as unknown as CheckpointerPort
      assert.equal(await newCheckpointer(port).finish(), false)
      assert.equal(tried, attempts)
    })
  }
})

it('a full disk that leaves the data file useless is told as a failure', async () => {
  const heard: string[] = []
  const frames = Buffer.alloc(64)
  const segment = { bytes: () => frames.length, size: 1 }
  const port = {
    commitLog: () => ({
      ...{ frozen: () => segment, frozenFrames: () => ({ frames, first_seq: 1, last_seq: 0 }) },
    }),
    tree: {
      freeBytes: () => -1,
      refresh() {
        throw new Error('MDB_PANIC')
      },
    },
    ...{ id: Buffer.alloc(16), is_left_behind: true, slice: tiny_bounds.slice },
    options: { tell: (event: string) => void heard.push(event) },
    onBroken: ({ message }: Error) => void heard.push(message),
  } as unknown as CheckpointerPort
  assert.equal(await newCheckpointer(port).finish(), false)
  assert.deepEqual(heard, ['checkpoint_failed', 'MDB_PANIC'])
})

describe('a checkpoint that fails', () => {
  it('is the last one, and no acknowledged group is lost', async () => {
    const path = join(folder, 'gone.lmdb')
    const tree = await openWithCommitLog(path, tiny_bounds)
    await hide(path)
    let acked = 0
    let refused = 0
    while (refused < 3) {
      await tree.commit(groupOf(acked + 1)).then(
        () => acked++,
        () => refused++,
      )
      await turns(20)
      assertState(stateOf(tree), acked)
    }
    await bringBack(path)
    await tree.close()
    assertState(await closedState(path), acked, acked + 1)
  })

  it('rejects every later update, and a backup', async () => {
    const path = join(folder, 'told.lmdb')
    const failures: string[] = []
    const told: EventName[] = []
    const tell: Tell = (event) => void told.push(event)
    const store = storeOf(await openWithCommitLog(path, tiny_bounds, { tell }), {
      onFail: ({ code }) => void failures.push(code),
      tell,
    })
    const put = (n: number): Promise<void> =>
      store.update((tx) => {
        for (const [key, value] of groupOf(n)) value === null ? tx.del(key) : tx.put(key, value)
      })
    await hide(path)
    await put(1)
    await assert.rejects(store.backup(join(folder, 'copy.lmdb')))
    const outside = 'the store has failed'
    await assert.rejects(put(2), { code: 'store_failed', outside })
    await assert.rejects(put(3), { code: 'store_failed' })
    assert.deepEqual(failures, ['store_failed'])
    const failing = ['backup_begun', 'checkpoint_failed', 'store_failed']
    const heard = told.filter((event) => !event.startsWith('slow_'))
    assert.deepEqual(heard.toSorted(), failing)
    assert.equal(await store.view((view) => view.get('last')?.toString()), '1')
    await bringBack(path)
    await store.close()
    assertState(await closedState(path), 1)
  })
})
