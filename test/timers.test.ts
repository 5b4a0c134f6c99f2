/**
 * Timers fire never early, in due order over all processes, in slices between other transactions,
 * and also after the file was reopened or the clock was set.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, mock } from 'node:test'
import { dueOf } from '../src/codec/keys.ts'
import { sleep_ms_max, systemClock } from '../src/core/clock.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Tree } from '../src/store/tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn, type Harness, memoryHarness, settled } from './support/model-setup.ts'
import { tasksOf } from './support/tasks-of.ts'

const hour_ms = 3_600_000
const day_ms = 24 * hour_ms

/** Tasks wait until the Unix second in `at`, or for a modify, and end where they are kept. */
function waitingProcess(obj_id: string): object {
  const logics = [{ type: 'api_callback' }, { type: 'go', to_node_id: 'end' }]
  const semaphors = [{ type: 'time', value: '{{at}}', to_node_id: 'end' }]
  return {
    obj_id,
    scheme: {
      nodes: [
        { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'wait' }] } },
        { id: 'wait', obj_type: 0, condition: { logics, semaphors } },
        { id: 'end', obj_type: 2, options: { save_task: true } },
      ],
    },
  }
}

async function withHarness(
  fn: (harness: Harness, engine: Engine) => Promise<Engine>,
  options = {},
): Promise<void> {
  const harness = memoryHarness(options)
  const engine = await harness.open()
  for (const conv_id of ['p', 'q', 'r']) await engine.processes.put(waitingProcess(conv_id))
  await settled(harness.clock)
  const last = await fn(harness, engine)
  assert.deepEqual((await last.check()).breaches, [])
  await last.close()
}

async function createAt(engine: Engine, conv_id: string, at_ms: number): Promise<string> {
  const { proc, obj_id } = await engine.create({ conv_id, data: { at: at_ms / 1000 } })
  assert.equal(proc, 'ok')
  return obj_id as string
}

async function statusOf(engine: Engine, conv_id: string, obj_id: string) {
  return (await engine.task({ conv_id, obj_id }))?.status
}

describe('due', () => {
  for (const after_ms of [1, 999, 1_000, day_ms, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 2 ** 40]) {
    it(`in ${after_ms} ms: fires then, and not a millisecond earlier`, () =>
      withHarness(async ({ clock }, engine) => {
        const obj_id = await createAt(engine, 'p', clock.now_ms() + after_ms)
        clock.advance(after_ms - 1)
        await settled(clock)
        assert.equal(await statusOf(engine, 'p', obj_id), 'delayed')
        clock.advance(1)
        await settled(clock)
        const task = await engine.task({ conv_id: 'p', obj_id })
        assert.deepEqual([task?.status, task?.change_time_ms], ['processed', clock.now_ms()])
        return engine
      }))
  }

  it('in the past: fires at once', () =>
    withHarness(async ({ clock }, engine) => {
      const obj_id = await createAt(engine, 'p', 0)
      await settled(clock)
      assert.equal(await statusOf(engine, 'p', obj_id), 'processed')
      return engine
    }))

  it('in the past: fires after everything that was overdue before', () =>
    withHarness(async ({ clock }, engine) => {
      const now_ms = clock.now_ms()
      const ids = [await createAt(engine, 'p', now_ms + 1_000)]
      ids.push(await createAt(engine, 'q', now_ms + 2_000))
      const changes = engine.changes()
      clock.set(now_ms + 3_000)
      const past = await createAt(engine, 'r', 0)
      await settled(clock)
      const seen: unknown[] = []
      while (seen.length < 4) seen.push((await changes.next()).value?.obj_id)
      assert.deepEqual(seen, [past, ...ids, past])
      return engine
    }))

  it('while closed: fires at once after reopening, in due order', () =>
    withHarness(async (harness, engine) => {
      const { clock } = harness
      const late = await createAt(engine, 'p', clock.now_ms() + 2_000)
      const early = await createAt(engine, 'q', clock.now_ms() + 1_000)
      const far = await createAt(engine, 'r', clock.now_ms() + day_ms)
      await engine.close()
      clock.set(clock.now_ms() + hour_ms)
      const still = await harness.open({ background: false })
      assert.equal(await statusOf(still, 'p', late), 'delayed', 'with timers off nothing rings')
      await still.close()
      const again = await harness.open()
      const changes = again.changes()
      await settled(clock)
      const rung = [(await changes.next()).value, (await changes.next()).value]
      assert.deepEqual(
        rung.map((change) => change?.obj_id),
        [early, late],
      )
      assert.equal(await statusOf(again, 'r', far), 'delayed')
      return again
    }))

  it('a modify that resumes the task cancels its timer', () =>
    withHarness(async ({ clock }, engine) => {
      const obj_id = await createAt(engine, 'p', clock.now_ms() + 1_000)
      await engine.modify({ conv_id: 'p', obj_id, data: {} })
      const ended_ms = (await engine.task({ conv_id: 'p', obj_id }))?.change_time_ms
      clock.advance(2_000)
      await settled(clock)
      assert.equal((await engine.task({ conv_id: 'p', obj_id }))?.change_time_ms, ended_ms)
      return engine
    }))
})

describe('order', () => {
  it('is by due time over all processes, whatever the order of creation and of slices', () =>
    withHarness(
      async ({ clock }, engine) => {
        const count = 200
        const made: string[] = []
        for (let n = 0; n < count; n++) {
          // 77 and 200 have no common divisor: each place comes once.
          const place = (n * 77) % count
          const conv_id = ['p', 'q', 'r'][(place * place) % 3] as string
          made[place] = await createAt(engine, conv_id, clock.now_ms() + 1_000 + place)
        }
        const changes = engine.changes()
        clock.advance(hour_ms)
        await settled(clock)
        for (const [place, obj_id] of made.entries()) {
          const { value } = await changes.next()
          assert.equal(value?.obj_id, obj_id, `place ${place}`)
        }
        return engine
      },
      { limits: { slice_tasks_max: 7 } },
    ))
})

describe('a clock that is set back', () => {
  it('delays timers until their time comes again', () =>
    withHarness(async ({ clock }, engine) => {
      const now_ms = clock.now_ms()
      const armed = await createAt(engine, 'p', now_ms + 10_000)
      clock.set(now_ms - hour_ms)
      const soon = await createAt(engine, 'q', now_ms - hour_ms + 5_000)
      clock.advance(5_000)
      await settled(clock)
      assert.equal(await statusOf(engine, 'q', soon), 'processed')
      clock.advance(hour_ms + 4_999)
      await settled(clock)
      assert.equal(await statusOf(engine, 'p', armed), 'delayed')
      clock.advance(1)
      await settled(clock)
      assert.equal(await statusOf(engine, 'p', armed), 'processed')
      return engine
    }))

  it('keeps ids and change times from falling', () =>
    withHarness(async ({ clock }, engine) => {
      const before = await createAt(engine, 'p', clock.now_ms() + day_ms)
      clock.set(clock.now_ms() - hour_ms)
      const after = await createAt(engine, 'p', clock.now_ms() + day_ms)
      assert.ok(after > before)
      await engine.modify({ conv_id: 'p', obj_id: before, data: {} })
      const task = await engine.task({ conv_id: 'p', obj_id: before })
      assert.equal(task?.change_time_ms, task?.create_time_ms)
      return engine
    }))
})

describe('a paused process', () => {
  it('keeps its timers, fires them in due order at resume, and delays no other', () =>
    withHarness(async ({ clock }, engine) => {
      const now_ms = clock.now_ms()
      const places = [5, 1, 3, 2, 4]
      const ids: string[] = []
      for (const place of places) ids[place] = await createAt(engine, 'p', now_ms + place * 1_000)
      const other = await createAt(engine, 'q', now_ms + 3_000)
      await engine.processes.pause('p')
      clock.advance(hour_ms)
      await settled(clock)
      assert.equal(await statusOf(engine, 'q', other), 'processed')
      assert.equal((await tasksOf(engine, 'p', { status: 'delayed' })).length, places.length)
      const changes = engine.changes({ conv_id: 'p' })
      await engine.processes.resume('p')
      await settled(clock)
      for (const wanted of ids.filter((id) => id !== undefined)) {
        assert.equal((await changes.next()).value?.obj_id, wanted)
      }
      return engine
    }))

  it('with a thousand overdue timers costs the others no read of them', async () => {
    const below = memoryTree()
    const span = dueOf('p')
    let reads = 0
    const tree: Tree = {
      ...below,
      *range(from, to, reverse) {
        for (const entry of below.range(from, to, reverse)) {
          if (entry.key >= span.from && entry.key < span.to) reads++
          yield entry
        }
      },
    }
    const clock = fakeClock()
    const engine = await engineOn(tree, { clock })
    for (const conv_id of ['p', 'q']) await engine.processes.put(waitingProcess(conv_id))
    const at = clock.now_ms() / 1000 + 1
    const op = { type: 'create', obj: 'task', conv_id: 'p', data: { at } }
    await engine.apply(Array.from({ length: 1_000 }, () => op))
    await engine.processes.pause('p')
    await engine.close()
    reads = 0
    clock.advance(hour_ms)
    const again = await engineOn(tree, { clock })
    const obj_id = await createAt(again, 'q', clock.now_ms() + 1_000)
    clock.advance(1_000)
    while ((await statusOf(again, 'q', obj_id)) !== 'processed') {
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.equal(reads, 0)
    await again.close()
  })
})

describe('slices', () => {
  const count = 10_000
  const left = async (engine: Engine): Promise<number> => {
    const { tasks } = await engine.processes.show('p')
    return tasks
  }

  async function createMany(engine: Engine, at_ms: number): Promise<void> {
    const op = { type: 'create', obj: 'task', conv_id: 'p', data: { at: at_ms / 1000 } }
    const list = Array.from({ length: 1_000 }, () => op)
    for (let made = 0; made < count; made += list.length) await engine.apply(list)
  }

  it('ten thousand timers due in one millisecond do not block ops', () =>
    withHarness(async ({ clock }, engine) => {
      await createMany(engine, clock.now_ms() + 1_000)
      clock.advance(1_000)
      const seen: number[] = []
      for (let tasks = await left(engine); tasks > 0; tasks = await left(engine)) {
        const { proc } = await engine.create({ conv_id: 'q', data: { at: 0 } })
        assert.equal(proc, 'ok')
        seen.push(tasks)
      }
      const between = new Set(seen.filter((tasks) => tasks < count))
      assert.ok(between.size >= 10, `ops were answered at ${between.size} moments in between`)
      await settled(clock)
      const ended = await tasksOf(engine, 'p', { status: 'processed', limit: 2 * count })
      assert.equal(ended.length, count)
      return engine
    }))

  it('ended tasks are removed after their retention time, not before, without blocking ops', () =>
    withHarness(
      async ({ clock }, engine) => {
        const began_ms = clock.now_ms()
        await createMany(engine, began_ms)
        await settled(clock)
        clock.set(began_ms)
        clock.advance(day_ms - 1)
        await settled(clock)
        assert.equal((await engine.check()).counts.ended, count)
        clock.advance(1)
        let answered = 0
        const first = { status: 'processed', limit: 1 } as const
        while ((await tasksOf(engine, 'p', first)).length > 0) {
          const { proc } = await engine.create({ conv_id: 'r', data: { at: 9e9 } })
          assert.equal(proc, 'ok')
          answered++
        }
        assert.ok(answered >= 5, `${answered} ops were answered in between`)
        assert.equal((await engine.check()).counts.ended, 0)
        assert.equal((await tasksOf(engine, 'p', { status: 'processed' })).length, 0)
        return engine
      },
      { limits: { ended_kept_ms: day_ms } },
    ))
})

describe('the system clock', () => {
  let now_ms = 0
  beforeEach(() => {
    now_ms = 1_700_000_000_000
    mock.timers.enable({ apis: ['setTimeout'] })
    mock.method(Date, 'now', () => now_ms)
  })
  afterEach(() => {
    mock.timers.reset()
    mock.restoreAll()
  })
  /** Time goes by, for timers and for the clock; never more at once than Node's timers can take. */
  const pass = (by_ms: number): void => {
    for (let left = by_ms; left > 0; left -= sleep_ms_max) {
      const part = Math.min(left, sleep_ms_max)
      now_ms += part
      mock.timers.tick(part)
    }
  }

  for (const after_ms of [
    1,
    1_000,
    sleep_ms_max,
    sleep_ms_max + 1,
    3 * sleep_ms_max,
    1_000 * sleep_ms_max,
  ]) {
    it(`wakes once after ${after_ms} ms, however far that is`, () => {
      const set = mock.method(globalThis, 'setTimeout')
      let woken = 0
      systemClock.wake_at(now_ms + after_ms, () => woken++)
      pass(after_ms - 1)
      assert.equal(woken, 0)
      pass(1)
      assert.equal(woken, 1)
      pass(sleep_ms_max)
      assert.equal(woken, 1)
      for (const call of set.mock.calls) assert.ok((call.arguments[1] ?? 0) <= sleep_ms_max)
    })
  }

  it('wakes at once for a past time, but in a later turn', () => {
    let woken = 0
    systemClock.wake_at(now_ms - 1, () => woken++)
    assert.equal(woken, 0)
    mock.timers.tick(0)
    mock.timers.tick(1)
    assert.equal(woken, 1)
  })

  it('goes on waiting if the clock was set back meanwhile', () => {
    let woken = 0
    systemClock.wake_at(now_ms + 1_000, () => woken++)
    now_ms -= hour_ms
    pass(1_000)
    assert.equal(woken, 0)
    pass(hour_ms - 1)
    assert.equal(woken, 0)
    pass(1)
    assert.equal(woken, 1)
  })

  it('notices soon that the clock was set forward', () => {
    let woken = 0
    systemClock.wake_at(now_ms + 24 * hour_ms, () => woken++)
    now_ms += 24 * hour_ms
    mock.timers.tick(sleep_ms_max)
    assert.equal(woken, 1)
  })

  for (const after_ms of [1_000, 2 * sleep_ms_max]) {
    it(`does not wake after a cancel, after ${after_ms} ms`, () => {
      let woken = 0
      const cancel = systemClock.wake_at(now_ms + after_ms, () => woken++)
      pass(after_ms - 1)
      cancel()
      pass(sleep_ms_max)
      assert.equal(woken, 0)
    })
  }
})
