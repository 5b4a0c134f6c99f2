/**
 * The history of tasks: a row for each reason why an entry is made, as lines `node why [by] [!tag]`;
 * how many are kept, and how they are written.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  byText,
  dropEntries,
  entryText,
  keepNodes,
  parseHistory,
  tagText,
} from '../src/codec/task-history.ts'
import { placeOf } from '../src/codec/task-record.ts'
import type { HistoryEntry, HistoryWhy, Task } from '../src/core/model.ts'
import {
  after,
  callback,
  callHttp,
  callProcess,
  createTask,
  defineProcess,
  end,
  go,
  handled,
  modifyTask,
  queue,
  reply,
  replyError,
  runCode,
  setData,
  takeTask,
  when,
  whenTasks,
} from '../src/define.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { anyCharacter } from './support/any-text.ts'
import type { FakeClock } from './support/fake-clock.ts'
import { type Harness, memoryHarness, settled } from './support/model-setup.ts'
import { runs } from './support/short-run.ts'
import { tasksOf } from './support/tasks-of.ts'

const kept = end({ save: true })
const waiting = [callback(), go('end')]

function linesOf(task: Task | undefined): string[] {
  return (task?.history ?? []).map(({ node_id, why, by, tag }) =>
    [node_id, why, ...(by === undefined ? [] : [by]), ...(tag ? [`!${tag}`] : [])].join(' '),
  )
}

interface Given {
  readonly engine: Engine
  readonly clock: FakeClock
  /** Of the first task. */
  readonly obj_id: string
}

type Row = readonly [
  what: string,
  definitions: readonly object[],
  /** Returns the task to look at; by default the first one. */
  then: (given: Given) => Promise<unknown>,
  lines: readonly string[],
]

const p = (nodes: object): object => defineProcess({ id: 'p', nodes: nodes as never })
const q = (nodes: object): object => defineProcess({ id: 'q', nodes: nodes as never })
const target = { conv_id: 'p', ref: 'r' }

/** Modifies the first task as a user, or as the embedder. */
const modify = async ({ engine }: Given, user?: string): Promise<void> => {
  const op = { type: 'modify', obj: 'task', ...target, data: { a: 1 } }
  const [result] = await engine.apply([op], user === undefined ? {} : { user })
  assert.equal(result?.proc, 'ok')
}

/** Resolves with the first task once it has ended, whatever runs outside transactions. */
const ended = async ({ engine, obj_id }: Given): Promise<Task | undefined> => {
  for (;;) {
    const task = await engine.task({ conv_id: 'p', obj_id })
    if (task === undefined || task.status === 'processed') return task
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** The only task of `q`, live or ended. */
const other = async ({ engine }: Given): Promise<Task | undefined> => {
  const [live] = await tasksOf(engine, 'q')
  return live ?? (await tasksOf(engine, 'q', { status: 'processed' }))[0]
}

const nothing = async (): Promise<void> => {}
const start = ['start create 7']
const to_wait = [...start, 'wait go']
const fails = setData({ a: '$.math(1/x)' })
const failed = 'fail !set_param_wrong_convert_param'
const waits = p({ start: go('wait'), wait: waiting, end: kept })

// biome-ignore format: a table
const rows: readonly Row[] = [
  ['a chain of nodes', [p({ start: go('a'), a: go('end'), end: kept })], nothing,
    [...start, 'a go', 'end go']],
  ['a callback of the user who created it', [waits], (given) => modify(given, '7'),
    [...to_wait, 'wait callback 7', 'end go']],
  ['a callback of another user', [waits], (given) => modify(given, '8'),
    [...to_wait, 'wait callback 8', 'end go']],
  ['a callback of the embedder, who is no user', [waits], modify,
    [...to_wait, 'wait callback', 'end go']],
  ['a modify that the task does not wait for',
    [p({ start: go('wait'), wait: [] })], (given) => modify(given, '8'),
    [...to_wait, 'wait modify 8']],
  ['a modify in a state process, which runs the node again',
    [defineProcess({ id: 'p', kind: 'state',
      nodes: { start: go('wait'), wait: [when('a', 'eq', 1).go('end')], end: kept } })],
    (given) => modify(given, '7'),
    [...to_wait, 'wait modify 7', 'end go']],
  ['a timer', [p({ start: go('wait'), wait: [after({ seconds: 5 }).go('late')], late: kept })],
    async ({ clock }) => clock.advance(5_000),
    [...to_wait, 'late timer']],
  ['a failure with an error node',
    [p({ start: go('a'), a: [setData({ a: '$.math(1/x)' }, { error: 'bad' })], bad: kept })], nothing,
    [...start, 'a go', `bad ${failed}`]],
  ['a failure without one, a retry, a retry from a node, a move, a cancel',
    [p({ start: go('a'), a: [fails, go('wait')], wait: waiting, end: kept })],
    async ({ engine }) => {
      await engine.tasks.retry(target)
      await engine.tasks.retry(target, 'wait')
      await engine.tasks.move(target, 'wait')
      await engine.tasks.cancel(target)
    },
    [...start, 'a go', `a ${failed}`, 'a retry', `a ${failed}`, 'wait retry', 'wait move', 'wait cancel']],
  ['a loop, of which the last entries are kept', [p({ start: go('a'), a: go('start') })],
    async ({ engine, obj_id }) => {
      const task = await engine.task({ conv_id: 'p', obj_id })
      const { history = [] } = task as Task
      return { history: [{ node_id: String(history.length), why: 'go' }, ...history.slice(-2)] }
    },
    ['64 go', 'a go', 'a fail !loop']],
  ['an import that drops its node', [waits],
    ({ engine }) => engine.processes.put(p({ start: go('end'), end: kept }), { moves: { wait: 'end' } }),
    [...to_wait, 'end migrate']],
  ['a handler', [p({ start: go('work'), work: [handled('db_call'), go('end')], end: kept })], ended,
    [...start, 'work go', 'work handler', 'end go']],
  ['code', [p({ start: go('work'), work: [runCode('data.a = 1'), go('end')], end: kept })], ended,
    [...start, 'work go', 'work code', 'end go']],
  ['a call that fails',
    [p({ start: go('work'), work: [callHttp('http://127.0.0.1:1/', { error: 'bad' })], bad: kept })],
    ended,
    [...start, 'work go', 'work call', 'bad fail !api_bad_answer']],
  ['a copy starts a history of its own',
    [q({ start: go('wait'), wait: waiting, end: kept }),
      p({ start: [createTask('q'), go('end')], end: kept })],
    other, ['start copy', 'wait go']],
  ['a copy that modifies',
    [q({ start: go('wait'), wait: waiting, end: kept }),
      p({ start: [createTask('q', { ref: 's' }), go('wait')], wait: [callback(), go('b')],
        b: [modifyTask('q', 's'), go('end')], end: kept })],
    async (given) => {
      await modify(given)
      return other(given)
    },
    ['start copy', 'wait go', 'wait copy', 'end go']],
  ['a called task', [q({ start: [reply({ a: 1 }), go('end')], end: kept }),
    p({ start: [callProcess('q'), go('end')], end: kept })], other,
    ['start rpc', 'end go']],
  ['a task that calls', [q({ start: [reply({ a: 1 }), go('end')], end: end() }),
    p({ start: [callProcess('q'), go('end')], end: kept })], nothing,
    [...start, 'start reply', 'end go']],
  ['a call that is answered by a failure', [q({ start: [replyError('no'), go('end')], end: end() }),
    p({ start: [callProcess('q', { error: 'bad' }), go('end')], bad: kept, end: kept })], nothing,
    [...start, 'bad fail !rpc_reply_exception']],
  ['a task taken out of a queue',
    [q({ start: go('line'), line: [queue(), go('end')], end: kept }),
      p({ start: [createTask('q'), go('wait')], wait: [callback(), go('take')],
        take: [takeTask('q', 'line'), go('end')], end: kept })],
    async (given) => {
      await modify(given)
      return other(given)
    },
    ['start copy', 'line go', 'line queue', 'end go']],
  ['a task of a schedule', [q({ start: go('wait'), wait: waiting, end: kept }), waits],
    async (given) => {
      const { engine, clock } = given
      await engine.schedules.put({ id: 's', at_ms: clock.now_ms() + 1, conv_id: 'q', data: {} })
      clock.advance(1)
      await settled(clock)
      return other(given)
    },
    ['start schedule', 'wait go']],
  ['a count semaphor',
    [q({ start: go('wait'), wait: [callback(), whenTasks(1).go('told')], told: kept }),
      p({ start: [createTask('q'), go('end')], end: kept })],
    async ({ engine }) => (await tasksOf(engine, 'q', { status: 'processed' }))[0],
    ['told count']],
]

for (const [what, definitions, then, lines] of rows) {
  test(what, async () => {
    const { engine, clock } = await begin(memoryHarness())
    for (const definition of definitions) await engine.processes.put(definition)
    for (const user of [7, 8]) await engine.processes.share('p', user)
    const op = { type: 'create', obj: 'task', ...target, data: {} }
    const [created] = await engine.apply([op], { user: '7' })
    const obj_id = created?.obj_id ?? ''
    await settled(clock)
    const looked_at = await then({ engine, clock, obj_id })
    await settled(clock)
    const first = await engine.task({ conv_id: 'p', obj_id })
    const is_task = typeof looked_at === 'object' && looked_at !== null && 'history' in looked_at
    assert.deepEqual(linesOf(is_task ? (looked_at as Task) : first), lines)
    await engine.close()
  })
}

async function begin(
  harness: Harness,
  history_max = 64,
): Promise<{ engine: Engine; clock: FakeClock }> {
  const engine = await harness.open({ limits: { history_max } })
  engine.handle('db_call', () => ({ a: 1 }))
  for (const id of [7, 8]) await engine.users.add({ id }).catch(() => {})
  return { engine, clock: harness.clock }
}

test('the last entries are kept, over restarts and other bounds, and a task says when', async () => {
  const harness = memoryHarness()
  const around = p({ start: go('a'), a: [callback(), go('b')], b: [callback(), go('a')] })
  const histories: (readonly [number, ...string[]])[] = []
  for (const history_max of [3, 3, 2, 0, 2]) {
    const { engine, clock } = await begin(harness, history_max)
    await engine.processes.put(around)
    const existing = await engine.task(target)
    if (existing === undefined) await engine.create({ ...target, data: {} })
    clock.advance(1_000)
    await engine.modify({ ...target, data: {} })
    const task = await engine.task(target)
    const since_ms = (task?.history?.at(-1)?.at_ms ?? 0) - (task?.create_time_ms ?? 0)
    histories.push([since_ms / 1_000, ...linesOf(task)])
    await engine.close()
  }
  assert.deepEqual(histories, [
    [1, 'a go', 'a callback', 'b go'],
    [2, 'b go', 'b callback', 'a go'],
    [3, 'a callback', 'b go'],
    [-1_700_000_000],
    [5, 'a callback', 'b go'],
  ])
})

test('a task that is not kept is told with its last entries as it ended', async () => {
  const harness = memoryHarness()
  const nodes = {
    start: go('a'),
    a: callback(),
    b: [createTask('q'), go('c')],
    c: go('end'),
    end: end({ save: false }),
  }
  const { engine } = await begin(harness, 3)
  // A task that it makes, and that runs behind it.
  await engine.processes.put(defineProcess({ id: 'q', nodes: { start: go('end'), end: kept } }))
  await engine.processes.put(p(nodes))
  await engine.create({ ...target, data: {} })
  const ended = engine.result(target)
  const { task } = await engine.tasks.move(target, 'b')
  const expected = ['b move', 'c go', 'end go']
  assert.deepEqual([linesOf(task), linesOf(await ended)], [expected, expected])
  // And so where nobody waits for its end.
  await engine.create({ ...target, data: {} })
  assert.deepEqual(linesOf((await engine.tasks.move(target, 'b')).task), expected)
  await engine.close()
})

test('what is written is read, from each entry on', () => {
  const text = fc.string({ unit: anyCharacter, maxLength: 60 })
  const entry = fc.record({
    node_id: fc.option(text, { nil: undefined }),
    passed_ms: fc.constantFrom(0, 0, 1, 35, 36, 10 ** 12),
    why: fc.constantFrom<HistoryWhy>('create', 'go', 'schedule', 'fail'),
    by: fc.option(fc.oneof(fc.constant('7'), text), { nil: undefined }),
    tag: fc.option(fc.oneof(text, fc.constant('x'.repeat(300))), { nil: undefined }),
  })
  const given = fc.array(entry, { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(given, fc.nat(20), (entries, dropped) => {
      const expected: HistoryEntry[] = []
      const nodes: string[] = []
      let [history, since_ms, node_id] = ['', 0, 'start']
      for (const { passed_ms, why, by, tag, ...entered } of entries) {
        since_ms += passed_ms
        node_id = entered.node_id ?? node_id
        const is_first = history === ''
        const is_new_time = is_first || passed_ms > 0
        const named = is_first ? node_id : entered.node_id
        const place = named === undefined ? undefined : placeOf(nodes, named)
        history += entryText(why, is_new_time ? since_ms : -1, place)
        if (by !== undefined) history += byText(by, '7')
        if (tag !== undefined) history += tagText(tag)
        expected.push({
          ...{ node_id, at_ms: 5 + since_ms, why },
          ...(by === undefined ? {} : { by }),
          ...(tag === undefined ? {} : { tag: tag.slice(0, 255) }),
        })
      }
      assert.deepEqual(parseHistory(history, nodes, 5, '7'), expected)
      const rest = dropEntries(history, dropped)
      assert.deepEqual(parseHistory(rest, nodes, 5, '7'), expected.slice(dropped))
      const kept: string[] = []
      const again = keepNodes(rest, nodes, kept)
      assert.deepEqual(parseHistory(again, kept, 5, '7'), expected.slice(dropped))
      assert.deepEqual(new Set(kept), new Set(expected.slice(dropped).map((one) => one.node_id)))
    }),
    { numRuns: runs(100) },
  )
})
