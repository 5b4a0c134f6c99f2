/**
 * Fault isolation: a bug in one task, limits that do not fit the file, a full disk, long
 * administration beside callers.
 */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { docOfText } from '../src/codec/json.ts'
import { taskKey } from '../src/codec/keys.ts'
import { encodeTask } from '../src/codec/task-bytes.ts'
import { limitsWith } from '../src/core/limits.ts'
import { loadTask } from '../src/engine/tasks/task-store.ts'
import { isFault, openEngine } from '../src/index.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { storeOf } from '../src/store/group-commit.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn, settled } from './support/model-setup.ts'
import { tempFolder } from './support/package-folder.ts'
import { go } from './support/processes.ts'
import { tasksOf } from './support/tasks-of.ts'

const node = (id: string, obj_type: number, logics: object[], seconds?: number) => ({
  id,
  obj_type,
  condition: {
    logics,
    semaphors: seconds === undefined ? [] : [{ type: 'time', value: seconds, to_node_id: 'then' }],
  },
})
const set = (extra: object) => ({ type: 'set_param', extra, extra_type: {} })

/** Waits a second, then a logic that reads the data, then an end that keeps the task. */
const waits = (obj_id: number) => ({
  obj_id,
  title: 'waits',
  conv_type: 'process',
  scheme: {
    nodes: [
      node('start', 1, [go('wait')]),
      node('wait', 0, [{ type: 'api_callback' }], 1),
      node('then', 0, [set({ seen: '{{a}}' }), go('end')]),
      { id: 'end', obj_type: 2, options: { save_task: true } },
    ],
  },
})

test('a task on which the engine throws is quarantined, and all other timers fire', async () => {
  const tree = memoryTree()
  const clock = fakeClock()
  const bugs: unknown[] = []
  await using engine = await engineOn(tree, { clock, onBug: (bug) => bugs.push(bug) })
  for (const conv_id of [1, 2]) await engine.processes.put(waits(conv_id))
  const ops = [1, 1, 2].map((conv_id, n) => ({
    type: 'create',
    obj: 'task',
    conv_id,
    ref: `r${n}`,
    data: { a: n },
  }))
  const [bad] = await engine.apply(ops)
  const obj_id = bad?.obj_id as string
  const draft = loadTask(await viewOf(tree), obj_id)
  assert.ok(draft !== undefined && draft !== 'damaged')
  const broken = encodeTask({ ...draft.task, doc: docOfText('{"a":') })
  await tree.commit(changesOf([[taskKey(obj_id), broken]]))

  clock.advance(1_000)
  await settled(clock)
  const failed = await tasksOf(engine, 1, { status: 'failed' })
  assert.deepEqual(
    failed.map((task) => [task.obj_id, task.status_details?.tag]),
    [[obj_id, 'internal_error']],
  )
  for (const conv_id of [1, 2]) {
    const ended = await tasksOf(engine, conv_id, { status: 'processed' })
    assert.equal(ended.length, 1, `process ${conv_id}`)
  }
  assert.ok(bugs.length > 0, 'the embedder was told')
  await engine.create({ conv_id: 1, data: {} })
})

const viewOf = (tree: ReturnType<typeof memoryTree>) => storeOf(tree).view(async (view) => view)

test('an op that meets a bug is answered with internal_error', async () => {
  const tree = memoryTree()
  const bugs: unknown[] = []
  await using engine = await engineOn(tree, { onBug: (bug) => bugs.push(bug) })
  await engine.processes.put(waits(1))
  const created = await engine.create({ conv_id: 1, ref: 'r', data: { a: 1 } })
  const draft = loadTask(await viewOf(tree), created.obj_id as string)
  assert.ok(draft !== undefined && draft !== 'damaged')
  const broken = encodeTask({ ...draft.task, doc: docOfText('{"a":') })
  await tree.commit(changesOf([[taskKey(draft.task.obj_id), broken]]))
  await assert.rejects(engine.modify({ conv_id: 1, ref: 'r', data: { b: 1 } }), {
    code: 'internal_error',
  })
  assert.equal(bugs.length, 1)
})

/** [limit, a value the file's format cannot keep] */
const too_high: [string, number][] = [
  ['ref_chars_max', 256],
  ['conv_id_chars_max', 65],
  ['node_id_chars_max', 65],
  ['nesting_max', 1_001],
  ['moves_without_rest_max', 2 ** 32],
]
for (const [name, value] of too_high) {
  test(`${name} ${value} is refused`, () => {
    assert.throws(() => limitsWith({ [name]: value }), RangeError)
    limitsWith({ [name]: value - 1 })
  })
}

test('data stored under wider limits is read under narrower ones', async () => {
  const tree = memoryTree()
  const deep = JSON.parse(`${'{"a":'.repeat(100)}1${'}'.repeat(100)}`)
  const wide = await engineOn(tree, { limits: { nesting_max: 200 } })
  await wide.processes.put({ ...waits(1), extra: deep })
  await wide.create({ conv_id: 1, ref: 'r', data: deep })
  await wide.close()
  await using narrow = await engineOn(tree, { limits: { node_id_chars_max: 2 } })
  assert.equal((await narrow.modify({ conv_id: 1, ref: 'r', data: { b: 1 } })).proc, 'ok')
  assert.equal((await narrow.processes.show(1)).nodes.length, 4)
})

test('a node with more logics than a record can count is refused', async () => {
  await using engine = await openEngine(':memory:')
  const many = Array.from({ length: 1_001 }, () => set({ a: '1' }))
  const definition = waits(1)
  definition.scheme.nodes[2] = node('then', 0, many)
  await assert.rejects(engine.processes.put(definition), /1001 of them are more than 1000/)
})

test('check and list do not block callers', async () => {
  await using engine = await openEngine(':memory:', { background: false })
  await engine.processes.put(waits(1))
  const create = { type: 'create', obj: 'task', conv_id: 1, data: {} }
  for (let n = 0; n < 5; n++) await engine.apply(Array.from({ length: 1_000 }, () => create))
  for (const [begin, turns_min] of [
    [() => engine.check(), 50],
    [() => tasksOf(engine, 1, { status: 'processing' }), 15],
  ] as const) {
    let turns = 0
    let is_done = false
    void begin().finally(() => {
      is_done = true
    })
    while (!is_done) {
      await new Promise((resolve) => setImmediate(resolve))
      turns++
    }
    assert.ok(turns >= turns_min, `${turns} turns`)
  }
})

test('a request makes at most ten thousand moves in a transaction, however many ops it has', async () => {
  const clock = fakeClock()
  await using engine = await openEngine(':memory:', { clock, background: false })
  await engine.processes.put({
    ...waits(1),
    scheme: {
      nodes: [node('start', 1, [go('a')]), node('a', 0, [go('b')]), node('b', 0, [go('a')])],
    },
  })
  const create = { type: 'create', obj: 'task', conv_id: 1, data: {} }
  const results = await engine.apply(Array.from({ length: 100 }, () => create))
  assert.ok(results.every(({ proc }) => proc === 'ok'))
  const tasks = await tasksOf(engine, 1, { limit: 1_000 })
  assert.equal(tasks.length, 100)
  assert.ok(tasks.every(({ status }) => status === 'processing'))
})

test('two reads of one iterator of changes both get one, and that of a closed engine ends', async () => {
  const engine = await openEngine(':memory:')
  await engine.processes.put(waits(1))
  const watcher = engine.changes()
  const both = Promise.all([watcher.next(), watcher.next()])
  for (let n = 0; n < 2; n++) await engine.create({ conv_id: 1, data: {} })
  assert.deepEqual(
    (await both).map(({ done, value }) => [done, value.conv_id]),
    [
      [false, '1'],
      [false, '1'],
    ],
  )
  await engine.close()
  assert.equal((await engine.changes().next()).done, true)
})

test('ids keep their form whatever the clock says', async () => {
  const clock = fakeClock(-5_000)
  await using engine = await openEngine(':memory:', { clock })
  await engine.processes.put(waits(1))
  let last = ''
  for (const now_ms of [-5_000, 0, 4_294_967_295_000, 9e12, 0]) {
    clock.set(now_ms)
    const { obj_id = '' } = await engine.create({ conv_id: 1, data: {} })
    assert.match(obj_id, /^[0-9a-f]{24}$/)
    assert.ok(obj_id > last, `${obj_id} behind ${last}`)
    last = obj_id
  }
})

test('a file on a full disk is refused in one sentence', async (t) => {
  const { path, remove } = tempFolder()
  const disk = join(path, 'disk')
  mkdirSync(disk)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', disk])
  if (mounted.status !== 0) {
    remove()
    return t.skip('this user may not mount a small disk here')
  }
  try {
    writeFileSync(join(disk, 'fill'), Buffer.alloc(250 * 1024))
    const refused = await openEngine(join(disk, 'tasks.lmdb')).catch((error: unknown) => error)
    assert.ok(isFault(refused))
    assert.match(refused.message, /the disk is full; make room$/)
    rmSync(join(disk, 'fill'))
  } finally {
    spawnSync('umount', ['-l', disk])
    remove()
  }
})
