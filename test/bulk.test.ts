/**
 * Bulk jobs: each action on the tasks of a filter, each task once wherever it moves, between the
 * transactions of callers, and exactly on after a stop or a crash at any step.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { docOfText } from '../src/codec/json.ts'
import { keysOfType, taskKey } from '../src/codec/keys.ts'
import { decodeTask, encodeTask } from '../src/codec/task-bytes.ts'
import type { TaskRecord } from '../src/codec/task-record.ts'
import { shapeIn } from '../src/engine/transactions/shapes.ts'
import { type BulkInput, type BulkJob, type Engine, rawJson, type Task } from '../src/index.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Tree } from '../src/store/tree.ts'
import { type FakeClock, fakeClock } from './support/fake-clock.ts'
import { engineOn } from './support/model-setup.ts'
import { pick } from './support/pick.ts'
import { fill, readAll } from './support/search-setup.ts'

const count = 300

interface Harness {
  readonly engine: Engine
  readonly clock: FakeClock
  readonly tree: Tree
  readonly ids: readonly string[]
  /** All tasks as they were at the beginning. */
  readonly before: readonly Task[]
  now(): Promise<Map<string, Task>>
}

/** Filled once; each harness begins with a copy. */
const filled = (async () => {
  const [tree, clock] = [memoryTree(), fakeClock()]
  const engine = await engineOn(tree, { clock, background: false })
  const ids = await fill(engine, clock, count)
  const before = await readAll(engine, ids)
  await engine.close()
  const entries = [...tree.range('', '\xff', false)]
  return {
    ids,
    before,
    now_ms: clock.now_ms(),
    entries: entries.map(({ key, value }) => [key, value] as const),
  }
})()

async function copyOfFilled(): Promise<Tree> {
  const tree = memoryTree()
  await tree.commit(changesOf((await filled).entries))
  return tree
}

async function withHarness(fn: (harness: Harness) => Promise<void>, options = {}): Promise<void> {
  const { ids, before, now_ms } = await filled
  const clock = fakeClock(now_ms + 5_000)
  const tree = await copyOfFilled()
  const engine = await engineOn(tree, { clock, background: false, ...options })
  const now = async (): Promise<Map<string, Task>> => {
    return new Map((await readAll(engine, ids)).map((task) => [task.obj_id, task]))
  }
  await fn({ engine, clock, tree, ids, before, now })
  assert.deepEqual((await engine.check()).breaches, [])
  await engine.close()
}

const isLive = ({ status }: Task): boolean => !['processed', 'canceled'].includes(status)
const dataOf = (task: Task) => task.data as Record<string, unknown>

type Row = readonly [
  name: string,
  input: BulkInput,
  isMeant: (task: Task) => boolean,
  isDone: (task: Task, before: Task) => boolean,
]

// biome-ignore format: a table
const rows: readonly Row[] = [
  ['cancel all of a process', { action: 'cancel', filter: { conv_id: 'a' } },
    (t) => isLive(t) && t.conv_id === 'a', (t) => t.status === 'canceled'],
  ['cancel by ref', { action: 'cancel', filter: { ref_prefix: 'order-' } },
    (t) => isLive(t) && t.ref?.startsWith('order-') === true, (t) => t.status === 'canceled'],
  ['cancel what is due', { action: 'cancel', filter: { due_before_ms: 2_000_000_050_000 } },
    (t) => isLive(t) && t.node_id === 'w2' && Number(dataOf(t).at) < 2_000_000_050, (t) => t.status === 'canceled'],
  ['cancel by data', { action: 'cancel', filter: { where: { odd: true }, node_id: 'Wait' } },
    (t) => isLive(t) && t.node_id === 'w1' && dataOf(t).odd === true, (t) => t.status === 'canceled'],
  ['retry where they failed', { action: 'retry', filter: {} },
    (t) => t.status === 'failed', (t, b) => t.status === 'failed' && t.change_time_ms > b.change_time_ms],
  ['retry from another node', { action: 'retry', filter: { conv_id: 'b' }, to_node_id: 'Bank' },
    (t) => t.status === 'failed' && t.conv_id === 'b', (t) => t.status === 'delayed' && t.node_id === 'w2'],
  ['modify sends on', { action: 'modify', filter: { node_id: 'w1' }, data: { paid: 7 } },
    (t) => isLive(t) && t.node_id === 'w1', (t) => t.status === 'processed' && dataOf(t).paid === 7],
  ['modify merges exactly', { action: 'modify', filter: { status: 'failed' }, data: rawJson('{"x":1.10}') },
    (t) => t.status === 'failed', (t) => t.status === 'failed' && t.data_text.includes('"x":1.10')],
  ['move to a node', { action: 'move', filter: { conv_id: 'a', node_id: 'w2' }, to_node_id: 'x1' },
    (t) => isLive(t) && t.conv_id === 'a' && t.node_id === 'w2', (t) => t.node_id === 'x1' && t.node_prev_id === 'w2'],
  ['move to the end', { action: 'move', filter: { conv_id: 'a' }, to_node_id: 'Done' },
    (t) => isLive(t) && t.conv_id === 'a', (t) => t.status === 'processed'],
]

describe('an action is done on each task of the filter and on no other', () => {
  for (const [name, input, isMeant, isDone] of rows) {
    it(name, () =>
      withHarness(async ({ engine, before, now }) => {
        const meant = before.filter(isMeant)
        assert.ok(meant.length > 10, `${meant.length} meant`)
        const dry = await engine.tasks.bulk({ ...input, dry_run: true })
        assert.equal(dry.matched, meant.length)
        assert.ok(dry.sample?.every(isMeant) && dry.sample.length === 10)
        assert.deepEqual([...(await now()).values()].map(plain), before.map(plain))
        const job = await engine.tasks.bulk(input)
        assert.deepEqual(countsOf(job), [true, meant.length, meant.length, 0, {}])
        const after = await now()
        for (const task of before) {
          const found = after.get(task.obj_id) as Task
          if (isMeant(task)) assert.ok(isDone(found, task), JSON.stringify(found))
          else assert.deepEqual(plain(found), plain(task))
        }
      }),
    )
  }
})

function plain({ obj_id, status, node_id, data_text, change_time_ms }: Task): unknown {
  return { obj_id, status, node_id, data_text, change_time_ms }
}

function countsOf({ is_done, matched, changed, skipped, refused }: BulkJob): unknown[] {
  return [is_done, matched, changed, skipped, refused]
}

describe('each task once', () => {
  it('though it moves into a node that comes later, and though it fails again', () =>
    withHarness(async ({ engine, before, now }) => {
      // Both nodes are meant, and the end of the nodes in the order of their ids.
      const input = { action: 'move', filter: { conv_id: 'a', node_id: 'Wait' } } as const
      const meant = before.filter((t) => isLive(t) && t.conv_id === 'a' && t.node_id === 'w1')
      const job = await engine.tasks.bulk({ ...input, to_node_id: 'x1' })
      assert.deepEqual(countsOf(job), [true, meant.length, meant.length, 0, {}])
      const after = await now()
      for (const { obj_id } of meant) {
        const why = after.get(obj_id)?.history?.map((entry) => entry.why) ?? []
        assert.equal(why.filter((one) => one === 'move').length, 1)
      }
      const retried = await engine.tasks.bulk({ action: 'retry', filter: { conv_id: 'a' } })
      const failed = before.filter((t) => t.status === 'failed' && t.conv_id === 'a').length
      assert.deepEqual(countsOf(retried), [true, failed, failed, 0, {}])
    }))

  it('and none that was created after the job began, or is no longer meant', () =>
    withHarness(async ({ engine, before, now }) => {
      const waiting = before.filter((t) => isLive(t) && t.node_id === 'w1' && t.conv_id === 'a')
      const last = waiting.at(-1) as Task
      let made: string | undefined
      const job = await engine.tasks.bulk({
        ...{ action: 'cancel', filter: { conv_id: 'a', node_id: 'w1' } },
        async onProgress() {
          if (made !== undefined) return
          made = ''
          const created = engine.create({ conv_id: 'a', data: { kind: 'wait' } })
          void engine.tasks.move({ conv_id: 'a', obj_id: last.obj_id }, 'x1')
          made = (await created).obj_id
        },
      })
      assert.deepEqual([job.changed, job.refused], [waiting.length - 1, {}])
      assert.equal((await now()).get(last.obj_id)?.node_id, 'x1')
      const young = await engine.task({ conv_id: 'a', obj_id: made as string })
      assert.equal(young?.status, 'delayed')
    }))
})

describe('a job that ends early goes on', () => {
  const filter = { conv_id: 'a' } as const

  it('after each number of steps and a new opening, without doing a task twice', async () => {
    for (const steps_max of [1, 2]) {
      await withHarness(async ({ engine, tree, clock, before }) => {
        const meant = before.filter((t) => isLive(t) && t.conv_id === 'a')
        const input = { action: 'modify', filter: { conv_id: 'a' }, data: { x: 1 } } as const
        const first = await engine.tasks.bulk({ ...input, id: 'night', steps_max })
        assert.equal(first.is_done, false)
        assert.equal(first.changed, 64 * steps_max)
        const again = await engineOn(tree, { clock, background: false })
        const listed = await again.tasks.bulkJobs()
        assert.deepEqual(listed, [first])
        const rest = await again.tasks.bulk({ ...input, id: 'night' })
        assert.deepEqual(countsOf(rest), [true, meant.length, meant.length, 0, {}])
        for (const { obj_id } of meant) {
          const task = await again.task({ conv_id: 'a', obj_id })
          const events = task?.history?.filter(({ why }) => why === 'modify' || why === 'callback')
          const had = dataOf(task as Task).late === true ? 1 : 0
          assert.equal(events?.length, 1 + had, JSON.stringify(events))
        }
        assert.deepEqual(await again.tasks.bulk({ ...input, id: 'night' }), rest, 'its result')
        assert.deepEqual(await again.tasks.resumeBulk('night'), rest)
      })
    }
  })

  it('by its signal, and resumed by its id alone', () =>
    withHarness(async ({ engine, before }) => {
      const abort = new AbortController()
      const seen: number[] = []
      const job = await engine.tasks.bulk({
        ...{ action: 'cancel', filter, signal: abort.signal },
        onProgress({ changed }) {
          seen.push(changed)
          if (seen.length === 2) abort.abort()
        },
      })
      assert.deepEqual([job.is_done, seen], [false, [64, 128]])
      const rest = await engine.tasks.resumeBulk(job.id as string)
      const meant = before.filter((t) => isLive(t) && t.conv_id === 'a')
      assert.deepEqual(countsOf(rest), [true, meant.length, meant.length, 0, {}])
    }))

  it('after an onProgress that throws', () =>
    withHarness(async ({ engine }) => {
      const onProgress = (): never => {
        throw new Error('mine')
      }
      const input = { action: 'cancel', filter, id: 'j' } as const
      await assert.rejects(engine.tasks.bulk({ ...input, onProgress }), /mine/)
      assert.equal((await engine.tasks.bulk(input)).is_done, true)
    }))

  it('after a close in the middle, which does not wait for it', async () => {
    const tree = memoryTree()
    const clock = fakeClock()
    const engine = await engineOn(tree, { clock, background: false })
    const ids = await fill(engine, clock, count)
    const live = (await readAll(engine, ids)).filter(isLive).length
    const input = { action: 'cancel', filter: {}, id: 'late' } as const
    let closing: Promise<void> | undefined
    const run = engine.tasks.bulk({
      ...input,
      onProgress() {
        closing ??= engine.close()
      },
    })
    await assert.rejects(run, { code: 'shutting_down' })
    await closing
    await using again = await engineOn(tree, { clock, background: false })
    const [left] = await again.tasks.bulkJobs()
    assert.deepEqual([left?.is_done, left?.changed], [false, 64])
    assert.deepEqual(countsOf(await again.tasks.bulk(input)), [true, live, live, 0, {}])
  })

  it('after a commit that failed, of which nothing is done', async () => {
    const below = memoryTree()
    const clock = fakeClock()
    let fails = false
    const tree: Tree = {
      ...below,
      commit: (changes) =>
        fails ? Promise.reject(new Error('the disk is gone')) : below.commit(changes),
    }
    const engine = await engineOn(tree, { clock, background: false })
    const ids = await fill(engine, clock, count)
    const live = (await readAll(engine, ids)).filter(isLive).length
    const input = { action: 'cancel', filter: {}, id: 'late' } as const
    const run = engine.tasks.bulk({
      ...input,
      onProgress() {
        fails = true
      },
    })
    await assert.rejects(run, { code: 'store_failed' })
    fails = false
    await using again = await engineOn(below, { clock, background: false })
    assert.equal((await again.tasks.bulkJobs())[0]?.changed, 64)
    assert.deepEqual(countsOf(await again.tasks.bulk(input)), [true, live, live, 0, {}])
    assert.deepEqual((await again.check()).breaches, [])
  })

  it('a dry run goes on by its cursor', () =>
    withHarness(
      async ({ engine, before }) => {
        const input = { action: 'cancel', filter: {}, dry_run: true, steps_max: 1 } as const
        let matched = 0
        let cursor: string | undefined
        do {
          const part = await engine.tasks.bulk({
            ...input,
            ...(cursor === undefined ? {} : { cursor }),
          })
          assert.ok(part.scanned <= 50)
          matched += part.matched
          cursor = part.cursor
          assert.equal(part.is_done, cursor === undefined)
        } while (cursor !== undefined)
        assert.equal(matched, before.filter(isLive).length)
      },
      { limits: { search_tasks_max: 50 } },
    ))
})

describe('what is refused', () => {
  it('tasks in a paused process, by code; a cancel goes through', () =>
    withHarness(async ({ engine, before }) => {
      await engine.processes.pause('a')
      const meant = before.filter((t) => isLive(t) && t.conv_id === 'a').length
      const moved = await engine.tasks.bulk({
        ...{ action: 'move', filter: { conv_id: 'a' }, to_node_id: 'x1' },
      })
      assert.deepEqual(countsOf(moved), [true, meant, 0, 0, { conveyor_is_not_active: meant }])
      const canceled = await engine.tasks.bulk({ action: 'cancel', filter: { conv_id: 'a' } })
      assert.deepEqual(countsOf(canceled), [true, meant, meant, 0, {}])
    }))

  it('data that would be too large, task by task', () =>
    withHarness(
      async ({ engine }) => {
        const input = { action: 'modify', filter: { conv_id: 'a', status: 'failed' } } as const
        const job = await engine.tasks.bulk({ ...input, data: { text: 'x'.repeat(280) } })
        assert.deepEqual(job.refused, { task_size_overflow_limit: job.matched })
        assert.ok(job.matched > 0)
      },
      { limits: { task_bytes_max: 300 } },
    ))

  it('a damaged task, and one on which the engine throws; the others go on', async () => {
    const tree = memoryTree()
    const clock = fakeClock()
    const bugs: unknown[] = []
    const onBug = (bug: unknown): unknown => bugs.push(bug)
    await using engine = await engineOn(tree, { clock, background: false, onBug })
    const ids = await fill(engine, clock, count)
    const failed = (await readAll(engine, ids)).filter(({ status }) => status === 'failed')
    const [damaged, broken] = failed.slice(3).map(({ obj_id }) => obj_id) as [string, string]
    const bytes = tree.get(taskKey(broken)) as Buffer
    const shapes = (conv: string, n: number) => shapeIn(tree, conv, n)
    const record = decodeTask(broken, bytes, shapes) as TaskRecord
    await tree.commit(
      changesOf([
        [taskKey(damaged), Buffer.from('no record')],
        [taskKey(broken), Buffer.from(encodeTask({ ...record, doc: docOfText('{"a":') }))],
      ]),
    )
    const job = await engine.tasks.bulk({ action: 'retry', filter: {} })
    const wanted = { internal_error: 1, task_damaged: 1 }
    const total = failed.length
    assert.deepEqual(countsOf(job), [true, total - 1, total - 2, 0, wanted])
    assert.ok(bugs.length > 0, 'the embedder was told')
  })

  it('another job under a used id, and one that runs already', () =>
    withHarness(async ({ engine }) => {
      const input = { action: 'cancel', filter: { conv_id: 'a', node_id: 'w1' }, id: 'x' } as const
      const run = engine.tasks.bulk({ ...input, filter: { node_id: 'w1', conv_id: 'a' } })
      await assert.rejects(engine.tasks.bulk(input), { code: 'not_possible' })
      await run
      assert.equal((await engine.tasks.bulk(input)).is_done, true)
      for (const other of [
        { ...input, action: 'retry' },
        { ...input, filter: { conv_id: 'a' } },
      ] as const) {
        await assert.rejects(engine.tasks.bulk(other), { code: 'bulk_id_taken' })
      }
      await assert.rejects(engine.tasks.resumeBulk('none'), { code: 'not_possible' })
    }))

  // biome-ignore format: a table
  const mistakes: readonly (readonly [input: object, wanted: object])[] = [
    [{ action: 'delete', filter: {} },                              { name: 'TypeError', message: /cancel, retry, modify, move/ }],
    [{ action: 'cancel' },                                          { code: 'bad_filter' }],
    [{ action: 'cancel', filter: { status: 'processed' } },         { code: 'bad_filter', message: /live/ }],
    [{ action: 'cancel', filter: { status: 'any' } },               { code: 'bad_filter', message: /live/ }],
    [{ action: 'cancel', filter: { ended_since_ms: 1 } },           { code: 'bad_filter', message: /live/ }],
    [{ action: 'cancel', filter: { status: 'fialed' } },            { code: 'bad_filter', message: /failed/ }],
    [{ action: 'cancel', filter: { nodeid: 'w1' } },                { code: 'bad_filter', message: /nodeid/ }],
    [{ action: 'cancel', filter: { conv_id: 'c' } },                { code: 'conv_not_found' }],
    [{ action: 'cancel', filter: { node_id: 'w9' } },               { code: 'node_not_found' }],
    [{ action: 'retry', filter: { status: 'delayed' } },            { code: 'bad_filter', message: /failed/ }],
    [{ action: 'modify', filter: {} },                              { name: 'TypeError', message: /data is missing/ }],
    [{ action: 'modify', filter: {}, data: 7 },                     { name: 'TypeError', message: /no object/ }],
    [{ action: 'modify', filter: {}, data: { at: new Map() } },     { name: 'TypeError', message: /data\.at/ }],
    [{ action: 'modify', filter: {}, data: { a: 'x'.repeat(131_072) } }, { name: 'TypeError', message: /at most 131072/ }],
    [{ action: 'cancel', filter: {}, id: 5 },                       { name: 'TypeError' }],
    [{ action: 'cancel', filter: {}, data: {} },                    { name: 'TypeError', message: /data/ }],
    [{ action: 'move', filter: { conv_id: 'a' } },                  { name: 'TypeError', message: /to_node_id is missing/ }],
    [{ action: 'move', filter: {}, to_node_id: 'w1' },              { code: 'bad_filter', message: /conv_id/ }],
    [{ action: 'move', filter: { conv_id: 'a' }, to_node_id: 'w9' }, { code: 'node_not_found', message: /w1 "Wait"/ }],
    [{ action: 'move', filter: { conv_id: 'a' }, to_node_id: 'Wait' }, { code: 'node_not_found', message: /w1, x1/ }],
    [{ action: 'cancel', filter: {}, to_node_id: 'w1' },            { name: 'TypeError' }],
    [{ action: 'cancel', filter: {}, id: '' },                      { name: 'TypeError' }],
    [{ action: 'cancel', filter: {}, steps_max: 0 },                { name: 'RangeError' }],
    [{ action: 'cancel', filter: {}, dry_run: true, cursor: 'x' },  { code: 'bad_cursor' }],
  ]
  it('what is malformed, before anything is written', () =>
    withHarness(async ({ engine, tree }) => {
      for (const [input, wanted] of mistakes) {
        await assert.rejects(engine.tasks.bulk(input as BulkInput), wanted, JSON.stringify(input))
      }
      assert.deepEqual([...tree.range(keysOfType('bulk').from, keysOfType('bulk').to, false)], [])
    }))
})

it('an op of a caller is answered between the steps', () =>
  withHarness(async ({ engine, before }) => {
    let answered = 0
    let is_done = false
    const callers = (async () => {
      while (!is_done) {
        await engine.create({ conv_id: 'b', data: { kind: 'done' } })
        answered++
      }
    })()
    const meant = before.filter(isLive).length
    const job = await engine.tasks.bulk({ action: 'cancel', filter: {} })
    is_done = true
    await callers
    assert.equal(job.changed, meant)
    assert.ok(answered >= meant / 64, `${answered} answered`)
  }))

it('the last hundred jobs are kept, finished ones for a day', () =>
  withHarness(async ({ engine, clock }) => {
    const filter = { conv_id: 'a', node_id: 'x1' }
    for (let n = 0; n < 103; n++) {
      await engine.tasks.bulk({ action: 'cancel', filter, id: `job-${n}` })
      clock.advance(1)
    }
    const ids = (await engine.tasks.bulkJobs()).map(({ id }) => id)
    assert.deepEqual([ids.length, ids[0], ids.at(-1)], [100, 'job-102', 'job-3'])
    clock.advance(86_400_001)
    await engine.tasks.bulk({ action: 'cancel', filter, id: 'next day' })
    assert.deepEqual(pick(await engine.tasks.bulkJobs(), 'id'), ['next day'])
  }))

describe('results of retry, move and cancel tell what they did', () => {
  it('what the task was, and what it is now', () =>
    withHarness(async ({ engine, before }) => {
      const { conv_id, obj_id } = before.find(({ status }) => status === 'failed') as Task
      const target = { conv_id, obj_id }
      const retried = await engine.tasks.retry(target, 'w1')
      assert.deepEqual(retried.was, { status: 'failed', node_id: 'f1' })
      assert.deepEqual([retried.task?.status, retried.task?.node_id], ['delayed', 'w1'])
      const moved = await engine.tasks.move(target, 'x1')
      assert.deepEqual(moved.was, { status: 'delayed', node_id: 'w1' })
      assert.deepEqual(moved.task?.data, before.find((task) => task.obj_id === obj_id)?.data)
      const canceled = await engine.tasks.cancel(target)
      assert.deepEqual(canceled.was, { status: 'delayed', node_id: 'x1' })
      assert.equal(canceled.task?.status, 'canceled')
      const refused = await engine.tasks.cancel(target)
      assert.deepEqual(
        [refused.proc, refused.was, refused.task],
        ['not_found_task', undefined, undefined],
      )
    }))
})
