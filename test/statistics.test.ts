/**
 * The numbers of an engine add up with what it was asked to do: each op, request, job, timer and
 * task is counted once, whatever transactions were shared or rolled back on the way.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { docOfText } from '../src/codec/json.ts'
import { taskKey } from '../src/codec/keys.ts'
import { encodeTask } from '../src/codec/task-bytes.ts'
import { newCounters } from '../src/core/counters.ts'
import { loadTask } from '../src/engine/tasks/task-store.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn, memoryHarness, settled } from './support/model-setup.ts'
import { go } from './support/processes.ts'

const node = (id: string, obj_type: number, logics: object[], semaphors: object[] = []) => ({
  id,
  obj_type,
  condition: { logics, semaphors },
})
const second = { type: 'time', value: 1, dimension: 'sec', to_node_id: 'end' }

/** Waits for a callback or a second, works at `Work`, and ends where tasks are kept. */
const waits = (obj_id: string): object => ({
  obj_id,
  scheme: {
    nodes: [
      node('start', 1, [go('wait')]),
      node(
        'wait',
        0,
        [{ type: 'api_callback' }, { type: 'set_param', extra: { n: '{{n}}' } }, go('work')],
        [second],
      ),
      { ...node('work', 0, [{ type: 'api_callback' }, go('end')]), title: 'Work' },
      { id: 'end', obj_type: 2, options: { save_task: true } },
    ],
  },
})
const create = (ref: string, conv_id = 'p', data: object = {}): object => ({
  ...{ type: 'create', obj: 'task', conv_id, ref, data },
})
const modify = (ref: string): object => ({ ...create(ref), type: 'modify' })

test('ops, requests, jobs, timers and tasks are counted once each', async () => {
  let calls = 0
  const harness = memoryHarness({
    limits: { ops_max: 5 },
    handlers: {
      Work: {
        handler: () => {
          if (++calls === 1) throw new Error('not yet')
        },
        backoff_ms: 1,
      },
    },
  })
  const engine = await harness.open()
  await engine.processes.put(waits('p'))
  const before = engine.statistics()
  assert.deepEqual([before.ops, before.tasks.created], [{ create: { ok: 1 } }, 1], 'the sentinel')

  // Requests of one turn share a transaction and a commit.
  const shared = Promise.all(Array.from({ length: 50 }, (_, n) => engine.apply([create(`r${n}`)])))
  const refused = engine.apply([create('r0', 'q'), { type: 'constructor' }, modify('none')])
  const whole = await Promise.allSettled([
    engine.apply([]),
    engine.apply(Array.from({ length: 6 }, () => create('x'))),
    shared,
    refused,
  ])
  assert.deepEqual(
    whole.map(({ status }) => status),
    ['rejected', 'rejected', 'fulfilled', 'fulfilled'],
  )
  await engine.apply([modify('r0')])
  await engine.tasks.cancel({ conv_id: 'p', ref: 'r1' })
  for (let n = 0; n < 3; n++) {
    harness.clock.advance(n * 1_000)
    await settled(harness.clock)
  }

  const { ops, requests, jobs, tasks, timers_fired, queue, due_lag_ms } = engine.statistics()
  assert.deepEqual(ops, {
    create: { ok: 51, conv_not_found: 1 },
    modify: { ok: 1, not_found_task: 1 },
    other: { error: 1 },
  })
  assert.deepEqual(requests, { library: { ok: 53, format_error: 1, too_many_ops: 1 } })
  assert.deepEqual(jobs, { handler: { done: 1, repeated: 1 } })
  assert.deepEqual(tasks, { created: 51, failed: 0, processed: 49, canceled: 1 })
  assert.deepEqual([timers_fired, queue, due_lag_ms], [48, { ops: 0, bytes: 0 }, 0])
  await engine.close()
})

test('a transaction that is rolled back counts nothing, and one that fails counts as refused', async () => {
  const tree = memoryTree()
  let commits_left = Number.POSITIVE_INFINITY
  const engine = await engineOn({
    ...tree,
    commit: async (writes) => {
      if (commits_left-- <= 0) throw new Error('the disk is broken')
      await tree.commit(writes)
    },
  })
  await engine.processes.put(waits('p'))
  await engine.apply([create('bad'), create('good')])
  const { obj_id = '' } = (await engine.task({ conv_id: 'p', ref: 'bad' })) ?? {}
  const draft = loadTask(await storeOf(tree).view(async (view) => view), obj_id)
  assert.ok(draft !== undefined && draft !== 'damaged')
  const broken = encodeTask({ ...draft.task, doc: docOfText('{"n":') })
  await tree.commit(changesOf([[taskKey(obj_id), broken]]))
  // The engine throws on one, so all of the turn are rolled back and run again alone.
  await Promise.allSettled(
    [create('a'), modify('bad'), create('b')].map((op) => engine.apply([op])),
  )
  const { ops, requests, tasks, events } = engine.statistics()
  assert.deepEqual(ops, { create: { ok: 4 } })
  assert.deepEqual(requests, { library: { ok: 3, internal_error: 1 } })
  assert.equal(tasks.created, 4)
  assert.equal(events.bug, 1)

  commits_left = 0
  await Promise.allSettled([engine.apply([create('c')]), engine.apply([create('d')])])
  const after = engine.statistics()
  const { library } = after.requests
  assert.deepEqual([after.ops, after.tasks], [ops, tasks])
  assert.equal(library?.store_failed, 2)
})

test('due lag grows while nothing fires, and is over once all has fired', async () => {
  const harness = memoryHarness()
  const engine = await harness.open()
  await engine.processes.put(waits('p'))
  await engine.apply([create('r')])
  await settled(harness.clock)
  harness.clock.advance(61_000)
  assert.equal(engine.statistics().due_lag_ms, 60_000)
  await settled(harness.clock)
  assert.equal(engine.statistics().due_lag_ms, 0)
  await engine.close()
})

test('waits, readers and handlers are counted while they last', async () => {
  const engine = await engineOn(memoryTree(), { clock: fakeClock() })
  await engine.processes.put(waits('p'))
  await engine.apply([create('r')])
  const counts = (): number[] => {
    const { results_waiting, feed_readers, handlers } = engine.statistics()
    return [results_waiting, feed_readers, handlers]
  }
  const changes = engine.changes({ from: 'start' })
  await changes.next()
  const unregister = engine.handle('Work', () => {})
  const result = engine.result({ conv_id: 'p', ref: 'r' })
  assert.deepEqual(counts(), [1, 1, 1])
  unregister()
  await changes.return?.()
  await engine.tasks.cancel({ conv_id: 'p', ref: 'r' })
  await result
  assert.deepEqual(counts(), [0, 0, 0])
  await engine.close()
})

test('only names of the tables are counted, and durations told while somebody measures', () => {
  const counters = newCounters()
  for (const code of ['ok', '__proto__', 'constructor', 'x'.repeat(10_000)]) {
    counters.countRequest('grpc', code, counters.beginRequest())
  }
  assert.deepEqual(counters.read().requests, { grpc: { ok: 1, other: 3 } })
  const told: string[] = []
  const stop = counters.measure({ request: (server, ms) => told.push(`${server} ${ms >= 0}`) })
  const began_ms = counters.beginRequest()
  assert.ok(began_ms > 0)
  counters.countRequest('http', 'ok', began_ms)
  stop()
  assert.equal(counters.beginRequest(), 0)
  assert.deepEqual(told, ['http true'])
})
