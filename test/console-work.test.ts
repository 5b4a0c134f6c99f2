/**
 * What the operator's page does in many calls: a search page after page, of which some are empty,
 * and work on many tasks that is counted, stopped and gone on with.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newBulkWork } from '../src/console/page/tasks/bulk-work.ts'
import { type Call, newTaskList } from '../src/console/page/tasks/list.ts'
import { empty_search } from '../src/console/page/tasks/search.ts'
import type { Bulk } from '../src/console/server/messages.ts'

const bulk: Bulk = { action: 'retry', filter: { status: 'failed' } }

/** Answers one call after another, and notes them; a function is called before its answer. */
function answering(answers: readonly (object | Error | (() => object))[]) {
  const calls: string[] = []
  const call = (async (name: string, { cursor, id }: { cursor?: string; id?: string }) => {
    const answer = answers[calls.length]
    calls.push([name, cursor, id].filter((part) => part !== undefined).join(' '))
    if (answer instanceof Error) throw answer
    return typeof answer === 'function' ? answer() : answer
  }) as Call
  return { call, calls }
}

const rows = (...ids: string[]) => ids.map((obj_id) => ({ obj_id }))
const page = (ids: string[], cursor?: string) => ({
  ...{ rows: rows(...ids), scanned: 10_000, sorted_by: 'created' },
  ...(cursor === undefined ? {} : { cursor, reached_ms: 5 }),
})

test('a search goes on over empty pages until it has found a task', async () => {
  const { call, calls } = answering([page([], 'a'), page([], 'b'), page(['1'], 'c'), page(['2'])])
  const list = newTaskList(call)
  await list.begin(empty_search)
  assert.deepEqual(calls, ['tasks', 'tasks a', 'tasks b'])
  assert.equal(list.progress.value.scanned, 30_000)
  assert.equal(list.progress.value.goes_on, true)
  await list.more()
  assert.deepEqual(list.rows.value, rows('1', '2'))
  assert.equal(list.progress.value.goes_on, false)
})

test('a search that is stopped keeps what it has, and goes on when it is told to', async () => {
  const { call, calls } = answering([
    page([], 'a'),
    () => {
      list.stop()
      return page(['late'], 'b')
    },
    page(['1']),
  ])
  const list = newTaskList(call)
  await list.begin(empty_search)
  assert.deepEqual(list.rows.value, [])
  assert.deepEqual([list.progress.value.is_running, list.progress.value.is_stopped], [false, true])
  await list.more()
  assert.deepEqual(calls, ['tasks', 'tasks a', 'tasks a'])
  assert.deepEqual(list.rows.value, rows('1'))
})

test('a refused page stops the search and says why', async () => {
  const refused = Object.assign(new Error('no such node'), { code: 'node_not_found' })
  const list = newTaskList(answering([refused]).call)
  await list.begin(empty_search)
  assert.equal(list.fault.value, refused)
  assert.equal(list.progress.value.is_stopped, true)
})

const job = (matched: number, is_done: boolean, more: object = {}) => ({
  ...{ action: 'retry', filter: {}, started_ms: 0, scanned: matched, skipped: 0 },
  ...{ matched, changed: matched, refused: {}, is_done, id: 'j' },
  ...more,
})

test('tasks are counted over several calls, then changed, stopped and gone on with', async () => {
  const { call, calls } = answering([
    job(7, false, { cursor: 'a' }),
    job(5, true),
    job(4, false),
    () => {
      work.stop()
      return job(8, false)
    },
    job(12, true, { changed: 11, refused: { not_found_task: 1 } }),
  ])
  const work = newBulkWork(call)
  await work.count(bulk)
  assert.deepEqual(work.state.value, { step: 'counted', counted: 12 })
  await work.run(bulk)
  assert.equal(work.state.value.step, 'stopped')
  assert.equal(work.state.value.job?.changed, 8)
  await work.resume('j')
  assert.equal(work.state.value.step, 'done')
  assert.deepEqual(work.state.value.job?.refused, { not_found_task: 1 })
  const expected = ['bulk_count', 'bulk_count a', 'bulk', 'bulk_resume j', 'bulk_resume j']
  assert.deepEqual(calls, expected)
})

test('work that breaks off is offered to go on; what never began, to begin', async () => {
  const broken = new Error('the server does not answer')
  const begun = newBulkWork(answering([job(4, false), broken]).call)
  await begun.run(bulk)
  assert.deepEqual([begun.state.value.step, begun.state.value.fault], ['stopped', broken])
  const refused = newBulkWork(answering([broken]).call)
  await refused.run(bulk)
  assert.deepEqual([refused.state.value.step, refused.state.value.job], ['counted', undefined])
})
