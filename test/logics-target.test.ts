/**
 * The kinds that act on other tasks, a table each: definition and data → command. The nodes `a` and
 * `b` exist.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject } from '../src/codec/json.ts'
import type { EvaluationContext } from '../src/process/logic.ts'
import { compiledLogic, contextOf } from './support/logic-context.ts'

/** A command with its data as text. */
function commandOf(logic: object, data: string, more: Partial<EvaluationContext> = {}): unknown {
  const { command, mistakes } = compiledLogic(JSON.stringify(logic), contextOf(data, more))
  if (command === undefined) return { mistakes }
  const shown = Object.entries(command).map(([name, value]) => [
    name,
    isObject(value) && typeof value.text === 'string' ? value.text : value,
  ])
  return Object.fromEntries(shown.filter(([, value]) => value !== undefined))
}

type Row = readonly [logic: object, data: string, command: object]

function rows(type: string, list: readonly Row[]): void {
  for (const [logic, data, command] of list) {
    test(`${type} ${JSON.stringify(logic).slice(0, 90)} over ${data.slice(0, 40)}`, () => {
      assert.deepEqual(commandOf({ type, ...logic }, data), command)
    })
  }
}

const conv = (conv_id: string, is_from_template = false) => ({ conv_id, is_from_template })
const made = (doc: string, more: object = {}) => ({
  ...{ command: 'copy_create', conv: conv('7'), doc },
  ...more,
})
const merged = (doc: string, more: object = {}) => ({
  ...{ command: 'copy_modify', conv: conv('7'), ref: 'r', doc, is_sync: false },
  ...more,
})
const failed = (kind: string, tag: string, description: string, more: object = {}) => ({
  ...{ command: 'fail', kind, error_type: 'software', tag, description },
  ...more,
})
const mistake = (says: string) => ({ mistakes: [says] })
const unconverted = (
  kind: string,
  tag: string,
  param: string,
  value: string,
  to: string,
  more: object = {},
) =>
  failed(
    ...([kind, `${tag}_wrong_convert_param`] as const),
    `Param: ${param}, Value: ${value}, Try convert to: ${to}`,
    more,
  )
const on_error = { err_node_id: 'b' }
const big = `{"a":"${'x'.repeat(70_000)}"}`

rows('api_copy', [
  [{ conv_id: 7, mode: 'create' }, '{"a":1}', made('{}')],
  [{ conv_id: 7 }, '{"a":1}', made('{}')],
  [{ conv_id: '7', mode: 'create', data: [] }, '{}', made('{}')],
  [{ conv_id: '@users', mode: 'create' }, '{}', made('{}', { conv: conv('@users') })],
  [{ conv_id: '{{c}}' }, '{"c":12}', made('{}', { conv: conv('12', true) })],
  [{ conv_id: '{{c}}' }, '{"c":"@b"}', made('{}', { conv: conv('@b', true) })],
  [{ conv_id: '@{{c}}' }, '{"c":"b"}', made('{}', { conv: conv('@b', true) })],
  [{ conv_id: 7, ref: 'x-{{n}}' }, '{"n":1.10}', made('{}', { ref: 'x-1.10' })],
  [{ conv_id: 7, ref: '{{n}}' }, '{"n":7}', made('{}', { ref: '7' })],
  [{ conv_id: 7, ref: '{{n}}' }, '{}', made('{}')],
  [{ conv_id: 7, ref: '{{n}}' }, '{"n":null}', made('{}')],
  [{ conv_id: 7, ref: '' }, '{}', made('{}')],
  [
    { conv_id: 7, data: { b: '{{a}}' }, data_type: { b: 'string' } },
    '{"a":1.10}',
    made('{"b":"1.10"}'),
  ],
  [{ conv_id: 7, data: { a: '2' }, group: 'all' }, '{"a":1,"b":1.0}', made('{"a":"2","b":1.0}')],
  [{ conv_id: 7, group: 'all', send_parent_data: false }, '{"a":1}', made('{}')],
  [{ conv_id: 7, group: '', send_parent_data: true }, '{"a":1}', made('{"a":1}')],
  [{ conv_id: 7, err_node_id: 'b' }, '{}', made('{}', on_error)],
  [{ conv_id: 7, mode: 'modify', ref: 'r', data: { x: '1' } }, '{}', merged('{"x":"1"}')],
  [{ conv_id: 7, mode: 'modify', ref: 'r', is_sync: true }, '{}', merged('{}', { is_sync: true })],
  [{ conv_id: 7, mode: 'modify', ref: '{{root.ref}}' }, '{}', merged('{}', { ref: 'order-1' })],
  [
    { conv_id: 7, mode: 'modify', ref: '{{n}}', err_node_id: 'b' },
    '{}',
    failed('copy_task', 'not_found_task', 'not found task', on_error),
  ],
  [
    { conv_id: 7, data: { x: '{{n}}' }, data_type: { x: 'number' }, err_node_id: 'b' },
    '{"n":"y"}',
    unconverted('copy_task', 'copy_task', 'x', 'y', 'number', on_error),
  ],
  [
    { conv_id: '{{c}}' },
    '{}',
    unconverted('copy_task', 'copy_task', 'conv_id', '{{c}}', 'conv_id'),
  ],
  [
    { conv_id: '{{c}}' },
    `{"c":"${'x'.repeat(256)}"}`,
    unconverted('copy_task', 'copy_task', 'conv_id', `${'x'.repeat(128)}…`, 'conv_id'),
  ],
  [
    { conv_id: 7, ref: '{{r}}' },
    `{"r":"${'x'.repeat(256)}"}`,
    unconverted('copy_task', 'copy_task', 'ref', `${'x'.repeat(128)}…`, 'ref'),
  ],
  [
    { conv_id: 7, data: { x: '{{a}}{{a}}' } },
    big,
    failed('copy_task', 'copy_task_size_overflow_limit', 'the values are longer than 131072 bytes'),
  ],
  [{}, '{}', mistake('conv_id is nothing, the id of a process was expected')],
  [{ conv_id: {} }, '{}', mistake('conv_id is an object, the id of a process was expected')],
  [{ conv_id: '{{' }, '{}', made('{}', { conv: conv('{{') })],
  [{ conv_id: 'a\nb' }, '{}', mistake('conv_id "a\\nb" is no id of a process')],
  [{ conv_id: 7, mode: 'move' }, '{}', mistake('mode "move" is neither "create" nor "modify"')],
  [{ conv_id: 7, mode: 'modify' }, '{}', mistake('ref is missing, a modify finds its task by it')],
  [{ conv_id: 7, data: 'x' }, '{}', mistake('data is "x", an object was expected')],
  [{ conv_id: 7, is_sync: 1 }, '{}', mistake('is_sync is 1, true or false was expected')],
  [{ conv_id: 7, data: { x: '1' }, data_type: { x: 'float' } }, '{}', made('{"x":"1"}')],
  [{ conv_id: 7, err_node_id: 'x' }, '{}', mistake('err_node_id is no node')],
])

const called = (doc: string, more: object = {}) => ({
  ...{ command: 'call', conv: conv('7'), doc },
  ...more,
})

rows('api_rpc', [
  [{ conv_id: 7, extra: {}, extra_type: {} }, '{"a":1}', called('{}')],
  [{ conv_id: 7, group: 'all' }, '{"a":1.0}', called('{"a":1.0}')],
  [
    { conv_id: 7, group: '', extra: { x: '{{a}}' }, extra_type: { x: 'number' }, err_node_id: 'b' },
    '{"a":"5.0"}',
    called('{"x":5.0}', on_error),
  ],
  [
    { conv_id: 7, group: 'all', extra: { a: '2' }, extra_type: { a: 'number' } },
    '{"a":1,"b":1}',
    called('{"a":2,"b":1}'),
  ],
  [{ conv_id: '{{c}}' }, '{"c":9}', called('{}', { conv: conv('9', true) })],
  [
    { conv_id: 7, extra: { x: '{{n}}' }, extra_type: { x: 'object' }, err_node_id: 'b' },
    '{"n":1}',
    unconverted('rpc', 'rpc_task', 'x', '1', 'object', {
      err_node_id: 'b',
    }),
  ],
  [
    { conv_id: 7, extra: { x: '{{a}}{{a}}' } },
    big,
    failed('rpc', 'rpc_task_size_overflow', 'the values are longer than 131072 bytes'),
  ],
  [{ conv_id: '' }, '{}', mistake('conv_id is "", the id of a process was expected')],
])

const replied = (data: string) => ({ command: 'reply', data })
const thrown = (data: string, reason: string, more: object = {}) => ({
  ...{ command: 'reply_exception', data, reason },
  ...more,
})
const no_number = 'Param: r, Value: {{a}}, Try convert to: number'

rows('api_rpc_reply', [
  [{ mode: 'key_value', res_data: {}, res_data_type: {} }, '{"a":1}', replied('{}')],
  [
    { mode: 'key_value', res_data: { r: '{{a}}' }, res_data_type: { r: 'number' } },
    '{"a":1.0,"b":2}',
    replied('{"r":1.0}'),
  ],
  [{ res_data: { r: '{{a}}' } }, '{}', replied('{}')],
  [{ mode: '', res_data: { r: '{{a}}' } }, '{"a":1}', replied('{"r":1}')],
  [{ extra: { r: '{{a}}' }, extra_type: { r: 'string' } }, '{"a":1}', replied('{"r":"1"}')],
  [{ mode: 'key_value', extra: { r: 1 }, res_data: null }, '{}', replied('{"r":1}')],
  [{ mode: 'keys', extra: ['a'], extra_type: ['string'] }, '{"a":1}', replied('{"a":"1"}')],
  [{ extra: { r: 1 }, res_data: {} }, '{}', replied('{}')],
  [{ mode: 'keys', res_data: ['a', 'c'] }, '{"a":1.0,"b":2}', replied('{"a":1.0}')],
  [
    { mode: 'keys', res_data: ['a', 'b'], res_data_type: ['string', 'number'] },
    '{"a":1.0,"b":"2"}',
    replied('{"a":"1.0","b":2}'),
  ],
  [
    { mode: 'keys', res_data: ['a'], res_data_type: { a: 'string' } },
    '{"a":1}',
    replied('{"a":"1"}'),
  ],
  [{ res_data: ['a'] }, '{"a":[1]}', replied('{"a":[1]}')],
  [{ mode: 'keys', res_data: [] }, '{"a":1}', replied('{}')],
  [{ mode: 'keys', res_data: ['__proto__', 'toString'] }, '{}', replied('{}')],
  [
    { res_data: { e: 'no' }, throw_exception: true, exception_reason: 'bad {{a}}' },
    '{"a":1}',
    thrown('{"e":"no"}', 'bad 1'),
  ],
  [{ throw_exception: true }, '{}', thrown('{}', '')],
  [{ throw_exception: false, exception_reason: 'unused' }, '{}', replied('{}')],
  [
    { res_data: { r: '{{a}}' }, res_data_type: { r: 'number' }, err_node_id: 'b' },
    '{}',
    unconverted('rpc_reply', 'rpc_reply', 'r', '{{a}}', 'number', on_error),
  ],
  [
    { mode: 'keys', res_data: ['r'], res_data_type: ['array'] },
    '{"r":1}',
    unconverted('rpc_reply', 'rpc_reply', 'r', '1', 'array'),
  ],
  [
    {
      ...{ res_data: { r: '{{a}}' }, res_data_type: { r: 'number' } },
      ...{ throw_exception: true, exception_reason: 'no {{b}}' },
    },
    '{"b":"amount"}',
    thrown('{}', 'no amount'),
  ],
  [
    {
      ...{ res_data: { r: '{{a}}' }, res_data_type: { r: 'number' } },
      ...{ throw_exception: true, err_node_id: 'b' },
    },
    '{}',
    thrown('{}', no_number, {
      failure: failed('rpc_reply', 'rpc_reply_wrong_convert_param', no_number, {
        err_node_id: 'b',
      }),
    }),
  ],
  [
    { throw_exception: true, exception_reason: '$.math({{a}}+1)' },
    '{}',
    thrown('{}', '$.math: {{a}} is missing'),
  ],
  [{ mode: 'raw' }, '{}', mistake('mode "raw" is neither "key_value" nor "keys"')],
  [
    { mode: 'keys', res_data: { a: '1' } },
    '{}',
    mistake('res_data is an object, a list of keys was expected'),
  ],
  [
    { mode: 'keys', res_data: [1], res_data_type: ['string'] },
    '{}',
    mistake('res_data[0] is 1, a key was expected'),
  ],
  [{ mode: 'keys', res_data: ['a'], res_data_type: ['text'] }, '{"a":1}', replied('{"a":1}')],
  [
    { throw_exception: 'yes' },
    '{}',
    mistake('throw_exception is "yes", true or false was expected'),
  ],
  [{ exception_reason: {} }, '{}', mistake('exception_reason is an object, a text was expected')],
])

rows('api_queue', [
  [{ data: {}, data_type: {} }, '{"a":1}', { command: 'queue' }],
  [{}, '{"a":1}', { command: 'queue' }],
  [
    { data: { b: '{{a}}' }, data_type: { b: 'string' }, err_node_id: 'b' },
    '{"a":1.0}',
    { command: 'queue', doc: '{"a":1.0,"b":"1.0"}', err_node_id: 'b' },
  ],
  [
    { data: { b: '{{c}}' }, data_type: { b: 'number' } },
    '{}',
    unconverted('queue', 'queue', 'b', '{{c}}', 'number'),
  ],
  [{ data: 5 }, '{}', mistake('data is 5, an object was expected')],
])

const taken = (more: object = {}) => ({
  ...{ command: 'take', conv: conv('7'), node_id: 'q', newest: false },
  ...more,
})

rows('api_get_task', [
  [{ conv_id: 7, node_id: 'q' }, '{}', taken()],
  [{ conv_id: 7, node_id: 'q', order_by: 'ASC' }, '{}', taken()],
  [{ conv_id: 7, node_id: 'q', order_by: 'DESC' }, '{}', taken({ newest: true })],
  [
    { conv_id: '{{c}}', node_id: '{{n}}', err_node_id: 'b' },
    '{"c":8,"n":"z"}',
    taken({ conv: conv('8', true), node_id: 'z', err_node_id: 'b' }),
  ],
  [
    { conv_id: 7, node_id: '{{n}}' },
    '{}',
    unconverted('get_task', 'get_task', 'node_id', '', 'node_id'),
  ],
  [
    { conv_id: '{{c}}', node_id: 'q', err_node_id: 'b' },
    '{"c":[]}',
    unconverted('get_task', 'get_task', 'conv_id', '[]', 'conv_id', on_error),
  ],
  [{ conv_id: 7 }, '{}', mistake('node_id is nothing, the node of a queue was expected')],
  [
    { conv_id: 7, node_id: 'q', order_by: 'up' },
    '{}',
    mistake('order_by "up" is neither "ASC" nor "DESC"'),
  ],
])

const no_text = { x: '{{none}}' }
const as_text = { x: 'string' }

rows('api_copy', [
  [{ conv_id: 7, data: no_text, data_type: as_text }, '{}', made('{"x":""}')],
  [{ conv_id: 7, ref: '{{r}}', data: no_text, data_type: as_text }, '{}', made('{"x":""}')],
])
rows('api_rpc', [[{ conv_id: 7, extra: no_text, extra_type: as_text }, '{}', called('{"x":""}')]])
rows('api_rpc_reply', [
  [{ res_data: no_text, res_data_type: as_text }, '{}', replied('{"x":""}')],
  [{ mode: 'keys', res_data: ['x'], res_data_type: ['string'] }, '{}', replied('{"x":""}')],
])

const sums = (...terms: [name: string, value: number][]) => ({
  command: 'sum',
  terms: terms.map(([name, value]) => ({ name, value })),
})

rows('api_sum', [
  [{ extra: [{ id: '1', name: 'n', value: '1' }] }, '{}', sums(['n', 1])],
  [{ extra: [{ id: '1', name: 'n', value: 2.5 }] }, '{}', sums(['n', 2.5])],
  [
    {
      extra: [
        { id: '1', name: 'n', value: '{{a}}' },
        { id: '2', name: 'm', value: '$.math({{a}}*2)' },
      ],
    },
    '{"a":"1.5"}',
    sums(['n', 1.5], ['m', 3]),
  ],
  [{ extra: [] }, '{}', sums()],
  [{}, '{}', sums()],
  [{ extra: [{ id: '1', name: 'n', value: '{{a}}' }] }, '{}', sums()],
  [
    {
      extra: [
        { id: '1', name: 'n', value: '{{a}}' },
        { id: '2', name: 'm', value: '{{b}}' },
        { id: '3', name: 'o', value: ' {{c}}' },
        { id: '4', name: 'p', value: '' },
      ],
    },
    '{"b":"2.5","a":null,"c":3}',
    sums(['m', 2.5], ['o', 3]),
  ],
  [
    { extra: [{ id: '1', name: 'n', value: '$.math({{a}}+1)' }] },
    '{}',
    failed('sum', 'sum_wrong_convert_param', '$.math: {{a}} is missing'),
  ],
  [
    { extra: [{ id: '1', name: 'n', value: '{{a}}' }] },
    '{"a":"x"}',
    unconverted('sum', 'sum', 'n', 'x', 'number'),
  ],
  [
    { extra: [{ id: '1', name: 'n', value: '{{a}}' }], err_node_id: 'b' },
    '{"a":1e400}',
    unconverted('sum', 'sum', 'n', '1e400', 'number', {
      err_node_id: 'b',
    }),
  ],
  [{ extra: {} }, '{}', mistake('extra is an object, an array was expected')],
  [{ extra: [1] }, '{}', mistake('extra[0] is 1, an object was expected')],
  [
    { extra: [{ id: '1', value: '1' }] },
    '{}',
    mistake('extra[0] name is nothing, a text of 1 to 255 characters was expected'),
  ],
  [
    { extra: [{ name: 'n', value: {} }] },
    '{}',
    mistake('extra[0] value is an object, a number or a template was expected'),
  ],
])

test('a process that the definition names is reported, one that a template gives is not', () => {
  const target_conv_ids = (logic: object) =>
    compiledLogic(JSON.stringify(logic), contextOf('{"c":1}')).target_conv_ids
  assert.deepEqual(target_conv_ids({ type: 'api_copy', conv_id: 7 }), ['7'])
  assert.deepEqual(target_conv_ids({ type: 'api_rpc', conv_id: '@pay' }), ['@pay'])
  assert.deepEqual(target_conv_ids({ type: 'api_get_task', conv_id: '8', node_id: 'q' }), ['8'])
  assert.deepEqual(target_conv_ids({ type: 'api_copy', conv_id: '{{c}}' }), [])
})
