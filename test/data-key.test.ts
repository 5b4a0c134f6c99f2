/** Keys of assignments as paths: what each sets in the data, and what it must not change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { objectOf, stringifyJson } from '../src/codec/json.ts'
import type { JsonObject } from '../src/core/model.ts'
import { compiledLogic, contextOf, runLogic } from './support/logic-context.ts'

const set = (extra: object, extra_type: object = {}): string =>
  JSON.stringify({ type: 'set_param', extra, extra_type, err_node_id: 'b' })

// [key, data, the data afterwards]; the value is `v`.
const keys: [key: string, data: string, after: string][] = [
  ['a.b', '{}', '{"a":{"b":"v"}}'],
  ['a.b', '{"a":{"c":1.10},"a.b":1}', '{"a":{"c":1.10,"b":"v"},"a.b":1}'],
  ['a.b.c', '{"a":{"b":null}}', '{"a":{"b":{"c":"v"}}}'],
  ['l[0]', '{"l":[1,2]}', '{"l":["v",2]}'],
  ['l[1].x', '{"l":[1,{"y":2}]}', '{"l":[1,{"y":2,"x":"v"}]}'],
  ['l[3]', '{"l":[1]}', '{"l":[1,null,null,"v"]}'],
  ['l[0]', '{}', '{"l":["v"]}'],
  ['l.0', '{"l":[1]}', '{"l":["v"]}'],
  ['l.0', '{}', '{"l":{"0":"v"}}'],
  ['o[0]', '{"o":{}}', '{"o":{"0":"v"}}'],
  ['o[x y]', '{}', '{"o":{"x y":"v"}}'],
  ['o[500]', '{"o":{}}', '{"o":{"500":"v"}}'],
  ['l[{{i}}].title', '{"i":1,"l":[]}', '{"i":1,"l":[null,{"title":"v"}]}'],
  ['l[$.math({{i}}+1)]', '{"i":0,"l":[0]}', '{"i":0,"l":[0,"v"]}'],
  ['a.{{k}}', '{"k":"x.y"}', '{"k":"x.y","a":{"x.y":"v"}}'],
  ['a.n_{{k}}.z', '{"k":7}', '{"k":7,"a":{"n_7":{"z":"v"}}}'],
  ['{{k.x}}', '{"k":{"x":"y.z"}}', '{"k":{"x":"y.z"},"y.z":"v"}'],
  ['a\\.b', '{}', '{"a.b":"v"}'],
  ['phone\\[0\\]', '{"phone":[1]}', '{"phone":[1],"phone[0]":"v"}'],
  ['a.b\\.c', '{}', '{"a":{"b.c":"v"}}'],
  ['a.__proto__.x', '{"a":{}}', '{"a":{"__proto__":{"x":"v"}}}'],
  ['a\\b', '{}', '{"a\\\\b":"v"}'],
  ['a.b\\', '{}', '{"a":{"b\\\\":"v"}}'],
  ['a.\\😀b', '{}', '{"a":{"😀b":"v"}}'],
  ['a.{{k}}{{k}}', '{"k":"x"}', '{"k":"x","a":{"xx":"v"}}'],
  ['a]', '{}', '{"a]":"v"}'],
]

for (const [key, data, after] of keys) {
  test(`the key ${key} over ${data}`, () => {
    const context = contextOf(data)
    const { mistakes, warnings } = compiledLogic(set({ [key]: 'v' }), context)
    assert.deepEqual([mistakes, warnings], [[], []])
    assert.equal(stringifyJson(objectOf(context.doc)), data, 'the data before is not changed')
    assert.equal(runLogic(set({ [key]: 'v' }), data), after)
  })
}

// A key that is no path is one name, with a warning.
const names: [key: string, warning: string][] = [
  ['a..b', 'the key "a..b": a name was expected at character 3'],
  ['.a', 'the key ".a": a name was expected at character 1'],
  ['a.', 'the key "a.": a name was expected at character 3'],
  ['[0]', 'the key "[0]": a name was expected at character 1'],
  ['a[0', 'the key "a[0": "]" was expected at character 4'],
  ['a[]', 'the key "a[]": a name was expected at character 3'],
  ['a[0]b', 'the key "a[0]b": "." or "[" was expected at character 5'],
  [`a${'.b'.repeat(60)}`, `the key "a${'.b'.repeat(60)}": too many names at character 122`],
]

for (const [key, warning] of names) {
  test(`the key ${key.slice(0, 9)} is one name`, () => {
    assert.equal(runLogic(set({ [key]: 'v' }), {}), JSON.stringify({ [key]: 'v' }))
    assert.deepEqual(compiledLogic(set({ [key]: 'v' }), contextOf({})).warnings, [warning])
  })
}

// [extra, types, data, description]: each fails with the convert tag and sets nothing.
const failures: [extra: object, types: object, data: JsonObject, description: string][] = [
  [{ 'a.b': 'v' }, {}, { a: 'x' }, 'Param: a, Value: x, Try convert to: object'],
  [{ 'a.b.c': 'v' }, {}, { a: { b: 5 } }, 'Param: a.b, Value: 5, Try convert to: object'],
  [{ 'a[0]': 'v' }, {}, { a: '' }, 'Param: a, Value: , Try convert to: array'],
  [{ 'a[0].c': 'v' }, {}, { a: [true] }, 'Param: a[0], Value: true, Try convert to: object'],
  [{ 'a.b': 'v' }, {}, { a: [1] }, 'Param: a, Value: [1], Try convert to: object'],
  [{ 'a[-1]': 'v' }, {}, { a: [1] }, 'Param: a, Value: [1], Try convert to: object'],
  [{ 'a[101]': 'v' }, {}, {}, 'the index 101 of a key is over 100'],
  [{ 'a[101]': 'v' }, {}, { a: new Array(200).fill(0) }, 'the index 101 of a key is over 100'],
  [{ 'a[{{n}}].b': 'v' }, {}, { n: 1e9 }, 'the index 1000000000 of a key is over 100'],
  [{ 'a.{{n}}': 'v' }, {}, {}, 'the key a.{{n}} is missing'],
  [{ 'a.b': 'x' }, { 'a.b': 'number' }, {}, 'Param: a.b, Value: x, Try convert to: number'],
]

for (const [extra, types, data, description] of failures) {
  test(`${JSON.stringify(extra)} fails over ${JSON.stringify(data).slice(0, 30)}`, () => {
    const { tag, ...command } = runLogic(set(extra, types), data) as Record<string, unknown>
    assert.deepEqual([tag, command.description], ['set_param_wrong_convert_param', description])
  })
}

test('the keys of one list add up, over the data as it was before', () => {
  const extra = { 'a.x': '{{a.y}}', 'a.y': '{{a.x}}', 'a.l[0]': '{{a}}', 'a.l[1].z': 'v' }
  assert.equal(
    runLogic(set(extra), '{"a":{"x":1,"y":2}}'),
    '{"a":{"x":2,"y":1,"l":[{"x":1,"y":2},{"z":"v"}]}}',
  )
  assert.equal(runLogic(set({ a: '{{b}}', 'a.x': 'v' }), '{"b":{}}'), '{"b":{},"a":{"x":"v"}}')
})

test('no list of keys makes data that nests too deep or is too large', () => {
  const deep = `${'['.repeat(59)}${']'.repeat(59)}`
  assert.equal(runLogic(set({ 'a.b': deep }, { 'a.b': 'array' }), {}), `{"a":{"b":${deep}}}`)
  const deeper = runLogic(set({ 'a.b': `[${deep}]` }, { 'a.b': 'array' }), {})
  assert.equal((deeper as { command: string }).command, 'fail')
  const many = Object.fromEntries(Array.from({ length: 400 }, (_, at) => [`a${at}[100]`, 'v']))
  const full = runLogic(set(many), {})
  assert.equal((full as { tag: string }).tag, 'set_param_task_size_overflow')
})

// What makes the data of a task; the names of a request are told apart in call-logic.test.ts.
const lists: [logic: object, member: 'doc' | 'data'][] = [
  [{ type: 'api_copy', conv_id: 1, data: { 'a.b': 'v' } }, 'doc'],
  [{ type: 'api_rpc', conv_id: 1, extra: { 'a.b': 'v' } }, 'doc'],
  [{ type: 'api_rpc_reply', res_data: { 'a.b': 'v' } }, 'data'],
  [{ type: 'api_queue', data: { 'a.b': 'v' } }, 'doc'],
]

for (const [logic, member] of lists) {
  test(`the keys of ${JSON.stringify(logic)} are paths`, () => {
    const { command } = compiledLogic(JSON.stringify(logic), contextOf({}))
    const made = (command as unknown as Record<string, { text: string }>)[member]
    assert.equal(made?.text, '{"a":{"b":"v"}}')
  })
}
