/**
 * Processes written in TypeScript: the logic of each step, that all of them compile without mistakes
 * and warnings, and that a step to a missing node is a type error.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limitsWith } from '../src/core/limits.ts'
import type { JsonObject } from '../src/core/model.ts'
import {
  addSums,
  after,
  atTime,
  callback,
  callHttp,
  callProcess,
  createTask,
  defineProcess,
  end,
  go,
  handled,
  modifyTask,
  node,
  queue,
  reply,
  replyError,
  runCode,
  type Step,
  setData,
  takeTask,
  when,
  whenTasks,
} from '../src/define.ts'
import { openEngine } from '../src/open.ts'
import { compileProcess } from '../src/process/compile-process.ts'
import { handler_types, logicTable } from '../src/process/logics/table.ts'

const order = defineProcess({
  id: 1234,
  title: 'Order',
  params: {
    amount: { type: 'number', required: true },
    card: { masked: true },
    currency: { regex: '^[A-Z]{3}$', regex_error_text: 'three capital letters' },
  },
  nodes: {
    start: go('wait'),
    wait: [callback(), when('paid', 'eq', true).go('done'), after({ days: 1 }).go('late')],
    done: end({ save: true }),
    late: end({ save: true, title: 'Too late' }),
  },
})

// [a step, its logic or semaphor]
const rows: [step: Step<string, unknown>, definition: object][] = [
  [go('a'), { type: 'go', to_node_id: 'a' }],
  [
    when('n', 'more', 5).and('s', 'regexp', '^x').go('a'),
    {
      type: 'go_if_const',
      to_node_id: 'a',
      conditions: [
        { param: 'n', fun: 'more', const: '5', cast: 'number' },
        { param: 's', fun: 'regexp', const: '^x', cast: 'string' },
      ],
    },
  ],
  [
    when('o', 'eq', { a: [1] })
      .and('n', 'eq', '{{m}}', 'number')
      .go('a'),
    {
      type: 'go_if_const',
      to_node_id: 'a',
      conditions: [
        { param: 'o', fun: 'eq', const: '{"a":[1]}', cast: 'object' },
        { param: 'n', fun: 'eq', const: '{{m}}', cast: 'number' },
      ],
    },
  ],
  [
    setData(
      { a: 1, b: true, c: 'x', d: '{{a}}', e: [1], f: 12n, g: '{{a}}', h: undefined, i: null },
      { types: { g: 'string' }, error: 'a' },
    ),
    {
      type: 'set_param',
      extra: {
        ...{ a: '1', b: 'true', c: 'x', d: '{{a}}', e: '[1]', f: '12', g: '{{a}}', i: null },
      },
      extra_type: {
        ...{ a: 'number', b: 'boolean', c: 'string', e: 'array', f: 'number', g: 'string' },
      },
      err_node_id: 'a',
    },
  ],
  [callback(), { type: 'api_callback', is_sync: false, obj_id_path: '' }],
  [
    callback({ error: 'a' }),
    { type: 'api_callback', is_sync: false, obj_id_path: '', err_node_id: 'a' },
  ],
  [
    createTask(order, { ref: '{{x}}', data: { a: 1 }, all: true, error: 'a' }),
    {
      ...{ type: 'api_copy', mode: 'create', conv_id: 1234, ref: '{{x}}', is_sync: false },
      ...{ send_parent_data: true, group: 'all', err_node_id: 'a' },
      ...{ data: { a: '1' }, data_type: { a: 'number' } },
    },
  ],
  [
    modifyTask('@other', 'r', { is_sync: true }),
    {
      ...{ type: 'api_copy', mode: 'modify', conv_id: '@other', ref: 'r', is_sync: true },
      ...{ send_parent_data: false, group: '', data: {}, data_type: {} },
    },
  ],
  [
    callProcess(7, { data: { q: '{{a}}' }, error: 'a' }),
    {
      ...{ type: 'api_rpc', conv_id: 7, group: '', err_node_id: 'a' },
      ...{ extra: { q: '{{a}}' }, extra_type: {} },
    },
  ],
  [
    reply({ a: 1 }),
    {
      ...{ type: 'api_rpc_reply', mode: 'key_value', throw_exception: false },
      ...{ res_data: { a: '1' }, res_data_type: { a: 'number' } },
    },
  ],
  [
    reply(['a', 'b']),
    {
      ...{ type: 'api_rpc_reply', mode: 'keys', throw_exception: false },
      ...{ res_data: ['a', 'b'], res_data_type: {} },
    },
  ],
  [
    replyError('no {{a}}'),
    {
      ...{ type: 'api_rpc_reply', mode: 'key_value', throw_exception: true },
      ...{ exception_reason: 'no {{a}}', res_data: {}, res_data_type: {} },
    },
  ],
  [queue(), { type: 'api_queue', data: {}, data_type: {} }],
  [
    takeTask(order, 'wait', { newest: true, error: 'a' }),
    {
      ...{ type: 'api_get_task', conv_id: 1234, node_id: 'wait', order_by: 'DESC' },
      err_node_id: 'a',
    },
  ],
  [
    addSums({ total: '{{a}}', count: 1 }),
    {
      type: 'api_sum',
      extra: [
        { id: 'total', name: 'total', value: '{{a}}' },
        { id: 'count', name: 'count', value: '1' },
      ],
    },
  ],
  [
    runCode('data.x = 1', { error: 'a' }),
    { type: 'api_code', lang: 'js', src: 'data.x = 1', err_node_id: 'a' },
  ],
  [
    callHttp('https://x.test/', {
      ...{ data: { a: 1 }, headers: { k: 'v' }, more: { max_threads: 2 } },
      ...{ retry: { attempts_max: 3 }, debug: true },
    }),
    {
      ...{ retry: { attempts_max: 3 }, debug_info: true },
      ...{ type: 'api', url: 'https://x.test/', method: 'POST', format: '', max_threads: 2 },
      ...{ extra: { a: '1' }, extra_type: { a: 'number' }, extra_headers: { k: 'v' } },
    },
  ],
  [
    handled('db_call', { error: 'a', sql: 'select 1' }),
    { type: 'db_call', sql: 'select 1', err_node_id: 'a' },
  ],
  [
    after({ days: 1, hours: 1, minutes: 1, seconds: 1 }).go('a'),
    { type: 'time', value: 90_061, dimension: 'sec', to_node_id: 'a' },
  ],
  [
    atTime('{{due}}').go('a'),
    { type: 'time', value: '{{due}}', dimension: 'sec', to_node_id: 'a' },
  ],
  [whenTasks(5).go('a'), { type: 'count', value: 5, esc_node_id: 'a' }],
]

for (const [step, definition] of rows) {
  test(`${JSON.stringify(definition).slice(0, 70)}`, () => {
    assert.deepEqual(step.definition, definition)
    const wide = step as Step<'a'>
    const { mistakes } = compiled({
      ...defineProcess({ id: 1, nodes: { start: go('work'), work: [wide, go('a')], a: end() } }),
    })
    assert.deepEqual(mistakes, [])
  })
}

function compiled(definition: object): {
  mistakes: readonly string[]
  warnings: readonly string[]
} {
  const parsed = JSON.parse(JSON.stringify(definition)) as JsonObject
  return compileProcess(parsed, limitsWith(), () => true)
}

test('every logic kind has a step', () => {
  const written = new Set(rows.map(([{ definition }]) => definition.type))
  for (const { type } of logicTable) assert.ok(written.has(type), type)
  const types: Parameters<typeof handled>[0][] = ['git_call', 'db_call', 'api_form', 'api_git']
  assert.deepEqual(types, handler_types)
})

test('node names are ids and titles, and a definition has every member of the format', () => {
  const escalation = node([go('end')], { kind: 'escalation', title: 'Trouble', x: 1, y: 2 })
  const { obj_id, conv_type, params, scheme } = defineProcess({
    id: 'states',
    kind: 'state',
    params: { card: { type: 'string', required: true, masked: true } },
    nodes: { start: go('trouble'), trouble: escalation, end: end({ save: true }) },
  })
  const nothing = { description: '', options: { save_task: false } }
  const condition = (...logics: object[]) => ({ condition: { logics, semaphors: [] } })
  assert.deepEqual(
    { obj_id, conv_type, params, scheme },
    {
      obj_id: 'states',
      conv_type: 'state',
      params: [
        {
          ...{ name: 'card', type: 'string', descr: '', regex: '', regex_error_text: '' },
          flags: ['input', 'required', 'auto-clear'],
        },
      ],
      scheme: {
        nodes: [
          {
            ...{ id: 'start', obj_type: 1, title: 'start', ...nothing },
            ...condition({ type: 'go', to_node_id: 'trouble' }),
          },
          {
            ...{ id: 'trouble', obj_type: 3, title: 'Trouble', x: 1, y: 2, ...nothing },
            ...condition({ type: 'go', to_node_id: 'end' }),
          },
          {
            ...{ id: 'end', obj_type: 2, title: 'end', ...nothing, options: { save_task: true } },
            ...condition(),
          },
        ],
      },
    },
  )
})

test('a process in TypeScript runs without a warning', async () => {
  await using engine = await openEngine(':memory:')
  assert.deepEqual((await engine.processes.put(order)).warnings, [])
  const bad = await engine.create({ conv_id: 1234, data: {} })
  assert.equal(bad.proc, 'wrong_validate_params')
  const data = { amount: 1, card: 'x', currency: 'EUR' }
  const { obj_id } = await engine.create({ conv_id: 1234, ref: 'o-1', data })
  assert.equal(
    (await engine.modify({ conv_id: 1234, ref: 'o-1', data: { paid: true } })).proc,
    'ok',
  )
  const task = await engine.task({ conv_id: 1234, obj_id: obj_id as string })
  assert.equal(task?.node_id, 'done')
})

// Each marked line must fail to compile: otherwise tsc reports the mark.
test('a step to a missing node is a type error', () => {
  const nodes = { end: end() }
  const mistaken = [
    () =>
      // @ts-expect-error no node "don"
      defineProcess({ id: 1, nodes: { start: go('don'), done: end() } }),
    () =>
      // @ts-expect-error in a list of steps
      defineProcess({ id: 1, nodes: { start: [callback(), go('don')], done: end() } }),
    () =>
      // @ts-expect-error after a condition
      defineProcess({ id: 1, nodes: { start: when('a', 'eq', 1).go('don'), done: end() } }),
    () =>
      // @ts-expect-error as an error node
      defineProcess({ id: 1, nodes: { start: [setData({}, { error: 'don' })], done: end() } }),
    () =>
      // @ts-expect-error after a time
      defineProcess({ id: 1, nodes: { start: [after({ days: 1 }).go('don')], done: end() } }),
    () =>
      // @ts-expect-error in a node with a title
      defineProcess({ id: 1, nodes: { start: node([go('don')], { title: 'x' }), done: end() } }),
    () =>
      // @ts-expect-error no start
      defineProcess({ id: 1, nodes }),
    () =>
      // @ts-expect-error an unknown comparison
      when('a', 'equals', 1),
    () =>
      // @ts-expect-error an unknown type
      setData({ a: 1 }, { types: { a: 'int' } }),
  ]
  // The engine reports the first six as well.
  for (const define of mistaken.slice(0, 6)) {
    assert.match(compiled(define() as object).mistakes[0] ?? '', /"don" is no node/)
  }
})
