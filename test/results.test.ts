/**
 * Waits for results (`Engine.result`): what each resolves with, what ends it otherwise, that no end
 * is missed while commits are under way, and what ten thousand of them take.
 */

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Task } from '../src/core/model.ts'
import type { Engine, EngineOptions } from '../src/engine/api/engine-api.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { type FakeClock, fakeClock } from './support/fake-clock.ts'
import { engineOn } from './support/model-setup.ts'
import { go } from './support/processes.ts'
import { failingTree, heldTree, turns } from './support/store-trees.ts'

const end = (id: string, save_task: boolean): object => ({
  ...{ id, obj_type: 2, condition: { logics: [] }, options: { save_task } },
})

/** Waits for a callback; its `to` says whether it ends kept or gone, or fails. */
const definition = {
  obj_id: 'p',
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [go('wait')] } },
      {
        ...{ id: 'wait', obj_type: 0 },
        condition: {
          logics: [
            { type: 'api_callback' },
            ...['kept', 'gone', 'loop'].map((to) => ({
              ...{ type: 'go_if_const', to_node_id: to },
              conditions: [{ param: 'to', const: to, fun: 'eq', cast: 'string' }],
            })),
          ],
        },
      },
      end('kept', true),
      end('gone', false),
      { id: 'loop', obj_type: 0, condition: { logics: [go('loop')] } },
    ],
  },
}
const target = { conv_id: 'p', ref: 'r' }
const limits = { moves_without_rest_max: 5 }

/** An engine with one task that waits. */
async function opened(options: EngineOptions = {}, tree = memoryTree()): Promise<Engine> {
  const engine = await engineOn(tree, { ...options, limits: { ...limits, ...options.limits } })
  await engine.processes.put(definition)
  await engine.create({ ...target, data: {} })
  return engine
}

function sendTo(engine: Engine, to: string): Promise<unknown> {
  return engine.modify({ ...target, data: { to } })
}

/** How a wait ends: the status of the task, or the code or the name of what it rejects with. */
function endOf(wait: Promise<Task>): Promise<string> {
  return wait.then(
    (task) => task.status,
    (error: Error & { code?: string }) => error.code ?? error.name,
  )
}

describe('a wait ends with the task', () => {
  /** [what happens to the task, its status] */
  const rows: readonly (readonly [string, (engine: Engine) => Promise<unknown>, string])[] = [
    ['a kept end', (engine) => sendTo(engine, 'kept'), 'processed'],
    ['an end that keeps nothing', (engine) => sendTo(engine, 'gone'), 'processed'],
    ['a failure', (engine) => sendTo(engine, 'loop'), 'failed'],
    ['a cancel', (engine) => engine.tasks.cancel(target), 'canceled'],
  ]
  for (const [what, act, status] of rows) {
    it(`${what}: ${status}, for all who wait`, async () => {
      const engine = await opened()
      const { obj_id = '' } = (await engine.task(target)) ?? {}
      const waits = [engine.result(target), engine.result({ conv_id: 'p', obj_id })]
      await turns()
      await act(engine)
      for (const task of await Promise.all(waits)) {
        assert.deepEqual([task.obj_id, task.status, task.ref], [obj_id, status, 'r'])
      }
      const after = status === 'processed' && what !== 'a kept end' ? 'not_found_task' : status
      assert.equal(await endOf(engine.result({ conv_id: 'p', obj_id })), after, 'at once')
      await engine.close()
    })
  }

  it('a failed task that is retried: who waits anew waits for its next end', async () => {
    const engine = await opened()
    await sendTo(engine, 'loop')
    assert.equal(await endOf(engine.result(target)), 'failed')
    await engine.tasks.retry(target, 'wait')
    const next = engine.result(target)
    await turns()
    await sendTo(engine, 'kept')
    assert.equal(await endOf(next), 'processed')
    await engine.close()
  })

  it('by ref: the one that holds it at the call', async () => {
    const engine = await opened()
    const first = engine.result(target)
    await turns()
    await sendTo(engine, 'gone')
    await engine.create({ ...target, data: { again: true } })
    const second = engine.result(target)
    await turns()
    await engine.tasks.cancel(target)
    assert.deepEqual(await Promise.all([first, second].map(endOf)), ['processed', 'canceled'])
    await engine.close()
  })

  it('from durable state only, and no end is missed while commits are under way', async () => {
    // The end may come before, between or after the commits that the look-up waits for.
    for (let lets = 0; lets < 6; lets++) {
      const tree = memoryTree()
      await (await opened({}, tree)).close()
      const held = heldTree(tree)
      const engine = await engineOn(held.tree)
      const letThrough = async (): Promise<void> => {
        held.letThrough()
        await turns(2)
      }
      // One is in flight, and the end is in the group behind it.
      void engine.create({ conv_id: 'p', data: {} })
      await turns(2)
      void sendTo(engine, 'gone')
      if (lets % 2 === 0) await turns(2)
      const wait = endOf(engine.result(target))
      let ended = ''
      void wait.then((how) => {
        ended = how
      })
      await turns(2)
      assert.equal(ended, '', 'nothing of it is on disk')
      for (let n = 0; n < lets; n++) await letThrough()
      const late = endOf(engine.result(target))
      for (let n = 0; n < 6; n++) await letThrough()
      // The end ran before the wait began, so a task that is kept nowhere is gone by then.
      assert.ok(['processed', 'not_found_task'].includes(await wait), await wait)
      assert.ok(['processed', 'not_found_task'].includes(await late), await late)
      await engine.close()
    }
  })
})

describe('a wait ends without the task', () => {
  const reason = new Error('enough')
  const late = new AbortController()
  /** [what, the call, how it ends, what makes it end] */
  type Row = readonly [
    string,
    (engine: Engine) => Promise<Task>,
    string,
    ((engine: Engine, clock: FakeClock) => unknown)?,
  ]
  const rows: readonly Row[] = [
    ['no such task', (engine) => engine.result({ conv_id: 'p', ref: 'x' }), 'not_found_task'],
    ['no such process', (engine) => engine.result({ conv_id: 'x', ref: 'x' }), 'conv_not_found'],
    ['no target', (engine) => engine.result({ conv_id: 'p' }), 'TypeError'],
    [
      'a time that is none',
      (engine) => engine.result(target, { timeout_ms: Number.NaN }),
      'RangeError',
    ],
    ['no time', (engine) => engine.result(target, { timeout_ms: 0 }), 'result_timeout'],
    [
      'its time',
      (engine) => engine.result(target, { timeout_ms: 50 }),
      'result_timeout',
      (_, clock) => clock.advance(50),
    ],
    [
      'a signal',
      (engine) => engine.result(target, { signal: late.signal }),
      reason.name,
      () => late.abort(reason),
    ],
    [
      'a signal of before',
      (engine) => engine.result(target, { signal: AbortSignal.abort(reason) }),
      reason.name,
    ],
    ['the close', (engine) => engine.result(target), 'shutting_down', (engine) => engine.close()],
  ]
  for (const [what, call, how, act = () => {}] of rows) {
    it(`${what}: ${how}`, async () => {
      const clock = fakeClock()
      const engine = await opened({ clock })
      const wait = endOf(call(engine))
      await turns()
      await act(engine, clock)
      assert.equal(await wait, how)
      await engine.close()
      assert.equal(clock.nextWake_ms(), undefined)
    })
  }

  it('a failed disk: store_failed, for those who wait and those who come', async () => {
    const tree = memoryTree()
    await (await opened({}, tree)).close()
    const engine = await engineOn(failingTree(tree, 1))
    const wait = endOf(engine.result(target))
    await turns()
    await assert.rejects(engine.create({ conv_id: 'p', data: {} }), { code: 'store_failed' })
    assert.deepEqual(await Promise.all([wait, endOf(engine.result(target))]), [
      'store_failed',
      'store_failed',
    ])
    await engine.close()
  })
})

describe('ten thousand waits', () => {
  const count = 10_000

  it('take a timer between them, and the next is refused until one is over', async () => {
    const clock = fakeClock()
    const rung = new Set<number>()
    const counting = {
      ...clock,
      wake_at: (at_ms: number, fn: () => void) => {
        rung.add(at_ms)
        return clock.wake_at(at_ms, fn)
      },
    }
    const engine = await opened({ clock: counting, background: false })
    const one = new AbortController()
    const ends = new Map<string, number>()
    const waits = Array.from({ length: count }, async (_, n) => {
      const signal = n === 0 ? one.signal : undefined
      const how = await endOf(engine.result(target, { timeout_ms: 60_000 + (n % 7), signal }))
      ends.set(how, (ends.get(how) ?? 0) + 1)
    })
    assert.equal(await endOf(engine.result(target)), 'overloaded')
    one.abort(new Error('enough'))
    const more = endOf(engine.result(target, { timeout_ms: 120_000 }))
    clock.advance(60_003)
    clock.advance(10)
    await Promise.all(waits)
    assert.deepEqual(
      [...ends],
      [
        ['Error', 1],
        ['result_timeout', count - 1],
      ],
    )
    assert.ok(rung.size <= 4, `${rung.size} timers`)
    await sendTo(engine, 'gone')
    assert.equal(await more, 'processed')
    await engine.close()
  })

  it('of one task end together, and may share a signal', async () => {
    const engine = await opened()
    const warnings: Error[] = []
    process.on('warning', (warning) => warnings.push(warning))
    const { signal } = new AbortController()
    const waits = Array.from({ length: count }, () => endOf(engine.result(target, { signal })))
    await turns()
    await sendTo(engine, 'gone')
    assert.deepEqual([...new Set(await Promise.all(waits))], ['processed'])
    assert.deepEqual(warnings, [])
    await engine.close()
  })
})
