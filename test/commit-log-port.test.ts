/**
 * The suite of the commit log, run on the two files beside the data file, on PostgreSQL and on one
 * in memory; and the store over one that fails at each step of its life.
 */
import { fault } from '../src/core/faults.ts'
import type { CommitLog } from '../src/store/commit-log/commit-log.ts'
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readBatch } from '../src/cluster/ownership/postgres-log.ts'
import { nextTurn } from '../src/core/clock.ts'
import { framesIn } from '../src/store/commit-log/frame.ts'
import { newFreeSpace } from '../src/store/commit-log/free-space.ts'
import type { Manifest } from '../src/store/commit-log/manifest.ts'
import { type KnownLog, recoverCommitLog } from '../src/store/commit-log/recovery.ts'
import { continueCommitLog, createCommitLog } from '../src/store/commit-log/segments.ts'
import { commitLogTree } from '../src/store/commit-log/tree.ts'
import { writerOver } from '../src/store/commit-log/writer.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { openTree } from './support/commit-log-setup.ts'
import { type CommitLogHarness, changesNamed, commitLogSuite } from './support/commit-log-suite.ts'
import { connectionTo, log_id, logOver, newCluster } from './support/database-cluster.ts'
import { postgresOrSkip } from './support/postgres.ts'
import { quickFolder, quickPaths } from './support/store-folder.ts'

/**
 * A commit log in memory that fails when it is told to: refuses for lack of space, is fenced off,
 * or has no answer for what it has lost or kept.
 */
type Failure = 'no_space' | 'fenced' | 'lost' | 'unanswered'

/** The frames are added to `kept`; `failureNow` is asked at each append. */
function memoryLog(kept: Buffer[], failureNow: () => Failure | undefined): CommitLog {
  return {
    async append({ arena, from, end }) {
      const failure = failureNow()
      if (failure === undefined || failure === 'unanswered') {
        kept.push(Buffer.from(arena.subarray(from, end)))
      }
      if (failure === 'no_space') throw fault('no_space')
      if (failure !== undefined) throw fault('store_failed', failure)
      return 0
    },
    rotate() {},
    merged() {},
    preallocatedBytes: () => Number.POSITIVE_INFINITY,
    isSettled: () => true,
    async settle() {},
    async end() {},
    async close() {},
  }
}

const postgres = await postgresOrSkip()

const known = (manifest: Manifest): KnownLog => ({ manifest })

async function segmentsHarness(): Promise<CommitLogHarness> {
  const folder = await quickFolder('conveyor-port-')
  const path = join(folder, 'data.lmdb')
  const manifest = { id: log_id, seq: 0, is_open: true }
  return {
    async open(seq) {
      const found = seq === 0 ? undefined : await recoverCommitLog(path, known(manifest))
      const writer =
        found === undefined
          ? await createCommitLog(path, manifest)
          : await continueCommitLog(path, manifest, found)
      return {
        writer,
        async read(seq) {
          const segments = (await recoverCommitLog(path, known({ ...manifest, seq }))) ?? []
          const frames = segments.flatMap((segment) => segment.frames)
          return frames.sort((one, other) => one.seq - other.seq)
        },
      }
    },
    remove: () => rm(folder, { recursive: true }),
  }
}

async function postgresHarness(): Promise<CommitLogHarness> {
  assert.ok(postgres !== undefined)
  const { url, sql } = await newCluster(postgres)
  const full = `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON conveyor.log EXECUTE FUNCTION full_disk()`
  return {
    async open(seq) {
      const connection = connectionTo(url)
      return {
        writer: writerOver(logOver(connection), { id: log_id, seq, is_open: true }),
        read: (after_seq) => readBatch(connection, 0, after_seq),
      }
    },
    setFull: async (is_full) =>
      void (await sql(is_full ? full : 'DROP FUNCTION full_disk CASCADE')),
    fence: async () => void (await sql('UPDATE conveyor.owner SET epoch = 2')),
    async remove() {},
  }
}

async function memoryHarness(): Promise<CommitLogHarness> {
  const kept: Buffer[] = []
  let failure: Failure | undefined
  return {
    async open(seq) {
      const commit_log = memoryLog(kept, () => failure)
      return {
        writer: writerOver(commit_log, { id: log_id, seq, is_open: true }),
        async read(after_seq) {
          const frames = kept.flatMap((bytes) => [...framesIn(bytes)])
          return frames.filter((frame) => frame.seq > after_seq)
        },
      }
    },
    async setFull(is_full) {
      failure = is_full ? 'no_space' : undefined
    },
    async fence() {
      failure = 'fenced'
    },
    async remove() {},
  }
}

commitLogSuite('in two files', segmentsHarness)
commitLogSuite('in memory', memoryHarness)
if (postgres !== undefined) commitLogSuite('in PostgreSQL', postgresHarness)

/** [bytes that a disk has left, is it asked after each commit] */
const disks: [free_bytes: number, is_asked_each: boolean][] = [
  [2 ** 30, true],
  [2 ** 30 + 1, false],
]
const newDiskPath = quickPaths('conveyor-port-asked-')
for (const [free_bytes, is_asked_each] of disks) {
  const how_often = is_asked_each ? 'after each commit' : 'ten times a second'
  it(`a disk that has ${free_bytes} bytes left is asked ${how_often}`, async () => {
    const path = newDiskPath()
    const manifest = { id: log_id, seq: 0, is_open: true }
    let asked = 0
    const freeBytes = (): number => {
      asked++
      return free_bytes
    }
    const lmdb = { ...(await openTree(path)), freeBytes }
    const writer = writerOver(
      memoryLog([], () => undefined),
      manifest,
    )
    const began_ms = performance.now()
    const tree = commitLogTree(lmdb, path, manifest, writer, { emit() {} })
    const commits = 100
    for (let n = 0; n < commits; n++) await tree.commit(changesNamed(`k${n}`))
    // At the open, at most as often as this, and once a second beside the commits.
    const times = 1 + Math.floor((performance.now() - began_ms) / 90)
    if (is_asked_each) assert.ok(asked > commits, String(asked))
    else assert.ok(asked <= times, `${asked} of ${times}`)
    await tree.close()
  })
}

/** [bytes that a disk has left, whether requests see what others free on it] */
const freed: [left: number, is_seen: boolean][] = [
  [2 ** 20, true],
  [2 ** 30 + 1, false],
]
for (const [left, is_seen] of freed) {
  it(`requests ${is_seen ? 'soon' : 'later'} see what others free beside ${left} bytes`, async () => {
    let bytes = left
    let asked = 0
    const free = newFreeSpace({
      freeBytes() {
        asked++
        return bytes
      },
    })
    bytes += 1
    const began_ms = performance.now()
    const isOver = (): boolean => performance.now() > began_ms + 300
    while (!isOver() && free.recentBytes() !== bytes) await nextTurn()
    assert.equal(free.recentBytes() === bytes, is_seen)
    assert.equal(asked, is_seen ? 2 : 1)
  })
}

/** [bytes free beyond the least, is a small commit soon in a checkpoint] */
const after_commit: [more_bytes: number, is_merged: boolean][] = [
  [0, true],
  [2 ** 20, false],
]
for (const [more_bytes, is_merged] of after_commit) {
  const what = is_merged ? 'is checkpointed, for it may free pages' : 'waits for more'
  it(`a commit on a disk that has ${more_bytes} bytes beyond the least ${what}`, async () => {
    const path = newDiskPath()
    const manifest = { id: log_id, seq: 0, is_open: true }
    const reserve_bytes = 2 ** 23
    let asked = 0
    const freeBytes = (): number => {
      asked++
      return reserve_bytes + more_bytes
    }
    const lmdb = { ...(await openTree(path)), freeBytes }
    const writer = writerOver(
      memoryLog([], () => undefined),
      manifest,
    )
    const tree = commitLogTree(lmdb, path, manifest, writer, { reserve_bytes, emit() {} })
    await tree.commit(changesNamed('k'))
    // The disk is asked once a second without a commit, and then it is decided.
    const asked_before = asked
    const isOver = (): boolean =>
      is_merged ? tree.numbers?.()?.checkpoints === 1 : asked === asked_before + 2
    while (!isOver()) await new Promise((resolve) => setTimeout(resolve, 10))
    assert.equal(tree.numbers?.()?.checkpoints, is_merged ? 1 : 0)
    await tree.close()
  })
}

/** What becomes of the transaction whose append fails so, and of those after it. */
const failures: [failure: Failure, code: string, is_kept: boolean, later: string][] = [
  ['no_space', 'no_space', false, 'ok'],
  ['fenced', 'store_failed', false, 'store_failed'],
  ['lost', 'store_failed', false, 'store_failed'],
  ['unanswered', 'store_failed', true, 'store_failed'],
]

describe('a store whose commit log fails', () => {
  const newPath = quickPaths('conveyor-port-store-')

  for (const [failure, code, is_kept, later] of failures) {
    for (const step of [1, 2, 5]) {
      it(`says ${code} where append ${step} of 5 is ${failure}`, async () => {
        const path = newPath()
        const kept: Buffer[] = []
        let appends = 0
        const commit_log = memoryLog(kept, () => (++appends === step ? failure : undefined))
        const manifest = { id: log_id, seq: 0, is_open: true }
        const lmdb = await openTree(path)
        const writer = writerOver(commit_log, manifest)
        const tree = commitLogTree(lmdb, path, manifest, writer, { emit() {} })
        const store = storeOf(tree)
        const outcomes: string[] = []
        for (let n = 1; n <= 5; n++) {
          const put = store.update((tx) => tx.put(`k${n}`, Buffer.from('v')))
          outcomes.push(await put.then(() => 'ok').catch((error) => error.code))
        }
        const expected = [1, 2, 3, 4, 5].map((n) => (n < step ? 'ok' : n > step ? later : code))
        assert.deepEqual(outcomes, expected)
        // Nothing is appended after it, and nobody reads what it would have written.
        const acknowledged = outcomes.filter((outcome) => outcome === 'ok').length
        assert.equal(kept.length, acknowledged + (is_kept ? 1 : 0))
        assert.equal(tree.get(`k${step}`), undefined)
        await store.close()
      })
    }
  }

  it('reads what it has appended', async () => {
    const manifest = { id: log_id, seq: 0, is_open: true }
    const commit_log = memoryLog([], () => undefined)
    const writer = writerOver(commit_log, manifest)
    await writer.write(changesNamed('k'))
    assert.equal(writer.active().get('k')?.toString(), 'k'.repeat(100))
  })
})
