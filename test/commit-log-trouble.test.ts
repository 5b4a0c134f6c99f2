/**
 * A checkpoint that fails while callers go on: nothing is written any more, every acknowledged
 * group can be read and is there at the next open, and the close ends.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { EventName } from '../src/core/event-table.ts'
import type { Emit } from '../src/core/events.ts'
import { fault } from '../src/core/faults.ts'
import { type CheckpointerPort, newCheckpointer } from '../src/store/commit-log/checkpointer.ts'
import type { CommitLogWriter } from '../src/store/commit-log/writer.ts'
import { storeOf } from '../src/store/group-commit.ts'
import {
  assertState,
  closedState,
  failingAt,
  groupOf,
  openWithCommitLog,
  stateOf,
  tiny_bounds,
} from './support/commit-log-setup.ts'
import type { InProcessTree } from './support/in-process-tree.ts'
import { turns } from './support/store-trees.ts'

const { errno } = constants
const full = fault('no_space')

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'conveyor-trouble-'))
})
after(() => rm(folder, { recursive: true, force: true }))

it('no segment is frozen that has a refused frame on disk', () => {
  const commit_log = {
    active: () => ({ bytes: () => 64 }),
    frozen: () => ({ bytes: () => 0 }),
    isSettled: () => false,
    rotate: () => assert.fail('the next frame would have the number of the refused one'),
  } as unknown as CommitLogWriter
  const port = {
    ...{ commitLog: () => commit_log, slice: tiny_bounds.slice, options: { emit() {} } },
    tree: { verified() {} },
  } as unknown as CheckpointerPort
  const checkpointer = newCheckpointer(port)
  checkpointer.begin()
  assert.equal(checkpointer.running(), undefined)
})

describe('a close whose checkpoint fails leaves the rest to the commit log', () => {
  const rows: readonly (readonly [keyof typeof errno, readonly string[]])[] = [
    ['EIO', ['checkpoint_failed', 'broken']],
    ['ENOSPC', ['checkpoint_waits']],
  ]
  for (const [name, expected] of rows) {
    it(name, async () => {
      const heard: string[] = []
      const port = {
        commitLog: () => ({
          ...{ frozen: () => ({ bytes: () => 64, size: 1 }), unmergedBytes: () => 64 },
          frozenFrames: () => ({ frames: Buffer.alloc(64), first_seq: 1, last_seq: 1 }),
        }),
        tree: {
          ...{ freeBytes: () => 0, refresh() {}, verified() {} },
          write: async () => {
            throw Object.assign(new Error('it cannot'), { code: errno[name] })
          },
        },
        ...{ id: Buffer.alloc(16), left_bytes_max: 0, slice: tiny_bounds.slice },
        options: { emit: (event: string) => void heard.push(event) },
        onBroken: () => void heard.push('broken'),
      } as unknown as CheckpointerPort
      assert.equal(await newCheckpointer(port).finish(), false)
      assert.deepEqual(heard, expected)
    })
  }
})

describe('a close checkpoints what is too much to be left behind the pages', () => {
  /** [bytes that LMDB lacks, checkpoints] */
  const rows: readonly (readonly [number, number])[] = [
    [0, 0],
    [100, 0],
    [101, 1],
  ]
  for (const [unmerged_bytes, checkpoints] of rows) {
    it(`${unmerged_bytes} bytes`, async () => {
      let [written, left, frozen] = [0, unmerged_bytes, 0]
      const port = {
        commitLog: () => ({
          active: () => ({ bytes: () => left - frozen, size: 1 }),
          frozen: () => ({ bytes: () => frozen, size: 1 }),
          ...{ isSettled: () => true, unmergedBytes: () => left },
          rotate() {
            frozen = left
          },
          releaseFrozen() {
            frozen = left = 0
          },
          frozenFrames: () => ({ frames: Buffer.alloc(64), first_seq: 1, last_seq: 1 }),
        }),
        tree: {
          ...{ refresh() {}, verified() {} },
          write: async () => {
            written++
          },
        },
        ...{
          id: Buffer.alloc(16),
          left_bytes_max: 100,
          slice: tiny_bounds.slice,
          onDone() {},
          onMerged() {},
        },
        options: { emit() {} },
        onBroken: assert.fail,
      } as unknown as CheckpointerPort
      assert.equal(await newCheckpointer(port).finish(), true)
      assert.equal(written, checkpoints)
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
        commitLog: () => ({
          ...{
            frozen: () => ({ bytes: () => 64, size: 1 }),
            frozenFrames,
            unmergedBytes: () => 64,
          },
        }),
        tree: {
          freeBytes: () => free_bytes,
          refresh() {},
          verified() {},
          write: () => Promise.reject(full),
        },
        ...{ id: Buffer.alloc(16), left_bytes_max: 0, slice: tiny_bounds.slice },
        options: {
          emit(event: string) {
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
      unmergedBytes: () => frames.length,
    }),
    tree: {
      write: () => Promise.reject(full),
      ...{ freeBytes: () => -1, verified() {} },
      refresh() {
        throw new Error('MDB_PANIC')
      },
    },
    ...{ id: Buffer.alloc(16), left_bytes_max: 0, slice: tiny_bounds.slice },
    options: { emit: (event: string) => void heard.push(event) },
    onBroken: ({ message }: Error) => void heard.push(message),
  } as unknown as CheckpointerPort
  assert.equal(await newCheckpointer(port).finish(), false)
  assert.deepEqual(heard, ['checkpoint_failed', 'MDB_PANIC'])
})

describe('a checkpoint that fails', () => {
  const failing = (tree: InProcessTree) => failingAt(tree, 1, false)
  it('is the last one, and no acknowledged group is lost', async () => {
    const path = join(folder, 'gone.lmdb')
    const tree = await openWithCommitLog(path, tiny_bounds, { over: failing })
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
    await tree.close()
    assertState(await closedState(path), acked, acked + 1)
  })

  it('rejects every later update, and a backup', async () => {
    const path = join(folder, 'told.lmdb')
    const failures: string[] = []
    const told: EventName[] = []
    const emit: Emit = (event) => void told.push(event)
    const store = storeOf(await openWithCommitLog(path, tiny_bounds, { emit, over: failing }), {
      onFail: ({ code }) => void failures.push(code),
      emit,
    })
    const put = (n: number): Promise<void> =>
      store.update((tx) => {
        for (const [key, value] of groupOf(n)) value === null ? tx.del(key) : tx.put(key, value)
      })
    await put(1)
    await assert.rejects(store.backup(join(folder, 'copy.lmdb')))
    const outside = 'the store has failed'
    await assert.rejects(put(2), { code: 'store_failed', outside })
    await assert.rejects(put(3), { code: 'store_failed' })
    assert.deepEqual(failures, ['store_failed'])
    const events = ['backup_begun', 'checkpoint_failed', 'store_failed']
    const heard = told.filter((event) => !event.startsWith('slow_'))
    assert.deepEqual(heard.toSorted(), events)
    assert.equal(await store.view((view) => view.get('last')?.toString()), '1')
    await store.close()
    assertState(await closedState(path), 1)
  })
})
