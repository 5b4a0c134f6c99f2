/**
 * Admission and its end: the bounds of the queue and of the disk, closing with ops in flight, and
 * watchers, which get a change once it is durable.
 */

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseOp } from '../src/codec/op.ts'
import { fault } from '../src/core/faults.ts'
import type { ModifyOp, OpResult } from '../src/core/model.ts'
import type { Engine, EngineOptions } from '../src/engine/api/engine-api.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { openEngine, rawJson } from '../src/index.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Tree } from '../src/store/tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { healthOf } from './support/health.ts'
import { engineOn } from './support/model-setup.ts'
import { pick } from './support/pick.ts'
import { node } from './support/processes.ts'
import { failingTree, type HeldTree, heldTree, turns } from './support/store-trees.ts'
import { tasksOf } from './support/tasks-of.ts'

const waiting = (obj_id: string): object => ({
  obj_id,
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'wait' }] } },
      { id: 'wait', obj_type: 0, condition: { logics: [{ type: 'api_callback' }] } },
    ],
  },
})
const op = { type: 'create', obj: 'task', conv_id: 'p', data: {} }
const opsOf = (count: number): object[] => Array.from({ length: count }, () => op)

/** An engine with processes `p` and `q`, whose commits wait to be let through from here on. */
async function heldEngine(
  options: EngineOptions = {},
  wrap: (below: Tree) => Tree = (below) => below,
): Promise<HeldTree & { engine: Engine }> {
  const below = memoryTree()
  const first = await engineOn(below, options)
  for (const conv_id of ['p', 'q']) await first.processes.put(waiting(conv_id))
  await first.close()
  const held = heldTree(wrap(below))
  return { ...held, engine: await engineOn(held.tree, options) }
}

async function codeOf(done: Promise<unknown>): Promise<string> {
  try {
    await done
    return 'ok'
  } catch (error) {
    return (error as { code: string }).code
  }
}

/** Lets every commit through until nothing asks for one. */
async function letAllThrough({ letThrough }: HeldTree): Promise<void> {
  for (let n = 0; n < 20; n++) {
    letThrough()
    await turns(2)
  }
}

/** Applies ops as a server does. */
async function serve(engine: Engine, ops: readonly object[], user?: string): Promise<OpResult[]> {
  const parsed = ops.map((raw) => parseOp(raw, engine.limits))
  return servedEngine(engine).submit(parsed, user === undefined ? {} : { user })
}

function large(bytes: number): object {
  return { ...op, data: rawJson(JSON.stringify({ a: 'x'.repeat(bytes) })) }
}

describe('the queue, for servers', () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [string, EngineOptions['limits'], readonly object[][], readonly string[]])[] = [
    ['holds as many ops as it may',   { queue_ops_max: 5 },    [opsOf(3), opsOf(2)],               ['ok', 'ok']],
    ['refuses the one that is over',  { queue_ops_max: 5 },    [opsOf(3), opsOf(3), opsOf(2)],     ['ok', 'overloaded', 'ok']],
    ['refuses a list that never fits', { queue_ops_max: 5 },   [opsOf(6)],                         ['overloaded']],
    ['refuses bytes that are over',   { queue_bytes_max: 60 }, [[large(30)], [large(30)], [large(5)]], ['ok', 'overloaded', 'ok']],
    ['takes one large op when idle',  { queue_bytes_max: 60 }, [[large(90)], [op]],                ['ok', 'overloaded']],
  ]
  for (const [name, limits = {}, lists, wanted] of rows) {
    it(name, async () => {
      const held = await heldEngine({ limits })
      const codes = lists.map((list) => codeOf(serve(held.engine, list)))
      await letAllThrough(held)
      assert.deepEqual(await Promise.all(codes), wanted)
      const after = held.engine.apply([op])
      await letAllThrough(held)
      assert.equal((await after)[0]?.proc, 'ok', 'a place is given back once its ops are on disk')
      await held.engine.close()
    })
  }

  it('is what makes an engine not ready while not one more op may wait', async () => {
    const held = await heldEngine({ limits: { queue_ops_max: 2 } })
    const done = [serve(held.engine, opsOf(1))]
    assert.equal(healthOf(held.engine), 'ok')
    done.push(serve(held.engine, opsOf(1)))
    assert.equal(healthOf(held.engine), 'overloaded')
    await letAllThrough(held)
    await Promise.all(done)
    assert.equal(healthOf(held.engine), 'ok')
    await held.engine.close()
  })

  it('does not count what was malformed or came after a refusal', async () => {
    const held = await heldEngine({ limits: { queue_ops_max: 1 } })
    for (let n = 0; n < 5; n++) {
      assert.equal(await codeOf(held.engine.apply([])), 'format_error')
      assert.equal(await codeOf(serve(held.engine, opsOf(2))), 'overloaded')
    }
    const done = held.engine.apply([op])
    await letAllThrough(held)
    assert.equal((await done)[0]?.proc, 'ok')
    await held.engine.close()
  })
})

describe('the queue, for calls in the process', () => {
  const one = 1_536 + 2
  // biome-ignore format: a table
  const rows: readonly (readonly [string, EngineOptions['limits'], readonly object[][], readonly string[]])[] = [
    ['a call that is over waits',        { queue_ops_max: 5 },    [opsOf(3), opsOf(3), opsOf(2)],        ['ok', 'ok', 'ok']],
    ['ops that never fit do not',        { queue_ops_max: 5 },    [opsOf(3), opsOf(6), opsOf(3)],        ['ok', 'overloaded', 'ok']],
    ['so does one that is over in bytes', { queue_bytes_max: 60 }, [[large(90)], [large(90)], [op]],     ['ok', 'ok', 'ok']],
    ['what waits is bounded',            { queue_ops_max: 1, waiting_bytes_max: 2 * one }, [[op], [op], [op], [op]], ['ok', 'ok', 'ok', 'overloaded']],
    ['by its bytes',                     { queue_ops_max: 1, waiting_bytes_max: 2 * one }, [[op], [large(one)], [op]], ['ok', 'overloaded', 'ok']],
  ]
  for (const [name, limits = {}, lists, wanted] of rows) {
    it(name, async () => {
      const held = await heldEngine({ limits })
      const codes = lists.map((list) => codeOf(held.engine.apply(list)))
      await letAllThrough(held)
      assert.deepEqual(await Promise.all(codes), wanted)
      await held.engine.close()
    })
  }

  it('keeps their order, and lets no server overtake', async () => {
    const held = await heldEngine({ limits: { queue_ops_max: 3 } })
    const order: number[] = []
    const calls = [2, 2, 3, 1, 1].map((count, n) =>
      held.engine.apply(opsOf(count)).then((results) => {
        order.push(n)
        return results.map(({ obj_id }) => obj_id as string)
      }),
    )
    await turns(2)
    assert.equal(await codeOf(serve(held.engine, [op])), 'overloaded', 'one op would fit')
    assert.equal(healthOf(held.engine), 'ok')
    const flushed = held.engine.flush().then(async () => {
      assert.equal((await held.engine.processes.show('p')).tasks, 9)
    })
    await letAllThrough(held)
    const ids = (await Promise.all(calls)).flat()
    assert.deepEqual(ids, [...ids].sort())
    assert.deepEqual(order, [0, 1, 2, 3, 4])
    await flushed
    await held.engine.close()
  })

  it('refuses at once who is over the rate', async () => {
    const clock = fakeClock()
    const held = await heldEngine({ clock, limits: { queue_ops_max: 1, rate_ops_per_s: 2 } })
    const user = { user: '13000' }
    const [first, second] = [held.engine.apply([op], user), held.engine.apply([op], user)]
    assert.equal(await codeOf(held.engine.apply([op], user)), 'rate_limited')
    await letAllThrough(held)
    for (const applied of [first, second]) assert.equal((await applied)[0]?.proc, 'access_denied')
    await held.engine.close()
  })

  // biome-ignore format: a table
  const ends: readonly (readonly [string, (below: Tree) => Tree, (engine: Engine) => void, readonly string[]])[] = [
    ['a close refuses what waits', (below) => below,                 (engine) => void engine.close(), ['ok', 'shutting_down', 'shutting_down']],
    ['so does a store that fails', (below) => failingTree(below, 1), () => {},                        ['store_failed', 'store_failed', 'store_failed']],
  ]
  for (const [name, wrap, end, wanted] of ends) {
    it(name, async () => {
      const held = await heldEngine({ limits: { queue_ops_max: 1 } }, wrap)
      const calls = [op, op, op].map((one) => codeOf(held.engine.apply([one])))
      await turns(2)
      end(held.engine)
      await turns(2)
      await letAllThrough(held)
      assert.deepEqual(await Promise.all(calls), wanted)
      await held.engine.close().catch(() => {})
    })
  }

  it('takes 20,000 creates at once', async () => {
    await using engine = await openEngine(':memory:')
    await engine.processes.put(waiting('p'))
    const creates = Array.from({ length: 20_000 }, (_, n) =>
      engine.create({ conv_id: 'p', ref: n, data: { n } }),
    )
    const results = await Promise.all(creates)
    assert.ok(results.every(({ proc }) => proc === 'ok'))
    assert.equal((await engine.processes.show('p')).tasks, 20_000)
  })
})

describe('a disk that is nearly full', () => {
  it('refuses ops with no_space until there is room again; reads go on', async () => {
    let room: number | undefined = 1_000
    const tree: Tree = { ...memoryTree(), freeBytes: () => room }
    await using engine = await engineOn(tree, { limits: { disk_free_bytes_min: 880 } })
    await engine.processes.put(waiting('p'))
    assert.equal(healthOf(engine), 'ok')
    const [created] = await engine.apply([
      { ...op, ref: 'r' },
      { ...op, ref: 's' },
    ])
    // What waits for the disk counts too.
    await assert.rejects(engine.apply([{ ...op, data: { a: 'x'.repeat(40) } }]), {
      code: 'no_space',
    })
    room = 879
    assert.equal(healthOf(engine), 'no_space')
    await assert.rejects(engine.apply([op]), { code: 'no_space' })
    const show = { type: 'show', obj: 'task', conv_id: 'p', ref: 'r' } as const
    assert.equal((await engine.apply([show]))[0]?.proc, 'ok')
    await assert.rejects(engine.apply([show, op]), { code: 'no_space' })
    assert.equal((await engine.task({ conv_id: 'p', ref: 'r' }))?.obj_id, created?.obj_id)
    // A caller of a server may end a task, and not run one again.
    const { cancelTask, retryTask } = servedEngine(engine)
    const named = parseOp({ ...op, type: 'modify', ref: 'r' }, engine.limits) as ModifyOp
    await assert.rejects(retryTask(named, {}), { code: 'no_space' })
    assert.equal((await cancelTask(named, {})).proc, 'ok')
    assert.equal((await engine.tasks.cancel({ conv_id: 'p', ref: 's' })).proc, 'ok')
    // Until a little more is free: else there would be room and none, by turns.
    room = 989
    assert.equal(healthOf(engine), 'no_space')
    await assert.rejects(engine.apply([op]), { code: 'no_space' })
    for (room of [990, 1_000, undefined]) {
      assert.equal(healthOf(engine), 'ok')
      assert.equal((await engine.apply([op]))[0]?.proc, 'ok')
    }
  })

  it('answers a read that ran with writes for which there was no room', async () => {
    let refuses = false
    const below = memoryTree()
    const tree: Tree = {
      ...below,
      commit: async (writes) => {
        if (refuses) throw fault('no_space')
        await below.commit(writes)
      },
    }
    await using engine = await engineOn(tree)
    await engine.processes.put(waiting('p'))
    await engine.apply([{ ...op, ref: 'r' }])
    refuses = true
    const show = { type: 'show', obj: 'task', conv_id: 'p', ref: 'r' } as const
    const create = { ...op, ref: 's' }
    const codes = (all: readonly object[][]): Promise<string>[] =>
      all.map((ops) => codeOf(serve(engine, ops)))
    const first = codes([[create], [show], [show, create]])
    await turns()
    const second = codes([[create], [show]])
    assert.deepEqual(await Promise.all(first), ['no_space', 'ok', 'no_space'])
    assert.deepEqual(await Promise.all(second), ['no_space', 'ok'])
  })

  it('delays timers and jobs until there is room, and still removes ended tasks', async () => {
    const clock = fakeClock()
    let room = 2_000
    let refuses = false
    const below = memoryTree()
    const tree: Tree = {
      ...below,
      freeBytes: () => room,
      commit: async (writes) => {
        if (refuses) throw fault('no_space')
        await below.commit(writes)
      },
    }
    const limits = { disk_free_bytes_min: 1_000, ended_kept_ms: 30_000 }
    await using engine = await engineOn(tree, { clock, limits })
    const handled: string[] = []
    engine.handle('work', ({ ref }) => void handled.push(ref ?? ''))
    await engine.processes.put(timed)
    await engine.create({ conv_id: 'timed', ref: 'a', data: {} })
    await engine.create({ conv_id: 'timed', ref: 'b', data: {} })
    await engine.tasks.cancel({ conv_id: 'timed', ref: 'b' })
    room = 499
    clock.advance(60_000)
    await turns(20)
    assert.equal((await engine.task({ conv_id: 'timed', ref: 'a' }))?.node_id, 'wait')
    assert.deepEqual(await tasksOf(engine, 'timed', { status: 'canceled' }), [], 'not swept')
    room = 500
    refuses = true
    clock.advance(1_000)
    await turns(20)
    assert.equal((await engine.task({ conv_id: 'timed', ref: 'a' }))?.node_id, 'wait')
    refuses = false
    for (let second = 0; second < 3; second++) {
      clock.advance(1_000)
      await turns(20)
    }
    assert.deepEqual(handled, ['a'])
    assert.equal(await engine.task({ conv_id: 'timed', ref: 'a' }), undefined)
  })
})

/** Waits ten seconds, then for a handler, and ends. */
const timed = {
  obj_id: 'timed',
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'wait' }] } },
      node('wait', 0, [], { semaphors: [{ type: 'time', value: 10, to_node_id: 'work' }] }),
      node('work', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'end' }], {
        title: 'work',
      }),
      { id: 'end', obj_type: 2 },
    ],
  },
}

describe('closing', () => {
  it('finishes ops in flight, refuses later ones, and closes once', async () => {
    const held = await heldEngine()
    const { engine } = held
    const under_way = [engine.apply([op]), engine.apply(opsOf(3))]
    await turns()
    under_way.push(engine.apply(opsOf(2)))
    const closed = engine.close()
    assert.equal(engine.close(), closed)
    assert.equal(healthOf(engine), 'shutting_down')
    await turns()
    assert.equal(await codeOf(engine.apply([op])), 'shutting_down', 'no handler is under way')
    let is_closed = false
    void closed.then(() => {
      is_closed = true
    })
    await turns()
    assert.equal(is_closed, false, 'closing waits for the disk')
    await letAllThrough(held)
    const results = (await Promise.all(under_way)).flat()
    assert.deepEqual(pick(results, 'proc'), Array(6).fill('ok'))
    await closed
    for (const late of [engine.task({ conv_id: 'p', ref: 'r' }), engine.check()]) {
      assert.equal(await codeOf(late), 'shutting_down')
    }
    const again = await engineOn(held.tree, { background: false })
    assert.equal((await tasksOf(again, 'p')).length, 6)
  })
})

describe('a watcher', () => {
  it('gets changes in order, after their commit, and only of its process', async () => {
    const held = await heldEngine()
    const { engine } = held
    const changes = engine.changes({ conv_id: 'p' })
    const all = engine.changes()
    const heard: (string | null)[] = []
    void (async () => {
      for await (const { ref } of changes) heard.push(ref)
    })()
    const done = engine.apply([
      { ...op, ref: 'a' },
      { ...op, ref: 'x', conv_id: 'q' },
      { type: 'modify', obj: 'task', conv_id: 'p', ref: 'a', data: { paid: true } },
      { ...op, ref: 'b' },
      { ...op, ref: 'b', data: { clash: 1 } },
    ])
    await turns()
    assert.deepEqual(heard, [], 'nothing is told before it is durable')
    await letAllThrough(held)
    await done
    await turns()
    assert.deepEqual(heard, ['a', 'a', 'b'])
    const told = [await all.next(), await all.next(), await all.next(), await all.next()]
    assert.deepEqual(
      told.map(({ value }) => [value?.ref, value?.status, value?.node_id]),
      [
        ['a', 'delayed', 'wait'],
        ['x', 'delayed', 'wait'],
        ['a', 'delayed', 'wait'],
        ['b', 'delayed', 'wait'],
      ],
    )
    await engine.close()
    assert.deepEqual(await all.next(), { done: true, value: undefined })
  })

  it('gets nothing for refused ops', async () => {
    await using engine = await engineOn(memoryTree())
    await engine.processes.put(waiting('p'))
    const changes = engine.changes()
    const refused = await engine.apply([
      { ...op, conv_id: 'none' },
      { type: 'modify', obj: 'task', conv_id: 'p', ref: 'r', data: {} },
      { type: 'show', obj: 'task', conv_id: 'p', ref: 'r' },
    ])
    assert.ok(refused.every(({ proc }) => proc !== 'ok'))
    await engine.apply([{ ...op, ref: 'first' }])
    assert.equal((await changes.next()).value?.ref, 'first')
  })
})
