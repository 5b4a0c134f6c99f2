/** A table for each kind of logic: definition and data → command. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { docOfText, objectOf, stringifyJson } from '../src/codec/json.ts'
import { comparisonTable } from '../src/process/logics/comparisons.ts'
import { logicTable } from '../src/process/logics/table.ts'
import { convert, typeTable, type ValueType } from '../src/process/values.ts'
import { compiledLogic, contextOf, runLogic, unreadableContext } from './support/logic-context.ts'
import { runs } from './support/short-run.ts'

const go_a = { command: 'go', to_node_id: 'a' }
const next = { command: 'next' }

test('go sends the task on without reading its data', () => {
  const { command } = compiledLogic('{"type":"go","to_node_id":"a"}', unreadableContext())
  assert.deepEqual(command, go_a)
})

test('go without a node is a mistake', () => {
  for (const text of [
    '{"type":"go"}',
    '{"type":"go","to_node_id":7}',
    '{"type":"go","to_node_id":"x"}',
  ]) {
    assert.equal(compiledLogic(text, unreadableContext()).mistakes.length, 1)
  }
})

test('api_callback waits without reading the data', () => {
  const text = '{"type":"api_callback","is_sync":true,"obj_id_path":"x"}'
  assert.deepEqual(compiledLogic(text, unreadableContext()).command, { command: 'wait' })
})

test('every kind has one row', () => {
  assert.deepEqual(
    logicTable.map(({ type }) => type).filter((type) => type !== 'api' && type !== 'api_code'),
    [
      ...['go', 'go_if_const', 'set_param', 'api_callback', 'api_copy', 'api_rpc'],
      ...['api_rpc_reply', 'api_queue', 'api_get_task', 'api_sum'],
    ],
  )
})

function condition(param: string, fun: string, constant: unknown, cast: string): string {
  const conditions = [{ param, fun, const: constant, cast }]
  return JSON.stringify({ type: 'go_if_const', to_node_id: 'a', conditions })
}

for (const { fun, cast, syntax, example } of comparisonTable) {
  const [constant, holds, fails] = example
  test(`${cast} ${syntax} (${fun})`, () => {
    const text = condition('x', fun, constant, cast)
    assert.deepEqual(runLogic(text, { x: holds }), go_a)
    assert.deepEqual(runLogic(text, { x: fails }), next)
    const templated = condition('{{x}}', fun, fun === 'regexp' ? constant : '{{c}}', cast)
    assert.deepEqual(runLogic(templated, { x: holds, c: constant }), go_a)
    assert.deepEqual(runLogic(templated, { x: fails, c: constant }), next)
    const absent = cast === 'string' ? { x: '' } : undefined
    const wanted = absent ? runLogic(text, absent) : fun === 'not_eq' ? go_a : next
    assert.deepEqual(runLogic(text, {}), wanted, 'a missing text is empty; else not_eq alone holds')
  })
}

const conditions: [
  param: string,
  fun: string,
  constant: unknown,
  cast: string,
  data: string,
  holds: boolean,
][] = [
  ['a', 'eq', '1.10', 'string', '{"a":1.10}', true],
  ['a', 'eq', '1.1', 'string', '{"a":1.10}', false],
  ['a', 'eq', '1.1', 'number', '{"a":1.10}', true],
  ['a', 'eq', '{"b":1.0}', 'string', '{"a":{"b":1.0}}', true],
  ['a', 'eq', 'null', 'string', '{"a":null}', true],
  ['a', 'eq', '', 'string', '{"a":""}', true],
  ['a', 'eq', null, 'string', '{"a":""}', true],
  ['a', 'eq', undefined, 'string', '{"a":"x"}', false],
  ['a', 'not_eq', null, 'string', '{"a":"x"}', true],
  ['a', 'eq', null, 'number', '{"a":0}', false],
  ['a', 'eq', '', 'string', '{}', true],
  ['{{a}}', 'eq', '', 'string', '{}', true],
  ['{{a.b}}', 'eq', '', 'string', '{"a":1}', true],
  ['a', 'eq', 'x', 'string', '{}', false],
  ['a', 'not_eq', '', 'string', '{}', false],
  ['a', 'not_eq', '', 'string', '{"a":1}', true],
  ['a', 'not_eq', '{{b}}', 'string', '{"a":1}', true],
  ['a', 'eq', '{{b}}', 'string', '{}', true],
  ['a', 'eq', '{{b}}', 'string', '{"a":""}', true],
  ['a', 'less', 'b', 'string', '{}', true],
  ['a', 'regexp', '^$', 'string', '{}', true],
  ['a', 'regexp', '^$', 'number', '{}', false],
  ['a', 'regexp', '5', 'number', '{"a":"x5"}', false],
  ['a', 'regexp', '^1.10$', 'number', '{"a":1.10}', true],
  ['a', 'eq', '{{b}}', 'number', '{"a":1}', false],
  ['a', 'not_eq', '{{b}}', 'number', '{}', true],
  ['a', 'eq', '', 'number', '{}', false],
  ['a', 'eq', 'true', 'boolean', '{}', false],
  ['a', 'not_eq', 'true', 'boolean', '{}', true],
  ['a', 'eq', '[]', 'array', '{}', false],
  ['a', 'not_eq', '{}', 'object', '{"a":"x"}', true],
  ['$.math({{a}}+1)', 'eq', '', 'string', '{}', false],
  ['a', 'eq', '5', 'number', '{"a":"five"}', false],
  ['a', 'not_eq', '5', 'number', '{"a":"five"}', true],
  ['a', 'less', '5', 'number', '{"a":null}', false],
  ['a', 'more', '5', 'number', '{"a":1e400}', false],
  ['a', 'not_eq', '5', 'number', '{"a":1e400}', true],
  ['a', 'not_eq', 'x', 'number', '{"a":5}', true],
  ['a', 'eq', 'x', 'number', '{"a":5}', false],
  ['a', 'more', '9', 'string', '{"a":"10"}', false],
  ['a', 'more', '9', 'number', '{"a":" 10 "}', true],
  ['a', 'eq', 5, 'number', '{"a":5}', true],
  ['a', 'eq', true, 'boolean', '{"a":"true"}', true],
  ['a', 'eq', 'true', 'boolean', '{"a":1}', false],
  ['a', 'eq', '[1.0]', 'array', '{"a":[1]}', false],
  ['a', 'eq', [1, '{{b}}'], 'array', '{"a":[1,"x"],"b":"x"}', true],
  ['a', 'eq', { x: 1 }, 'object', '{"a":"{\\"x\\":1}"}', true],
  ['a', 'eq', '[{"x":1,"y":2}]', 'array', '{"a":[{"y":2,"x":1}]}', true],
  [
    'a',
    'eq',
    '{"x":"{{b}}"}',
    'object',
    '{"a":{"x":"\\",\\"y\\":\\""},"b":"\\",\\"y\\":\\""}',
    true,
  ],
  ['a.b[1].c', 'eq', 'x', 'string', '{"a":{"b":[0,{"c":"x"}]}}', true],
  ['a[{{n}}]', 'eq', 'x', 'string', '{"a":["y","x"],"n":1}', true],
  ['a.b', 'eq', 'x', 'string', '{"a.b":"x","a":{"b":"y"}}', true],
  ['a.b', 'eq', '', 'string', '{"a":{"b":"y"}}', true],
  [' a.b ', 'more', '1', 'number', '{"a.b":2}', true],
  ['{{a.b}}', 'eq', 'y', 'string', '{"a.b":"x","a":{"b":"y"}}', true],
  ['a\\.b', 'eq', 'x', 'string', '{"a.b":"x"}', true],
  ['a\\[0]', 'eq', 'x', 'string', '{"a[0]":"x"}', true],
  ['first name', 'eq', 'Ann', 'string', '{"first name":"Ann"}', true],
  ['{{n}}.b', 'eq', 'a.b', 'string', '{"n":"a"}', true],
  ['a.{{n}}', 'eq', 'a.b', 'string', '{"n":"b"}', true],
  ['a..b', 'eq', 'x', 'string', '{"a..b":"x"}', true],
  ['', 'eq', '', 'string', '{"a":1}', true],
  ['node[n].count', 'eq', '0', 'number', '{}', true],
  ['conv[7].ref[r].x', 'eq', '', 'string', '{}', true],
  ['root.own', 'eq', 'x', 'string', '{"root.own":"x"}', true],
  ['root.ref', 'eq', 'order-1', 'string', '{}', true],
  ['{{root.ref}}', 'eq', 'order-1', 'string', '{}', true],
  ['{{a}}-{{b}}', 'eq', 'x-1', 'string', '{"a":"x","b":1}', true],
  ['$.math({{a}}*2)', 'more', '5', 'number', '{"a":3}', true],
  ['$.math({{a}}*2)', 'not_eq', '5', 'number', '{}', true],
  ['__proto__', 'eq', 'x', 'string', '{}', false],
  ['__proto__', 'eq', 'x', 'string', '{"__proto__":"x"}', true],
  ['constructor', 'not_eq', 'x', 'string', '{}', true],
  ['a', 'regexp', 'user_*', 'string', '{"a":"a user_1"}', true],
  ['a', 'regexp', '^{{b}}[0-9]$', 'string', '{"a":"x.1","b":"x."}', true],
  ['a', 'regexp', '^{{b}}[0-9]$', 'string', '{"a":"xy1","b":"x."}', false],
  ['a', 'regexp', '{{b}}', 'string', '{"a":"anything","b":".*"}', false],
  ['a', 'regexp', '[{{b}}', 'string', '{"a":"["}', false],
  ['a', 'regexp', 'x', 'string', `{"a":"${'x'.repeat(100_001)}"}`, false],
]

for (const [param, fun, constant, cast, data, holds] of conditions) {
  test(`${param} ${fun} ${JSON.stringify(constant)} as ${cast} over ${data.slice(0, 40)}`, () => {
    assert.deepEqual(runLogic(condition(param, fun, constant, cast), data), holds ? go_a : next)
  })
}

test('a condition may stand in the logic itself, and compares texts where no cast is given', () => {
  const text = '{"type":"go_if_const","to_node_id":"a","param":"res","fun":"eq","const":"0"}'
  assert.deepEqual(runLogic(text, { res: 0 }), go_a)
  assert.deepEqual(runLogic(text, { res: '0.0' }), next)
})

test('a bare name with a dot, and none at all, are warned of', () => {
  const warningsOf = (param: string): string[] =>
    compiledLogic(condition(param, 'eq', '1', 'string'), contextOf({})).warnings
  const one_name = 'conditions[0] param "a.b" is one name, a path is written in braces'
  assert.deepEqual(warningsOf('a.b'), [one_name])
  assert.deepEqual(warningsOf(''), ['conditions[0] param is empty, which is always missing'])
  assert.deepEqual(warningsOf(' [0'), [
    'conditions[0] param "[0": a name was expected at character 1',
  ])
  for (const param of ['a\\.b', '{{a.b}}', 'a[0].b', 'root.ref', 'a']) {
    assert.deepEqual(warningsOf(param), [])
  }
})

test('all conditions of one logic must hold', () => {
  const one = { param: 'x', fun: 'eq', const: '1', cast: 'number' }
  const two = { param: 'y', fun: 'eq', const: '2', cast: 'number' }
  const text = JSON.stringify({ type: 'go_if_const', to_node_id: 'a', conditions: [one, two] })
  assert.deepEqual(runLogic(text, { x: 1, y: 2 }), go_a)
  assert.deepEqual(runLogic(text, { x: 1, y: 3 }), next)
})

const bad_conditions: [conditions: unknown, mistake: string][] = [
  ['x', 'conditions is "x", an array was expected'],
  [[1], 'conditions[0] is 1, an object was expected'],
  [
    [{ param: 'x', fun: 'regexp', const: '', cast: 'boolean' }],
    'conditions[0] fun "regexp" with cast "boolean" is none of eq not_eq',
  ],
  [
    [{ param: 'x', fun: 'less', const: '', cast: 'array' }],
    'conditions[0] fun "less" with cast "array" is none of eq not_eq',
  ],
  [
    [{ param: 'x', fun: 'eq', const: '', cast: 'toString' }],
    'conditions[0] cast "toString" is none of string number boolean array object',
  ],
  [
    [{ fun: 'eq', const: '', cast: 'string' }],
    'conditions[0] param is nothing, a name was expected',
  ],
  [
    [{ param: 'x', fun: 'regexp', const: '(a)\\2', cast: 'string' }],
    'conditions[0] const "(a)\\\\2": the pattern cannot be run: there is no group 2 at character 4',
  ],
  [
    [{ param: 'x', fun: 'regexp', const: '(x{1000}|y{1000}){1}z{1000}', cast: 'string' }],
    'conditions[0] const "(x{1000}|y{1000}){1}z{1000}": the pattern repeats too much',
  ],
]

for (const [given, mistake] of bad_conditions) {
  test(`refuses: ${mistake}`, () => {
    const text = JSON.stringify({ type: 'go_if_const', to_node_id: 'a', conditions: given })
    assert.deepEqual(compiledLogic(text, unreadableContext()).mistakes, [mistake])
  })
}

function setting(extra: unknown, extra_type?: unknown): string {
  return JSON.stringify({ type: 'set_param', extra, extra_type, err_node_id: 'b' })
}

for (const [type, { example }] of Object.entries(typeTable)) {
  const [given, becomes] = example
  test(`converts to ${type}`, () => {
    assert.deepEqual(convert(given, type as ValueType), becomes)
    assert.deepEqual(convert(becomes, type as ValueType), becomes, 'and leaves what is of the type')
  })
}

// [value, type, data, the data afterwards]; the key is `to`.
const settings: [value: unknown, type: string | undefined, data: string, after: string][] = [
  ['{{a}}', 'number', '{"a":1.10}', '{"a":1.10,"to":1.10}'],
  ['{{a}}', undefined, '{"a":1.10}', '{"a":1.10,"to":1.10}'],
  ['{{a}}', 'string', '{"a":1.10}', '{"a":1.10,"to":"1.10"}'],
  ['{{a}}', 'number', '{"a":"10.0"}', '{"a":"10.0","to":10.0}'],
  ['1e400', 'number', '{}', '{"to":1e400}'],
  ['{{a}}', 'number', '{"a":"09"}', '{"a":"09","to":9}'],
  ['{{a}}', 'number', '{"a":"-007.50"}', '{"a":"-007.50","to":-7.50}'],
  ['{{a}}', 'number', '{"a":"+0"}', '{"a":"+0","to":0}'],
  ['$.math($.date(%m)+1)', 'number', '{}', '{"to":3}'],
  ['12345678901234567890', 'number', '{}', '{"to":12345678901234567890}'],
  ['x {{a}}', 'string', '{"a":[1.0]}', '{"a":[1.0],"to":"x [1.0]"}'],
  ['{{a}}', undefined, '{"a":{"b":[1.50]}}', '{"a":{"b":[1.50]},"to":{"b":[1.50]}}'],
  ['{{a}}', undefined, '{"to":1}', '{"to":1}'],
  ['{{a}}{{b}}', undefined, '{"to":1}', '{"to":""}'],
  ['', 'string', '{"to":1}', '{"to":""}'],
  ['{{a}}', 'string', '{"to":1}', '{"to":""}'],
  ['{{a.b[0]}}', 'string', '{"a":{}}', '{"a":{},"to":""}'],
  ['x {{a}}', 'string', '{}', '{"to":"x "}'],
  ['true', 'boolean', '{}', '{"to":true}'],
  ['{{a}}', 'array', '{"a":"[1.0]"}', '{"a":"[1.0]","to":[1.0]}'],
  ['[{{a}},"{{b}}"]', 'array', '{"a":1.0,"b":2.0}', '{"a":1.0,"b":2.0,"to":[1.0,"2.0"]}'],
  [
    '{"x":"{{a}}"}',
    'object',
    '{"a":"\\",\\"y\\":\\""}',
    '{"a":"\\",\\"y\\":\\"","to":{"x":"\\",\\"y\\":\\""}}',
  ],
  ['{"x":{{a}}}', 'object', '{"a":{"y":1.0}}', '{"a":{"y":1.0},"to":{"x":{"y":1.0}}}'],
  ['{"x":{{a}}}', 'object', '{"a":"{\\"y\\":1.0}"}', '{"a":"{\\"y\\":1.0}","to":{"x":{"y":1.0}}}'],
  ['[{{a}}]', 'array', '{"a":"1.10,2"}', '{"a":"1.10,2","to":[1.10,2]}'],
  ['[{{a}}]', 'array', '{}', '{"to":[]}'],
  ['{"x":1{{a}}}', 'object', '{"a":",\\"y\\":2"}', '{"a":",\\"y\\":2","to":{"x":1,"y":2}}'],
  ['{"x":"{{a}}"}', 'object', '{"a":"\\",\\"y"}', '{"a":"\\",\\"y","to":{"x":"\\",\\"y"}}'],
  [5, undefined, '{}', '{"to":5}'],
  ['{{a}}', 'integer', '{"a":"1"}', '{"a":"1","to":"1"}'],
  [{ a: [1] }, 'object', '{}', '{"to":{"a":[1]}}'],
  [{ a: 1 }, 'string', '{}', '{"to":"{\\"a\\":1}"}'],
  [null, undefined, '{}', '{"to":null}'],
  ['{{a}}', 'string', '{"a":"{{b}}","b":1}', '{"a":"{{b}}","b":1,"to":"{{b}}"}'],
]

for (const [value, type, data, after] of settings) {
  test(`sets ${JSON.stringify(value)} as ${type} over ${data}`, () => {
    assert.equal(runLogic(setting({ to: value }, { to: type }), data), after)
  })
}

// [value, type, data, description]: each fails with the convert tag and sets nothing.
const failures: [value: unknown, type: string, data: string, description: string][] = [
  ['abc', 'number', '{}', 'Param: to, Value: abc, Try convert to: number'],
  ['1.', 'number', '{}', 'Param: to, Value: 1., Try convert to: number'],
  ['0x1', 'number', '{}', 'Param: to, Value: 0x1, Try convert to: number'],
  ['{{a}}', 'number', '{"a":"x"}', 'Param: to, Value: x, Try convert to: number'],
  ['{{a}}', 'number', '{}', 'Param: to, Value: {{a}}, Try convert to: number'],
  ['{{a}}', 'boolean', '{}', 'Param: to, Value: {{a}}, Try convert to: boolean'],
  ['{{a}}', 'object', '{}', 'Param: to, Value: {{a}}, Try convert to: object'],
  ['{{a.b}}', 'array', '{"a":{}}', 'Param: to, Value: {{a.b}}, Try convert to: array'],
  ['', 'number', '{}', 'Param: to, Value: , Try convert to: number'],
  ['{{a}}', 'object', '{"a":[]}', 'Param: to, Value: [], Try convert to: object'],
  ['{{a}}', 'boolean', '{"a":1}', 'Param: to, Value: 1, Try convert to: boolean'],
  ['{{a}}', 'array', '{"a":"[1"}', 'Param: to, Value: [1, Try convert to: array'],
  ['{"x":{{a}}}', 'object', '{"a":"b"}', 'Param: to, Value: {"x":b}, Try convert to: object'],
  ['{"x":{{a}}}', 'object', '{}', 'Param: to, Value: {"x":}, Try convert to: object'],
  ['{"x":1{{a}}', 'array', '{"a":"}"}', 'Param: to, Value: {"x":1}, Try convert to: array'],
  ['[{{a}}]', 'array', '{"a":"1],[2"}', 'Param: to, Value: [1],[2], Try convert to: array'],
  ['$.math({{a}}/0)', 'number', '{"a":1}', '$.math: division by zero'],
  ['$.math(1+)', 'number', '{}', '$.math: a number or a template was expected at character 10'],
  [
    `${'['.repeat(61)}${']'.repeat(61)}`,
    'array',
    '{}',
    `Param: to, Value: ${'['.repeat(61)}${']'.repeat(61)}, Try convert to: array`,
  ],
]

for (const [value, type, data, description] of failures) {
  test(`fails to set ${JSON.stringify(value).slice(0, 40)} as ${type} over ${data}`, () => {
    const expected = {
      ...{ command: 'fail', kind: 'set_param', error_type: 'software' },
      ...{ tag: 'set_param_wrong_convert_param', description, err_node_id: 'b' },
    }
    assert.deepEqual(runLogic(setting({ to: value }, { to: type }), data), expected)
  })
}

test('a long text that is no number costs no time', () => {
  const context = contextOf({ a: `${'0'.repeat(100_000)}x` })
  const { command } = compiledLogic(setting({ to: '{{a}}' }, { to: 'number' }), context)
  assert.equal(command?.command, 'fail')
})

test('a value of sixty levels is accepted', () => {
  const deep = `${'['.repeat(60)}${']'.repeat(60)}`
  assert.equal(runLogic(setting({ to: deep }, { to: 'array' }), {}), `{"to":${deep}}`)
})

test('keys may contain templates, and their values are one key each', () => {
  const cases: [key: string, data: string, after: string][] = [
    ['{{k}}', '{"k":"x.y"}', '{"k":"x.y","x.y":"v"}'],
    ['{{k}}', '{"k":7}', '{"7":"v","k":7}'],
    ['n_{{k}}', '{"k":1.0}', '{"k":1.0,"n_1.0":"v"}'],
    ['{{k}}', '{"k":"__proto__"}', '{"k":"__proto__","__proto__":"v"}'],
    ['{{k}}.y', '{"k":"a.b"}', '{"k":"a.b","a.b":{"y":"v"}}'],
  ]
  for (const [key, data, after] of cases)
    assert.equal(runLogic(setting({ [key]: 'v' }), data), after)
  const proto =
    '{"type":"set_param","extra":{"__proto__":"{{a}}"},"extra_type":{"__proto__":"number"}}'
  assert.equal(runLogic(proto, '{"a":1}'), '{"a":1,"__proto__":1}')
  const failed = runLogic(setting({ '{{k}}': 'v' }), {}) as { description: string }
  assert.equal(failed.description, 'the key {{k}} is missing')
})

test('templates of one set_param read the data as it was before', () => {
  assert.equal(runLogic(setting({ a: '{{b}}', b: '{{a}}' }), '{"a":1,"b":2}'), '{"a":2,"b":1}')
})

test('reading a process without the right to it is denied, and missing in a condition', () => {
  const denied = { canRead: () => false }
  const read = '{{conv[{{c}}].ref[r].x}}'
  const failed = runLogic(setting({ to: read }, { to: 'string' }), { c: 7 }, denied)
  const { tag, description } = failed as { tag: string; description: string }
  assert.deepEqual([tag, description], ['access_denied', 'Param: to, User: -, Conv_id: 7'])
  assert.deepEqual(runLogic(condition(read, 'eq', '', 'string'), { c: 7 }, denied), go_a)
  assert.deepEqual(runLogic(condition(read, 'eq', '{{x}}', 'string'), { c: 7, x: 1 }, denied), next)
  assert.deepEqual(runLogic(condition(read, 'eq', '1', 'number'), { c: 7 }, denied), next)
})

test('an expansion over the size of a task stops', () => {
  const big = { a: 'x'.repeat(600), o: { x: 'y'.repeat(600) } }
  const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`k${at}`, '{{o}}']))
  for (const extra of [{ to: '{{a}}{{a}}' }, { x: '{{a}}', y: '{{a}}' }, many]) {
    const fail = runLogic(setting(extra), big, { task_bytes_max: 1_000 })
    assert.equal((fail as { tag: string }).tag, 'set_param_task_size_overflow')
  }
})

test('a set leaves the previous data object unchanged', () => {
  const context = contextOf({ a: 1 })
  const { command } = compiledLogic(setting({ a: '2' }), context)
  assert.equal(command?.command === 'set' && command.doc.text, '{"a":"2"}')
  assert.equal(stringifyJson(objectOf(context.doc)), '{"a":1}')
})

const bad_settings: [logic: unknown, mistake: string][] = [
  [{ extra: 'x' }, 'extra is "x", an object was expected'],
  [{ extra: { a: '$.map()' } }, 'extra["a"] "$.map()": "fun" was expected at character 7'],
  [{ extra: {}, err_node_id: 'x' }, 'err_node_id is no node'],
]

for (const [logic, mistake] of bad_settings) {
  test(`refuses: ${mistake}`, () => {
    const text = JSON.stringify({ type: 'set_param', ...(logic as object) })
    assert.deepEqual(compiledLogic(text, unreadableContext()).mistakes, [mistake])
  })
}

const warned_settings: [extra: object, extra_type: object, after: string, warning: string][] = [
  [
    { to: 'x' },
    { to: 'number' },
    'set_param_wrong_convert_param',
    'extra["to"] "x" cannot be converted to number',
  ],
  [
    { to: '{{' },
    {},
    '{"b":"x\\"y","to":"{{"}',
    'extra["to"]: "{{" is text there: a name was expected at character 3',
  ],
  [
    { '{{': '1' },
    {},
    '{"b":"x\\"y","{{":"1"}',
    'the key: "{{" is text there: a name was expected at character 3',
  ],
  [
    { to: ['{{b}}', { '{{b}}': 1.5 }] },
    {},
    '{"b":"x\\"y","to":["x\\"y",{"x\\"y":1.5}]}',
    'extra["to"] holds a template inside an array: it is read as its JSON text',
  ],
  [
    { to: { a: '{{b}} {{none}}' } },
    { to: 'string' },
    '{"b":"x\\"y","to":"{\\"a\\":\\"x\\\\\\"y \\"}"}',
    'extra["to"] holds a template inside an object: it is read as its JSON text',
  ],
  [
    { to: { a: '{{' } },
    { to: 'object' },
    '{"b":"x\\"y","to":{"a":"{{"}}',
    'extra["to"]: "{\\"a\\":\\"{{\\"}" is text there: a quote was not expected in a name at character 9',
  ],
]

for (const [extra, extra_type, after, warning] of warned_settings) {
  test(`warns: ${warning}`, () => {
    const context = contextOf({ b: 'x"y' })
    const { command, mistakes, warnings } = compiledLogic(setting(extra, extra_type), context)
    const done = command?.command === 'fail' ? command.tag : undefined
    assert.equal(command?.command === 'set' ? command.doc.text : done, after)
    assert.deepEqual([mistakes, warnings], [[], [warning]])
  })
}

// A number token of any shape: signs, zeros at the end, exponents, more digits than a double has.
const token = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(fc.constant('0'), fc.bigInt({ min: 1n, max: 10n ** 25n }).map(String)),
    fc.oneof(
      fc.constant(''),
      fc.nat(999_999).map((digits) => `.${digits}0`),
    ),
    fc.constantFrom('', 'e5', 'E+400', 'e-7'),
  )
  .map((parts) => parts.join(''))

test('a number keeps its token through set_param', () => {
  fc.assert(
    fc.property(token, (number) => {
      const data = `{"a":${number},"b":{"c":[${number}]}}`
      const extra = { x: '{{a}}', y: '{{b}}', z: '{{b.c[0]}}', s: '{{a}}', o: '{"n":{{a}}}' }
      const types = { x: 'number', y: 'object', z: 'number', s: 'string', o: 'object' }
      const after = runLogic(setting(extra, types), data)
      const numbers = `"x":${number},"y":{"c":[${number}]},"z":${number}`
      const set = `${numbers},"s":"${number}","o":{"n":${number}}`
      assert.equal(after, `${data.slice(0, -1)},${set}}`)
      assert.equal(stringifyJson(objectOf(docOfText(String(after)))), after)
    }),
    { numRuns: runs(500) },
  )
})
