/**
 * Whether an engine is ready: what each kind of trouble is told as, how soon, and how little a probe
 * that comes again and again asks of the disk.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Clock } from '../src/core/clock.ts'
import { fault } from '../src/core/faults.ts'
import { limitsWith } from '../src/core/limits.ts'
import type { Readiness } from '../src/engine/api/statistics-api.ts'
import { newReadiness } from '../src/engine/readiness.ts'
import type { Admission } from '../src/engine/transactions/admission.ts'
import { newBackground } from '../src/engine/transactions/background.ts'
import { openEngine } from '../src/index.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Tree } from '../src/store/tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { healthOf } from './support/health.ts'
import { tempFolder } from './support/package-folder.ts'

interface Trouble {
  code: ReturnType<Parameters<typeof newReadiness>[0]['health']>
  key: string | undefined
  is_broken: boolean
  free_bytes: number
  is_checkpoint_slow: boolean
  /** What a commit waits for before it is made. */
  commit: () => Promise<void>
}

/** A store on a disk that has what trouble the test gives it, and how often it was written. */
function harness(limits: Parameters<typeof limitsWith>[0] = {}) {
  const trouble: Trouble = {
    ...{ code: 'ok', key: undefined, is_broken: false, free_bytes: Number.MAX_SAFE_INTEGER },
    is_checkpoint_slow: false,
    commit: async () => {},
  }
  const memory = memoryTree()
  const tree: Tree = {
    ...memory,
    freeBytes: () => trouble.free_bytes,
    isCheckpointSlow: () => trouble.is_checkpoint_slow,
    async commit(changes) {
      writes.count++
      await trouble.commit()
      await memory.commit(changes)
    },
  }
  const writes = { count: 0 }
  const clock: Clock & { advance(ms: number): void } = fakeClock()
  const store = storeOf(tree)
  const ready = newReadiness({
    ...{ store, clock, limits: limitsWith({ disk_free_bytes_min: 1_000, ...limits }) },
    health: () => trouble.code,
    keyState: () => ({ problem: trouble.key, warning: undefined }),
    isBroken: () => trouble.is_broken,
  })
  return { trouble, writes, clock, store, ready }
}

/** The reasons of the checks that are not ok, by name. */
function reasonsOf({ ok, checks }: Readiness): Record<string, string | undefined> {
  const bad = Object.entries(checks).filter(([, check]) => !check.ok)
  assert.equal(ok, bad.length === 0)
  return Object.fromEntries(bad.map(([name, { reason }]) => [name, reason]))
}

const few = '999 bytes are free, disk_free_bytes_min is 1000; writing resumes with 1125'
const failing = (): Promise<void> => Promise.reject(new Error('EIO'))

/** [what is wrong, the reasons] */
// biome-ignore format: a table
const rows: [string, Partial<Trouble>, Record<string, string>][] = [
  ['nothing',             {},                                         {}],
  ['the disk is full',    { free_bytes: 999 },                        { disk: few, commit: `not tried: ${few}` }],
  ['no key',              { key: 'the key file /k is missing' },      { key: 'the key file /k is missing' }],
  ['a full queue',        { code: 'overloaded' },                     { queue: 'as many ops wait as may wait' }],
  ['it closes',           { code: 'shutting_down' },                  { open: 'it shuts down', commit: 'not tried: it shuts down' }],
  ['a commit fails',      { commit: failing },                        { commit: 'the store has failed' }],
  ['a bug in a timer',    { is_broken: true },                        { background: 'a bug has stopped timers and schedules: restart' }],
  ['two things at once',  { key: 'no key', code: 'overloaded' },      { key: 'no key', queue: 'as many ops wait as may wait' }],
]
describe('not ready', () => {
  for (const [says, trouble, reasons] of rows) {
    test(says, async () => {
      const one = harness()
      Object.assign(one.trouble, trouble)
      assert.deepEqual(reasonsOf(await one.ready()), reasons)
    })
  }

  test('while a commit hangs: once waited for, then told at once, then ready again', async () => {
    const { trouble, writes, clock, ready } = harness()
    let release = (): void => {}
    trouble.commit = () =>
      new Promise((resolve) => {
        release = resolve
      })
    const first = ready()
    while (writes.count === 0) await Promise.resolve()
    clock.advance(2_000)
    const late = { commit: 'a commit takes over 2000 ms: the disk hangs' }
    assert.deepEqual(reasonsOf(await first), late)
    clock.advance(60_000)
    for (let n = 0; n < 10; n++) assert.deepEqual(reasonsOf(await ready()), late)
    assert.equal(writes.count, 1)
    trouble.commit = async () => {}
    release()
    await new Promise(setImmediate)
    assert.deepEqual(reasonsOf(await ready()), {})
    assert.equal(writes.count, 2)
  })

  test('while a commit of others hangs, without one of its own', async () => {
    const { trouble, writes, store, ready } = harness({ ready_ms_max: 1 })
    let release = (): void => {}
    trouble.commit = () =>
      new Promise((resolve) => {
        release = resolve
      })
    const written = store.update((tx) => tx.put('x', Buffer.from('')))
    await new Promise((resolve) => setTimeout(resolve, 5))
    const late = { commit: 'a commit takes over 1 ms: the disk hangs' }
    assert.deepEqual(reasonsOf(await ready()), late)
    assert.equal(writes.count, 1)
    trouble.commit = async () => {}
    release()
    await written
    assert.deepEqual(reasonsOf(await ready()), {})
  })

  test('is not what a checkpoint that hangs makes it, but it is told', async () => {
    const { trouble, ready } = harness()
    trouble.is_checkpoint_slow = true
    const { ok, checks } = await ready()
    assert.deepEqual([ok, checks.disk.ok], [true, true])
    assert.match(checks.disk.reason ?? '', /^a checkpoint has waited over 1000 ms: the disk hangs/)
  })

  test('on a disk that fills between two checks', async () => {
    const { trouble, clock, ready } = harness()
    assert.deepEqual(reasonsOf(await ready()), {})
    trouble.free_bytes = 999
    assert.deepEqual(Object.keys(reasonsOf(await ready())), ['commit', 'disk'])
    trouble.free_bytes = 5_000
    clock.advance(1)
    assert.deepEqual(reasonsOf(await ready()), {})
  })

  test('by a clock that is set back', async () => {
    const { clock, ready } = harness()
    assert.deepEqual(reasonsOf(await ready()), {})
    clock.advance(-3_600_000)
    const { ok, uptime_s } = await ready()
    assert.deepEqual([ok, uptime_s], [true, 0])
  })
})

test('a bug in a step of the background stops it, a store that closes does not break it', async () => {
  /** [what a step throws, is broken, bugs] */
  const rows: readonly (readonly [Error, boolean, number])[] = [
    [new Error('no fault'), true, 1],
    [fault('shutting_down'), false, 0],
    [fault('no_space'), false, 0],
  ]
  for (const [thrown, is_broken, bugs] of rows) {
    const told: unknown[] = []
    const clock = fakeClock()
    const background = newBackground({
      clock,
      admission: { hasRoom: () => true } as Admission,
      works: [{ due_ms: () => 0, step: () => Promise.reject(thrown) }],
      onBug: (bug) => void told.push(bug),
    })
    background.start()
    clock.advance(0)
    while (background.isBusy()) await Promise.resolve()
    assert.deepEqual([background.isBroken(), told.length], [is_broken, bugs])
    await background.stop()
  }
})

describe('a probe', () => {
  test('writes once a second at most, and not where others commit', async () => {
    const { writes, clock, store, ready } = harness()
    const probe = async (): Promise<number> => {
      for (let n = 0; n < 10; n++) {
        assert.equal((await ready()).ok, true)
        clock.advance(100)
      }
      return writes.count
    }
    assert.equal(await probe(), 1)
    assert.equal(await probe(), 2)
    await store.update((tx) => tx.put('x', Buffer.from('')))
    assert.equal(await probe(), 3)
    assert.equal(await probe(), 4)
    clock.advance(60_000)
    await store.update((tx) => tx.put('y', Buffer.from('')))
    // Nobody knows when in the last minute that was.
    assert.equal(await probe(), 6)
  })

  test('tells version and time, of a file and in memory, until the end', async () => {
    const folder = tempFolder()
    for (const path of [':memory:', join(folder.path, 'x.lmdb')]) {
      const engine = await openEngine(path)
      await engine.users.add({})
      const { ok, version, uptime_s } = await engine.ready()
      assert.deepEqual([ok, version, uptime_s], [true, '0.1.0', 0])
      assert.deepEqual((await engine.check()).breaches, [])
      await engine.close()
      assert.deepEqual(Object.keys(reasonsOf(await engine.ready())), ['open', 'commit'])
      assert.equal(healthOf(engine), 'shutting_down')
    }
    folder.remove()
  })
})
