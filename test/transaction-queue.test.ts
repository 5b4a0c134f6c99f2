/**
 * Requests of one turn (engine/transaction-queue): they share a transaction, and each has its own
 * result.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { docOfText } from '../src/codec/json.ts'
import { metaKey, taskKey } from '../src/codec/keys.ts'
import { encodeTask } from '../src/codec/task-bytes.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { loadTask } from '../src/engine/tasks/task-store.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { engineOn } from './support/model-setup.ts'
import { go } from './support/processes.ts'
import { tasksOf } from './support/tasks-of.ts'

const node = (id: string, obj_type: number, logics: object[]) => ({
  id,
  obj_type,
  condition: { logics },
})
const definition = {
  obj_id: 1,
  scheme: {
    nodes: [
      node('start', 1, [go('step')]),
      node('step', 0, [go('wait')]),
      node('wait', 0, [{ type: 'api_callback' }, go('end')]),
      { id: 'end', obj_type: 2, options: { save_task: true } },
    ],
  },
}

async function engineWith(options: Parameters<typeof engineOn>[1] = {}, tree = memoryTree()) {
  const engine = await engineOn(tree, options)
  await engine.processes.put(definition)
  return engine
}

const create = (engine: Engine, ref: string, data: object = {}) =>
  engine.create({ conv_id: 1, ref, data })
const modify = (engine: Engine, ref: string, data: object = {}) =>
  engine.modify({ conv_id: 1, ref, data })

test('records that requests share are written once', async () => {
  const tree = memoryTree()
  const last_id_key = metaKey('last_id')
  let transactions = 0
  const last_ids: string[] = []
  const commit: typeof tree.commit = (changes) => {
    transactions++
    last_ids.push(...[...changes].map(([key]) => key).filter((key) => key === last_id_key))
    return tree.commit(changes)
  }
  const engine = await engineWith({}, { ...tree, commit })
  transactions = 0
  const refs = Array.from({ length: 20 }, (_, n) => `r${n}`)
  const created = await Promise.all(refs.map((ref) => create(engine, ref)))
  assert.deepEqual([transactions, last_ids.length], [1, 1])
  const ids = created.map(({ obj_id }) => obj_id as string)
  assert.deepEqual(ids, [...new Set(ids)].sort())
  await engine.close()
})

test('each request sees those before it, and administration comes after them', async () => {
  const engine = await engineWith()
  const all = await Promise.all([
    create(engine, 'a', { n: 1 }),
    create(engine, 'a', { n: 2 }),
    modify(engine, 'a', { n: 3 }),
    engine.tasks.cancel({ conv_id: 1, ref: 'a' }),
    create(engine, 'b'),
    engine.processes.pause(1),
    create(engine, 'c'),
  ])
  assert.deepEqual(
    all.map((one) => one?.proc),
    ['ok', 'not_unical_ref', 'ok', 'not_found_task', 'ok', undefined, 'conveyor_is_not_active'],
  )
  await engine.close()
})

test('each request has its own moves', async () => {
  const engine = await engineWith({ limits: { moves_per_transaction_max: 4 } })
  const refs = Array.from({ length: 20 }, (_, n) => `r${n}`)
  await Promise.all(refs.map((ref) => create(engine, ref)))
  const waiting = await tasksOf(engine, 1, { node_id: 'wait', status: 'delayed' })
  assert.equal(waiting.length, refs.length)
  await engine.close()
})

test('a signal that changes the number of another node is told there too, without moves left', async () => {
  const engine = await engineWith({ limits: { moves_per_transaction_max: 2 } })
  const counted = (id: string, obj_type: number, esc_node_id: string) => ({
    ...{ id, obj_type },
    condition: {
      logics: [{ type: 'api_callback' }],
      semaphors: [{ type: 'count', value: 1, esc_node_id }],
    },
  })
  const nodes = [
    counted('start', 1, 'one'),
    counted('one', 0, 'two'),
    node('two', 0, [{ type: 'api_callback' }]),
  ]
  await engine.processes.put({ obj_id: 2, scheme: { nodes } })
  await engine.create({ conv_id: 2, ref: 'a', data: {} })
  const found = await Promise.all(
    ['start', 'one', 'two'].map((node_id) => tasksOf(engine, 2, { node_id })),
  )
  assert.deepEqual(
    found.map((tasks) => tasks.length),
    [1, 1, 1],
  )
  await engine.close()
})

test('a task that calls one that fails over its timer, again and again, fails with the tag loop', async () => {
  const engine = await engineWith({ limits: { moves_without_rest_max: 20 } })
  const wait = {
    logics: [{ type: 'api_callback' }],
    semaphors: [{ type: 'time', dimension: 'sec', value: '{{no_time}}', to_node_id: 'start' }],
  }
  const start = [{ type: 'api_rpc', conv_id: 2, extra: {}, extra_type: {}, err_node_id: 'start' }]
  await engine.processes.put({
    obj_id: 2,
    scheme: { nodes: [{ id: 'start', obj_type: 1, condition: wait }] },
  })
  await engine.processes.put({ obj_id: 3, scheme: { nodes: [node('start', 1, start)] } })
  await engine.create({ conv_id: 3, ref: 'a', data: {} })
  const { status, status_details } = (await engine.task({ conv_id: 3, ref: 'a' })) ?? {}
  assert.deepEqual([status, status_details?.tag], ['failed', 'loop'])
  await engine.close()
})

/** A task `bad`, whose next change meets a bug. */
async function createBroken(engine: Engine, tree: ReturnType<typeof memoryTree>): Promise<void> {
  const { obj_id } = await create(engine, 'bad', { a: 1 })
  const draft = await storeOf(tree).view((view) => loadTask(view, obj_id as string))
  assert.ok(draft !== undefined && draft !== 'damaged')
  const broken = encodeTask({ ...draft.task, doc: docOfText('{"a":') })
  await tree.commit(changesOf([[taskKey(draft.task.obj_id), broken]]))
}

test('a bug rejects only its own request', async () => {
  const tree = memoryTree()
  const bugs: unknown[] = []
  const engine = await engineWith({ onBug: (bug) => bugs.push(bug) }, tree)
  await createBroken(engine, tree)
  const all = await Promise.allSettled([
    create(engine, 'a'),
    modify(engine, 'bad', { b: 1 }),
    modify(engine, 'a'),
  ])
  assert.deepEqual(
    all.map((one) => (one.status === 'fulfilled' ? one.value.proc : one.reason.code)),
    ['ok', 'internal_error', 'ok'],
  )
  assert.equal(bugs.length, 1)
  assert.equal((await engine.task({ conv_id: 1, ref: 'a' }))?.status, 'processed')
  await engine.close()
})

test('what is queued after a request with a bug runs after those beside it', async () => {
  const tree = memoryTree()
  let release = (): void => {}
  let held: Promise<void> | undefined
  const commit: typeof tree.commit = async (changes) => {
    await held
    return tree.commit(changes)
  }
  const engine = await engineWith({ onBug() {} }, { ...tree, commit })
  await createBroken(engine, tree)
  held = new Promise((resolve) => {
    release = resolve
  })
  const turns = [[() => create(engine, 'first')], besides(engine), [() => modify(engine, 'a')]]
  const all: Promise<{ readonly proc: string }>[] = []
  for (const calls of turns) {
    all.push(...calls.map((call) => call()))
    await new Promise((resolve) => setImmediate(resolve))
  }
  release()
  const ended = await Promise.allSettled(all)
  assert.deepEqual(
    ended.map((one) => (one.status === 'fulfilled' ? one.value.proc : one.reason.code)),
    ['ok', 'ok', 'internal_error', 'ok'],
  )
  await engine.close()
})

const besides = (engine: Engine) => [
  () => create(engine, 'a'),
  () => modify(engine, 'bad', { b: 1 }),
]

test('requests queued when the engine closes are answered', async () => {
  const engine = await engineWith()
  const created = create(engine, 'a')
  await engine.close()
  assert.equal((await created).proc, 'ok')
})
