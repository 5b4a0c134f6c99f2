/**
 * The view of a task: each row has the members that differ in a record, and in the view made of its
 * bytes. `data` is an own member of the view, parsed at each read; in a copy it is a value. `history`
 * is parsed at each read too, and no copy has it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { withParsedData } from '../src/client/transport.ts'
import { docOfText } from '../src/codec/json.ts'
import { decodeTask, encodeTask } from '../src/codec/task-bytes.ts'
import type { TaskRecord } from '../src/codec/task-record.ts'
import type { Task } from '../src/core/model.ts'
import { viewTask } from '../src/engine/tasks/task-view.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { engineOn } from './support/model-setup.ts'

const record: TaskRecord = {
  obj_id: '6508f5a0c0ffee0102000001',
  conv_id: '77',
  ref: { text: 'order-1', is_number: false },
  user_id: undefined,
  create_ms: 1_695_086_000_007,
  change_ms: 1.7e12,
  status: 'processing',
  details: undefined,
  node_id: 'wait',
  node_prev_id: 'start',
  nodes: ['start', 'wait'],
  wait: 'callback',
  logic_at: 0x1234,
  due_ms: 5,
  semaphor_at: 0xfedc,
  visit: 7,
  moves: 8,
  at_ms: 9,
  has_slots: false,
  attempts: 0xffff,
  caller_id: undefined,
  called_id: undefined,
  former_id: undefined,
  digest: undefined,
  doc: docOfText('{"a":1}'),
  history: 'C0/\0',
  history_count: 1,
  history_ms: -1,
  trace: undefined,
}
const view = {
  obj_id: record.obj_id,
  conv_id: '77',
  ref: 'order-1',
  status: 'processing',
  user_id: null,
  create_time_ms: record.create_ms,
  change_time_ms: 1.7e12,
  node_id: 'wait',
  node_prev_id: 'start',
  data_text: '{"a":1}',
  data: { a: 1 },
}
const details = { tag: 'api_limit', description: '€ and more' }
const hex = { node_id: '5f0c'.repeat(6), node_prev_id: 'F0'.repeat(12) }
const wide = { conv_id: 'ї€😀', node_id: 'n'.repeat(300), node_prev_id: '' }
const zeros = {
  change_ms: record.create_ms,
  due_ms: 0,
  at_ms: 0,
  semaphor_at: 0,
  has_slots: false,
  attempts: 0,
  visit: 0,
  logic_at: 0,
}
const most = {
  ...{ change_ms: 2 ** 48 - 1, due_ms: 2 ** 53 - 1, at_ms: 2 ** 53 - 2 },
  ...{ visit: 2 ** 32 - 1, moves: 2 ** 32 - 1, semaphor_at: 0xffff, logic_at: 0xffff },
}
const ids = { caller_id: 'a'.repeat(24), called_id: 'b'.repeat(24) }
const trace = {
  trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
  span_id: '00f067aa0ba902b7',
  flags: 1,
}
const other_doc = docOfText('{"b":1}')

// biome-ignore format: a table
const rows: readonly (readonly [string, Partial<TaskRecord>, object])[] = [
  ['a plain one',            {},                                       {}],
  ['one without a ref',      { ref: undefined },                       { ref: null }],
  ['one with a number',      { ref: { text: '7', is_number: true } },  { ref: '7', ref_is_number: true }],
  ['one of a user',          { user_id: '13000' },                     { user_id: '13000' }],
  ['one that failed',        { status: 'failed', details },            { status: 'failed', status_details: details }],
  ['long and wide texts',    wide,                                     wide],
  ['nodes of hex digits',    hex,                                      hex],
  ['ids before its texts',   { digest: Buffer.alloc(32, 1), ...ids },  {}],
  ['wide data',              { doc: docOfText('{"a":"€"}') },          { data_text: '{"a":"€"}', data: { a: '€' } }],
  ['one with a trace',       { trace },                                { trace_id: trace.trace_id }],
  ['a trace before its ids', { trace, digest: Buffer.alloc(32, 1), ...ids }, { trace_id: trace.trace_id }],
  ['zeros',                  zeros,                                    { change_time_ms: record.create_ms }],
  ['the largest numbers',    most,                                     { change_time_ms: 2 ** 48 - 1 }],
  ['wide texts and all else', { ...wide, node_prev_id: hex.node_id, ...ids, trace, details, status: 'failed', user_id: 'ї', digest: Buffer.alloc(32, 1) }, { ...wide, node_prev_id: hex.node_id, status: 'failed', status_details: details, user_id: 'ї', trace_id: trace.trace_id }],
  ['a number kept exactly',  { doc: docOfText('{"a":1.10}') },         { data_text: '{"a":1.10}', data: { a: 1.1 } }],
]

for (const [name, given, expected] of rows) {
  test(`${name}: comes back from its bytes, and its view shows it`, () => {
    const task = { ...record, nodes: [...record.nodes], ...given }
    const decoded = decodeTask(task.obj_id, encodeTask(task))
    assert.deepEqual(decoded, task)
    const made = viewTask(decoded as TaskRecord)
    assert.deepEqual({ ...made }, { ...view, ...expected })
    assert.deepEqual(JSON.parse(JSON.stringify(made)), { ...view, ...expected })
    assert.deepEqual(Object.keys(made).slice(0, 11), Object.keys(view))
    assert.deepEqual(made.history, [{ node_id: 'start', at_ms: record.create_ms, why: 'create' }])
  })
}

test('the stored bytes of a record do not change', () => {
  const hex =
    '05107f01f722ad2d8efa01f2c1adce2485defdafd562fdddfdafd56207b42408dcfd03ffff030102070402010205044b' +
    'f92f3577b34da6a3ce929d0e0e473600f067aa0ba902b70137376f726465722d3143302f007374617274776169747b22' +
    '61223a317d'
  const read = decodeTask(record.obj_id, Buffer.from(hex, 'hex'))
  assert.deepEqual(read, { ...record, trace })
  assert.equal(encodeTask({ ...record, trace }).toString('hex'), hex)
})

test('a damaged record is told from a good one, whichever byte is wrong', () => {
  const good = Buffer.from(encodeTask({ ...record, nodes: [], trace, ...wide }))
  for (let at = 0; at < good.length; at++) {
    const bad = Buffer.from(good)
    bad[at] = (bad[at] as number) ^ 1
    assert.equal(decodeTask(record.obj_id, bad), 'damaged', `byte ${at}`)
    assert.equal(decodeTask(record.obj_id, good.subarray(0, at)), 'damaged', `${at} bytes`)
  }
})

test('console.log shows the data, and so do JSON, copies and diffs', () => {
  const made = viewTask({ ...record, doc: docOfText('{"a":{"b":[1]}}') })
  const shown = inspect(made)
  assert.match(shown, /\n {2}data: \{ a: \{ b: \[ 1 \] \} \}\n\}$/)
  assert.doesNotMatch(shown, /Getter|data_text|inspect/)
  assert.match(
    inspect({ a: { b: { tasks: [made] } } }, { depth: 4 }),
    /data: \{ a: \{ b: \[ 1 \] \} \}/,
  )
  // As the diffs of node:assert and of vitest and jest read values.
  assert.match(inspect(made, { customInspect: false, getters: true }), /data: \[Getter\] \{ a: /)
  const copy = Object.entries(made).find(([name]) => name === 'data')
  assert.deepEqual(copy, ['data', { a: { b: [1] } }])
  assert.deepEqual(made, { ...made })
  assert.deepEqual(Object.keys(JSON.parse(JSON.stringify(made))), Object.keys(view))
  const client_task = withParsedData({ ...view, data_text: '{"a":1}' } as Task)
  assert.match(inspect(client_task), /data: \{ a: 1 \}/)
})

test('a caller who changes the data changes it for nobody else', () => {
  const [one, other]: readonly Task[] = [viewTask(record), viewTask({ ...record, doc: other_doc })]
  ;(one?.data as { a: number }).a = 2
  assert.deepEqual([one?.data, other?.data], [{ a: 1 }, { b: 1 }])
  assert.notEqual(one?.data, one?.data)
})

test('a malformed target rejects and does not throw', async () => {
  const engine = await engineOn(memoryTree())
  const asked = engine.task({ conv_id: 1 })
  await assert.rejects(asked, new TypeError("ref: Key 'ref' is required"))
  await engine.close()
})
