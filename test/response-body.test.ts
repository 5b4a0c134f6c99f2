/** The response bodies of the JSON endpoint (wire 1.3 to 1.5), to the byte. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { renderFault, renderResults } from '../src/codec/response-body.ts'
import type { OpResult, Task } from '../src/core/model.ts'

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
  data_text: '{"a":1.10,"__proto__":[]}',
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
