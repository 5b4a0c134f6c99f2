/**
 * What whoever is on call learns of the store: its events, each as often as it happens, and its
 * numbers, which agree with the files.
 */
import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { EventFields, EventName } from '../src/core/event-table.ts'
import type { Emit } from '../src/core/events.ts'
import { fault } from '../src/core/faults.ts'
import { openEngine } from '../src/open.ts'
import { boundsFor } from '../src/store/commit-log/bounds.ts'
import { framesIn } from '../src/store/commit-log/frame.ts'
import { segmentPaths } from '../src/store/commit-log/recovery.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { newSpaceWatch } from '../src/store/space-watch.ts'
import type { Store } from '../src/store/store.ts'
import { definition } from './bench/workload.ts'
import { openWithCommitLog } from './support/commit-log-setup.ts'
import { fakeClock } from './support/fake-clock.ts'
import { quickFolder } from './support/store-folder.ts'

let folder: string
before(async () => {
  folder = await quickFolder('conveyor-numbers-')
})
after(() => rm(folder, { recursive: true, force: true }))

type EmittedEvents = [event: EventName, fields: EventFields][]

/** What is told, without what depends on the disk of this machine. */
function listening(): { readonly told: EmittedEvents; readonly emit: Emit } {
  const told: EmittedEvents = []
  return { told, emit: (event, fields) => void (of_disk.has(event) || told.push([event, fields])) }
}

const of_disk: ReadonlySet<EventName> = new Set(['slow_writes', 'slow_checkpoint'])

const namesOf = (told: EmittedEvents): EventName[] => told.map(([event]) => event)
const put = (store: Store, key: string, bytes = 100): Promise<void> =>
  store.update((tx) => tx.put(key, Buffer.alloc(bytes, key)))

describe('the numbers of a store', () => {
  it('show that an idle commit log is written into the data file, unless it is short', async () => {
    const stores: Store[] = []
    for (const [at, bytes] of [3_000_000, 300_000].entries()) {
      const { emit } = listening()
      const tree = await openWithCommitLog(join(folder, `idle-${at}.lmdb`), {}, { emit })
      const store = storeOf(tree, { emit })
      await put(store, 'k', bytes)
      stores.push(store)
    }
    const debtOf = (store?: Store): number => store?.numbers().file?.debt_bytes ?? 0
    const [long, short] = stores
    const until_ms = performance.now() + 30_000
    while (debtOf(long) > 0 && performance.now() < until_ms) await pause(100)
    assert.equal(debtOf(long), 0)
    assert.ok(debtOf(short) > 300_000)
    for (const store of stores) {
      await put(store, 'later')
      assert.ok(debtOf(store) > 0)
      assert.ok(await store.view((view) => view.get('k')?.every((byte) => byte === 107)))
      await store.close()
    }
  })

  it('agree with the files', async () => {
    const path = join(folder, 'tasks.lmdb')
    const { told, emit } = listening()
    const store = storeOf(await openWithCommitLog(path, {}, { emit }), { emit })
    const commits: [ms: number, write_ms: number][] = []
    store.onCommit((ms, write_ms) => void commits.push([ms, write_ms]))
    for (let n = 0; n < 20; n++) await put(store, `k${n}`, 1_000 * n)
    await Promise.all(['a', 'b', 'c'].map((key) => put(store, key)))

    // The first of the three is alone, the others share a commit.
    assert.equal(store.numbers().commits, 22)
    assert.equal(commits.length, 22)
    for (const [ms, write_ms] of commits) assert.ok(ms > write_ms && write_ms > 0, `${ms}`)
    const frames = segmentPaths(path).flatMap((segment) => [...framesIn(readFileSync(segment))])
    const in_frames = frames.reduce((sum, { bytes }) => sum + bytes.length, 0)
    const { file } = store.numbers()
    assert.ok(file !== undefined && in_frames > 190_000)
    assert.deepEqual([file.written_bytes, file.debt_bytes], [in_frames, in_frames])
    assert.deepEqual([file.checkpoints, file.checkpoint_ms], [0, 0])
    assert.ok(file.free_bytes > 0)

    const { bytes } = await store.backup(join(folder, 'copy.lmdb'))
    const merged = store.numbers().file
    assert.ok(merged !== undefined)
    assert.deepEqual([merged.written_bytes, merged.debt_bytes], [in_frames, 0])
    assert.ok(merged.checkpoints === 1 && merged.checkpoint_ms > 0)
    assert.equal(merged.used_bytes + merged.reusable_bytes, statSync(path).size)
    assert.ok(merged.used_bytes > 190_000)
    assert.deepEqual(namesOf(told), ['backup_begun', 'checkpoint', 'backup_done'])
    const { ms: _, ...checkpoint } = told[1]?.[1] ?? {}
    assert.deepEqual(checkpoint, { bytes: in_frames, changes: 23 })
    assert.equal(told[2]?.[1].bytes, bytes)
    assert.equal(statSync(join(folder, 'copy.lmdb')).size, bytes)

    await put(store, 'later')
    const later = store.numbers().file
    assert.equal((later?.written_bytes ?? 0) - in_frames, later?.debt_bytes)
    // What a kill would leave now.
    for (const end of ['', '-log-0', '-log-1']) copyFileSync(path + end, `${path}-killed${end}`)
    await store.close()
    const recovering = listening()
    const again = await openWithCommitLog(`${path}-killed`, {}, recovering)
    assert.equal(again.numbers?.().debt_bytes, later?.debt_bytes)
    await again.close()
    const [[event, fields] = []] = recovering.told
    assert.equal(event, 'recovered')
    assert.deepEqual([fields?.commits, fields?.bytes], [1, later?.debt_bytes])
  })

  /** [checkpoint_bytes, are there checkpoints before the close] */
  for (const [checkpoint_bytes, wanted] of [
    [1, true],
    [0, false],
  ] as const) {
    it(`tell of ${wanted ? 'a' : 'no'} checkpoint at the limit ${checkpoint_bytes}`, async () => {
      const path = join(folder, `limit-${checkpoint_bytes}.lmdb`)
      const limits = { checkpoint_bytes }
      const engine = await openEngine(path, { secret_key: '5a'.repeat(32), limits })
      for (const title of ['a', 'b', 'c', 'd']) await engine.processes.put({ ...definition, title })
      assert.equal((engine.statistics().store.file?.checkpoints ?? 0) > 0, wanted)
      await engine.close()
    })
  }

  it('go by the memory if nothing else is said, within bounds', () => {
    const { checkpoint_bytes, bytes_max } = boundsFor(0)
    assert.ok(checkpoint_bytes >= 2 ** 25 && checkpoint_bytes <= 2 ** 26)
    assert.equal(bytes_max, 2 * checkpoint_bytes)
    assert.equal(boundsFor(5_000).checkpoint_bytes, 5_000)
  })

  it('are few in memory', async () => {
    const store = storeOf(memoryTree())
    await put(store, 'k')
    assert.deepEqual(store.numbers(), { commits: 1, file: undefined })
  })
})

describe('a slow commit', () => {
  /** [slow_commit_ms, is the write held until it is told of, what is told of it] */
  const rows: [ms: number, is_held: boolean, told: (boolean | undefined)[]][] = [
    [60_000, false, []],
    [0, false, [undefined]],
    [1, true, [true, undefined]],
  ]
  for (const [slow_commit_ms, is_held, wanted] of rows) {
    it(`of ${slow_commit_ms} ms${is_held ? ', held' : ''}`, async () => {
      const below = memoryTree()
      let release = (): void => {}
      const held = new Promise<void>((resolve) => {
        release = resolve
      })
      const { told, emit } = listening()
      const store = storeOf(
        {
          ...below,
          commit: (changes) =>
            (is_held ? held : Promise.resolve()).then(() => below.commit(changes)),
        },
        {
          slow_commit_ms,
          emit(event, fields) {
            emit(event, fields)
            // Not at once, so that it could be told of again.
            setTimeout(release, 20)
          },
        },
      )
      // The timer of the store alone does not keep the process alive.
      const alive = setInterval(() => {}, 1_000)
      await put(store, 'k')
      clearInterval(alive)
      assert.deepEqual(
        told.map(([, { is_under_way }]) => is_under_way),
        wanted,
      )
      for (const [event, { changes, bytes, ms }] of told) {
        assert.deepEqual([event, changes], ['slow_commit', 1])
        assert.ok(Number(bytes) > 100 && Number(ms) >= slow_commit_ms)
      }
    })
  }
})

describe('a full disk', () => {
  /** [step, what is told of it]; a number is how many bytes are free, 10 are wanted, 12 again */
  const rows: [
    what: string,
    steps: [step: number | 'refused' | 'commitRefused' | 'committed', told?: EventName][],
  ][] = [
    [
      'is told of once, and its end',
      [
        ['refused', 'no_space'],
        ['refused'],
        [9],
        [10],
        [12, 'space_back'],
        [12],
        [10],
        ['refused', 'no_space'],
      ],
    ],
    [
      'is full until a commit succeeds, if one was refused',
      [['commitRefused', 'no_space'], [12], [99], ['committed'], [12, 'space_back']],
    ],
    ['is not full for a request that is large', [[12], ['refused'], [12]]],
    ['is not told of by a commit', [['committed'], [0], [10]]],
  ]
  for (const [what, steps] of rows) {
    it(what, () => {
      const clock = fakeClock()
      const { told, emit } = listening()
      let free_bytes = 0
      const watch = newSpaceWatch({ emit, clock, freeBytes: () => free_bytes, free_bytes_min: 10 })
      for (const [step, wanted] of steps) {
        if (typeof step !== 'number') watch[step]()
        else {
          free_bytes = step
          clock.advance(1_000)
        }
        assert.deepEqual(namesOf(told.splice(0)), wanted === undefined ? [] : [wanted])
      }
      watch.close()
    })
  }

  it('refuses commits and requests, which are told of as one', async () => {
    const { told, emit } = listening()
    const full = {
      ...memoryTree(),
      freeBytes: () => 5,
      commit: () => Promise.reject(fault('no_space')),
    }
    const store = storeOf(full, { emit, free_bytes_min: 10 })
    assert.equal(store.hasRoom(5), true)
    assert.equal(store.hasRoom(6), false)
    await assert.rejects(put(store, 'k'), { code: 'no_space' })
    assert.deepEqual(told, [['no_space', { free_bytes: 5, free_bytes_min: 10 }]])
    await store.close()
  })
})
