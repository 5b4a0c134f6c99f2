/** The JSON endpoint's bytes (wire 1.1, 1.3 to 1.5), by rows and to the byte. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDoc } from '../src/codec/json.ts'
import { parseRequest, renderFault, renderResults } from '../src/codec/wire.ts'
import type { OpResult, Task } from '../src/core/model.ts'

const limits = { nesting_max: 6, body_values_max: 40, ops_max: 3 }
const obj_id = '5cf67011094bab1b9a00a31d'

const task: Task = {
  obj_id,
  conv_id: '1234',
  ref: 'r',
  status: 'delayed',
  user_id: '13000',
  create_time_ms: 1_700_000_000_999,
  change_time_ms: 1_700_000_001_000,
  node_id: 'wait',
  node_prev_id: '',
  dataText: '{"a":1.10,"__proto__":[]}',
  data: {},
}
const shown =
  ',"user_id":13000,"create_time":1700000000,"change_time":1700000001,' +
  '"node_id":"wait","node_prev_id":"","data":{"a":1.10,"__proto__":[]}}'

const ok = (more: Partial<OpResult>): OpResult => ({ ref: null, obj: 'task', proc: 'ok', ...more })
const created = ok({ type: 'create', ref: '130605ref1', obj_id })
const modified = ok({ type: 'modify', ref: '130605ref1', obj_id })
const clash: OpResult = {
  ...created,
  proc: 'not_unical_ref',
  description: 'not unical reference',
}
const malformed: OpResult = {
  ref: null,
  obj: 'task',
  proc: 'error',
  description: "Key 'conv_id' is required",
  key: 'conv_id',
}

const rendered: [string, 1 | 2, OpResult, string][] = [
  ['create', 1, created, `{"ref":"130605ref1","obj":"task","obj_id":"${obj_id}","proc":"ok"}`],
  ['modify', 1, modified, '{"ref":"130605ref1","proc":"ok"}'],
  [
    'create with an id',
    1,
    { ...created, id_text: '"a\\n"' },
    `{"id":"a\\n","ref":"130605ref1","obj":"task","obj_id":"${obj_id}","proc":"ok"}`,
  ],
  [
    'modify with an id',
    1,
    { ...modified, id_text: '7' },
    '{"id":7,"ref":"130605ref1","proc":"ok"}',
  ],
  ['no ref', 1, { ...modified, ref: null }, '{"ref":null,"proc":"ok"}'],
  [
    'a ref that is a number keeps its token',
    1,
    { ...modified, ref: '1e400', ref_is_number: true },
    '{"ref":1e400,"proc":"ok"}',
  ],
  [
    'a ref that needs escapes',
    1,
    { ...modified, ref: '"\\\n' },
    '{"ref":"\\"\\\\\\n","proc":"ok"}',
  ],
  [
    'create',
    2,
    created,
    `{"id":"","proc":"ok","obj":"task","ref":"130605ref1","obj_id":"${obj_id}"}`,
  ],
  [
    'modify with an id',
    2,
    { ...modified, id_text: '7' },
    `{"id":7,"proc":"ok","obj":"task","ref":"130605ref1","obj_id":"${obj_id}"}`,
  ],
  [
    'a clash names the holder',
    1,
    clash,
    `{"ref":"130605ref1","obj":"task","obj_id":"${obj_id}","proc":"not_unical_ref",` +
      '"description":"not unical reference"}',
  ],
  [
    'a clash names the holder',
    2,
    clash,
    `{"id":"","ref":"130605ref1","obj":"task","obj_id":"${obj_id}","proc":"not_unical_ref",` +
      '"description":"not unical reference"}',
  ],
  [
    'malformed',
    1,
    malformed,
    '{"ref":null,"obj":"task","proc":"error",' +
      '"description":"Key \'conv_id\' is required","key":"conv_id"}',
  ],
  [
    'malformed with an id',
    2,
    { ...malformed, id_text: '"x"' },
    '{"id":"x","ref":null,"obj":"task","proc":"error",' +
      '"description":"Key \'conv_id\' is required","key":"conv_id"}',
  ],
  [
    'show',
    1,
    ok({ type: 'show', ref: 'r', obj_id, task }),
    `{"ref":"r","obj":"task","obj_id":"${obj_id}","proc":"ok","status":"delayed"${shown}`,
  ],
  [
    'show',
    2,
    ok({ type: 'show', ref: 'r', obj_id, task }),
    `{"id":"","proc":"ok","obj":"task","ref":"r","obj_id":"${obj_id}","status":"delayed"${shown}`,
  ],
  [
    'show of a failed task',
    1,
    ok({
      type: 'show',
      ref: 'r',
      obj_id,
      task: { ...task, status: 'failed', status_details: { tag: 'loop', description: 'a "b"' } },
    }),
    `{"ref":"r","obj":"task","obj_id":"${obj_id}","proc":"ok","status":"failed",` +
      `"status_details":{"tag":"loop","description":"a \\"b\\""}${shown}`,
  ],
  [
    'show of a task made by no numbered user',
    1,
    ok({ type: 'show', ref: 'r', obj_id, task: { ...task, user_id: 'uri:x' } }),
    `{"ref":"r","obj":"task","obj_id":"${obj_id}","proc":"ok","status":"delayed"` +
      shown.replace('13000', 'null'),
  ],
]

describe('renderResults', () => {
  for (const [name, version, result, text] of rendered) {
    test(`version ${version}: ${name}`, () => {
      assert.equal(renderResults(version, [result]), `{"request_proc":"ok","ops":[${text}]}`)
      JSON.parse(text)
    })
  }
  test('several results stand in order with commas between', () => {
    const one = '{"ref":"130605ref1","proc":"ok"}'
    assert.equal(
      renderResults(1, [modified, { ...modified, ref: 'b' }, modified]),
      `{"request_proc":"ok","ops":[${one},{"ref":"b","proc":"ok"},${one}]}`,
    )
  })
  test('a refused request', () => {
    assert.equal(
      renderFault('format_error', 'a "quoted" word'),
      '{"request_proc":"format_error","ops":[],"description":"a \\"quoted\\" word"}',
    )
  })
})

const data_of: [string, string, unknown][] = [
  ['an array', '{"ops":[{"data":{"a":1}}]}', '{"a":1}'],
  ['a single op', '{"ops":{"data":{"a":1}}}', '{"a":1}'],
  [
    'numbers by token',
    '{"ops":[{"data":{"a":1.10,"b":10.0,"c":-0}}]}',
    '{"a":1.10,"b":10.0,"c":-0}',
  ],
  ['white space and escapes', '{ "ops":\r\n[ {\t"data": {"\\u0061" : "\\/"} } ] }', '{"a":"/"}'],
  ['__proto__ as data', '{"ops":[{"data":{"__proto__":{"a":1}}}]}', '{"__proto__":{"a":1}}'],
  ['the last of duplicates', '{"ops":[{"data":{"a":1,"a":2}}]}', '{"a":2}'],
  ['an empty array is left', '{"ops":[{"data":[]}]}', []],
  ['null is left', '{"ops":[{"data":null}]}', null],
  ['no data is left', '{"ops":[{}]}', undefined],
  ['a number is left', '{"ops":[{"data":7}]}', 7],
]

describe('parseRequest', () => {
  for (const [name, body, expected] of data_of) {
    test(`data: ${name}`, () => {
      const [op] = parseRequest(Buffer.from(body), limits) as { data?: unknown }[]
      assert.equal(isDoc(op?.data), typeof expected === 'string')
      if (isDoc(op?.data)) assert.equal(op.data.text, expected)
      else assert.deepEqual(op?.data, expected)
    })
  }

  test('a raw op that is no object is left as it is', () => {
    assert.deepEqual(parseRequest(Buffer.from('{"ops":[null,1,"a"]}'), limits), [null, 1, 'a'])
  })

  const refused: [string, Buffer | string, string, string][] = [
    ['nothing', '', 'format_error', 'not JSON: a value was expected, line 1 column 1'],
    ['cut off', '{"ops":[', 'format_error', 'not JSON: a value was expected, line 1 column 9'],
    ['a second value', '{"ops":[{}]}\n{}', 'format_error', 'nothing may follow the value, line 2'],
    ['an array', '[{"type":"create"}]', 'format_error', 'the body is not a JSON object'],
    ['a number token', '1e400', 'format_error', 'the body is not a JSON object'],
    ['no ops', '{"op":[]}', 'format_error', "Key 'ops' is required"],
    ['ops is null', '{"ops":null}', 'format_error', "'ops' is not an array"],
    ['ops is a text', '{"ops":"[]"}', 'format_error', "'ops' is not an array"],
    ['ops is a number', '{"ops":1e400}', 'format_error', "'ops' is not an array"],
    ['ops is empty', '{"ops":[]}', 'format_error', "'ops' is empty"],
    ['too many ops', '{"ops":[1,2,3,4]}', 'too_many_ops', '4 ops, at most 3 in one request'],
    ['too deep', '{"ops":[{"data":[[[[]]]]}]}', 'format_error', 'nested deeper than 6'],
    ['too many values', `{"ops":[[${'1,'.repeat(40)}1]]}`, 'format_error', 'more than 40 values'],
    ['a mark', '\ufeff{"ops":[{}]}', 'format_error', 'byte order mark, byte 1'],
    ['a lone surrogate', '{"ops":["\\ud800"]}', 'format_error', 'a lone surrogate'],
    ['a bad byte', Buffer.from('{"a":"\xff"}', 'latin1'), 'format_error', 'not UTF-8, byte 7'],
    [
      'a bad byte behind a true U+FFFD',
      Buffer.concat([Buffer.from('{"é\ufffd":"'), Buffer.from([0xc3, 0x28])]),
      'format_error',
      'not UTF-8, byte 11',
    ],
    ['a cut character', Buffer.from('{"é').subarray(0, 3), 'format_error', 'not UTF-8, byte 3'],
    ['UTF-16', Buffer.from('{"ops":[{}]}', 'utf16le'), 'format_error', 'not JSON'],
  ]
  for (const [name, body, code, says] of refused) {
    test(`refuses: ${name}`, () => {
      assert.throws(
        () => parseRequest(Buffer.from(body as string), limits),
        (error: Error & { code?: string }) => {
          assert.equal(error.code, code)
          assert.ok(error.message.includes(says), error.message)
          return true
        },
      )
    })
  }
})
