/**
 * Request bodies and data objects in all spellings, intact and broken: the scanner gives the same
 * ops and the same refusals as a reference parser, and leaves data unparsed where it can.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { docOfBytes, isDoc, rawJson } from '../src/codec/json.ts'
import { parseOp } from '../src/codec/op.ts'
import { parseRequest } from '../src/codec/request-body.ts'
import { isFault } from '../src/core/faults.ts'
import { limitsWith } from '../src/core/limits.ts'
import type { Doc } from '../src/core/model.ts'
import { parseRequestReference, rawJsonReference } from './support/json-reference.ts'
import { runs } from './support/short-run.ts'

const limits = limitsWith()
const names = ['type', 'obj', 'conv_id', 'ref', 'id', 'obj_id', 'is_sync', 'node_id', 'data']

/** The raw ops as the engine parses them, with each member as it was read; or the refusal. */
function outcome(read: () => unknown[]): unknown {
  try {
    return read().map((raw) => {
      const op = raw as Record<string, unknown> | null
      const member = (name: string) => textOf(op?.[name])
      return { parsed: docsAsText(parseOp(raw, limits)), members: names.map(member) }
    })
  } catch (thrown) {
    if (isFault(thrown)) return { code: thrown.code, message: thrown.message }
    throw thrown
  }
}

function isRead(body: string, bounds: typeof limits): boolean {
  try {
    return parseRequest(Buffer.from(body), bounds).length > 0
  } catch {
    return false
  }
}

function docsAsText(parsed: object): object {
  return Object.fromEntries(Object.entries(parsed).map(([name, value]) => [name, textOf(value)]))
}

function textOf(value: unknown): unknown {
  return isDoc(value) ? { doc: value.text } : value
}

function mustAgree(text: string | Buffer, bounds = limits): void {
  const body = Buffer.from(text as string)
  assert.deepEqual(
    outcome(() => parseRequest(body, bounds)),
    outcome(() => parseRequestReference(body, bounds)),
  )
}

/** The text of a data object that came as bytes, or the refusal. */
function dataOutcome(read: () => Doc): unknown {
  try {
    return read().text
  } catch (thrown) {
    if (isFault(thrown)) return { code: thrown.code, message: thrown.message }
    throw thrown
  }
}

function mustAgreeAsData(text: string, bounds = limits): void {
  const { nesting_max, body_values_max: values_max } = bounds
  const given = { nesting_max, values_max }
  const bytes = Buffer.from(text)
  assert.deepEqual(
    dataOutcome(() => docOfBytes(bytes, given)),
    dataOutcome(() => rawJsonReference(bytes.toString(), given)),
  )
  assert.deepEqual(
    dataOutcome(() => rawJson(bytes.toString(), given)),
    dataOutcome(() => rawJsonReference(bytes.toString(), given)),
  )
}

const op = '"type":"create","conv_id":"1","ref":"x","obj":"task"'

/** Bodies, and whether they are read or refused. */
const rows: [string, boolean][] = [
  [`{"ops":[{${op},"data":{"a":1.10,"b":[true,null,"\\n"],"c":{}}}]}`, true],
  [`{"ops":[{${op},"data":{"a":1}},{${op},"data":{"a":2}}]}`, true],
  [`{"ops":{${op},"data":{}}}`, true],
  [`{"ops":[{}]}`, true],
  [` {\r\n"ops" : [ { ${op} , "data" : { "a" : 1 } } ]\t} `, true],
  [`{"company_id":"i1","ops":[{"action":[{"x":1e5}],${op},"data":{"a":1}}],"z":-0}`, true],
  [`{"ops":[{${op},"data":{"a":1,"a":2,"b":3}}]}`, true],
  [`{"ops":[{${op},"data":{"b":0,"7":1,"__proto__":{"1":2}}}]}`, true],
  [`{"ops":[{${op},"data":{"\\u0430\\/":"\\u0430\\u001f","а/":"\\/"}}]}`, true],
  [`{"ops":[{${op},"data":{"Олена":"Коваленко 😀\u2028\u007f"}}]}`, true],
  [`{"ops":[{"ref":null,"conv_id":1234,"id":1.10,"is_sync":true,"data":[]}]}`, true],
  [`{"ops":[{"ref":"\\"a\\u0430","ref":-0,"data":{"a":1},"data":{"a":2},"data":[1]}]}`, true],
  [`{"ops":[{"__proto__":{"type":"show"},"typ":1,"types":2,"type":"modify"}]}`, true],
  [`{"ops":[{"type":"\\ud83d\\ude00","ref":"\\ud83d"}]}`, false],
  [`{"ops":[{"data":{"a":"\\ud83d\\ude00"}}]}`, true],
  [`{"ops":[{"\\u0074ype":"create"}]}`, true],
  [`{"\\u006fps":[{}]}`, true],
  [`{"ops":[{}],"ops":[{},{}]}`, true],
  [`{"ops":[{},1]}`, true],
  [`{"ops":[]}`, false],
  [`{"ops":[{}]}x`, false],
  [`{"ops":[{"data":{"a":01}}]}`, false],
  [`{"ops":[{"data":{"a":1.}}]}`, false],
  [`{"ops":[{"data":{"a":1,}}]}`, false],
  [`{"ops":[{"data":{"a":"\n"}}]}`, false],
  [`{"ops":[{"data":{"a\t":1}}]}`, false],
  [`{"ops":[{"data":{"a":"\\x"}}]}`, false],
  [`{"ops":[{"data":{"a":"\\u00g0"}}]}`, false],
  [`{"ops":[{"data":{"a":tru}}]}`, false],
  [`{"ops":[{"data":{"a":`, false],
  [`{"ops":[{"data":{"a`, false],
  ['{}', false],
  ['[]', false],
  ['', false],
]

describe('a body is read or refused as the reference parser says', () => {
  for (const [body, is_read] of rows) {
    test(body, () => {
      assert.equal(isRead(body, limits), is_read)
      mustAgree(body)
    })
  }

  const bounded: [string, number, number, number, boolean][] = [
    ['{"ops":[{"data":{"a":[]}}]}', 5, 100, 1, true],
    ['{"ops":[{"data":{"a":[]}}]}', 4, 100, 1, false],
    ['{"ops":[{"data":{"a":{}}}]}', 5, 100, 1, true],
    ['{"ops":[{"data":{"a":{}}}]}', 4, 100, 1, false],
    ['{"ops":[{"x":[[]]}]}', 5, 100, 1, true],
    ['{"ops":[{"x":[[]]}]}', 4, 100, 1, false],
    ['{"x":[[]],"ops":[{}]}', 3, 100, 1, true],
    ['{"x":[[[]]],"ops":[{}]}', 3, 100, 1, false],
    ['{"ops":[{}]}', 2, 100, 1, false],
    ['{"ops":[{"data":{"a":[1,2]}}]}', 9, 7, 1, true],
    ['{"ops":[{"data":{"a":[1,2]}}]}', 9, 6, 1, false],
    ['{"ops":[{"x":{"a":["1",true]}}]}', 9, 7, 1, true],
    ['{"ops":[{"x":{"a":["1",true]}}]}', 9, 6, 1, false],
    ['{"ops":[{"ref":"a"}],"x":1}', 9, 5, 1, true],
    ['{"ops":[{"ref":"a"}],"x":1}', 9, 4, 1, false],
    ['{"ops":[{},{}]}', 9, 100, 2, true],
    ['{"ops":[{},{}]}', 9, 100, 1, false],
  ]
  for (const [body, nesting_max, body_values_max, ops_max, is_read] of bounded) {
    const bounds = limitsWith({ nesting_max, body_values_max, ops_max })
    test(`${body} within ${nesting_max} levels, ${body_values_max} values, ${ops_max} ops`, () => {
      assert.equal(isRead(body, bounds), is_read)
      mustAgree(body, bounds)
    })
  }

  const many = (count: number) => Array.from({ length: count }, (_, n) => `"k${n}":${n}`).join()
  const taken: [string, boolean][] = [
    ['{}', true],
    ['{"a":{"b":1,"c":[{"b":1},{"b":2}]},"b":1.10,"c":"\\n\\\\é"}', true],
    ['{ "a" : [ 1 , "b c" ] }', true],
    ['{"a":"\\u0430\\/","b":"\\u0080\\u07ff\\u0800\\ud7ff\\\\u0041"}', true],
    [`{"a":{${many(64)}},"b":{${many(64)}}}`, true],
    [`{${many(65)}}`, false],
    ['{"a":1,"a":1}', false],
    ['{"a":{"b":1,"b":1}}', false],
    ['{"1":1}', false],
    ['{"\\u0061":1}', false],
    ['{"a\\/":1}', false],
    ['{"a":"\\u0022"}', true],
    ['{"a":"\\u001f\\ud83d\\uDE00"}', true],
  ]
  for (const [data, is_unparsed] of taken) {
    test(`data ${data.slice(0, 60)} is ${is_unparsed ? 'kept unparsed' : 'parsed'}`, () => {
      const body = `{"ops":[{"data":{"1":1}},{"data":${data}}]}`
      const ops = parseRequest(Buffer.from(body), limits) as { data: Doc }[]
      assert.equal(ops[1]?.data.memo === undefined, is_unparsed)
      mustAgree(body)
    })
  }

  test('the last of two equal keys holds in objects with more keys than are compared', () => {
    let data = '{"a":1,"a":2}'
    for (let level = 0; level < 70; level++) data = `{${many(63)},"x":${data}}`
    mustAgree(`{"ops":[{"data":${data}}]}`, limitsWith({ nesting_max: 200 }))
  })

  test('the last of two equal keys holds in an object with many keys', () => {
    for (const count of [2, 64, 65, 5_000]) {
      mustAgree(`{"ops":[{"data":{"x":{${many(count)}},"y":{${many(count)},"k1":-1}}}]}`)
    }
  })
})

const small_limits = { nesting_max: 6, body_values_max: 40, ops_max: 3 }
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
      const [op] = parseRequest(Buffer.from(body), small_limits) as { data?: unknown }[]
      assert.equal(isDoc(op?.data), typeof expected === 'string')
      if (isDoc(op?.data)) assert.equal(op.data.text, expected)
      else assert.deepEqual(op?.data, expected)
    })
  }

  test('a raw op that is no object is left as it is', () => {
    assert.deepEqual(parseRequest(Buffer.from('{"ops":[null,1,"a"]}'), small_limits), [
      null,
      1,
      'a',
    ])
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
        () => parseRequest(Buffer.from(body as string), small_limits),
        (error: Error & { code?: string }) => {
          assert.equal(error.code, code)
          assert.ok(error.message.includes(says), error.message)
          return true
        },
      )
    })
  }
})

const space = fc.stringMatching(/^[ \t\n\r]{0,2}$/)
const often_none = fc.oneof({ weight: 9, arbitrary: fc.constant('') }, space)
const character = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b', '1', 'é', 'а', '😀', '\u2028', '\u007f') },
  fc.constantFrom('\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\u0061', '\\u001F'),
  fc.constantFrom(
    '\\ud83d\\ude00',
    '\\ud83d',
    '\\uDE00',
    '\\u00e9',
    '\\u2028',
    '\\u0022',
    '\\u07ff',
    '\\u0800',
    '\\ud7ff',
  ),
)
const string = fc.array(character, { maxLength: 6 }).map((all) => `"${all.join('')}"`)
const key = fc.oneof(
  fc.constantFrom('"a"', '"b"', '"c"', '"__proto__"', '"1"', '"10"', '"01"', '""', '"\\u0061"'),
  string,
)
const number = fc.oneof(
  fc.integer().map(String),
  fc.stringMatching(/^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?$/),
)

/** JSON text in all its spellings. */
const { value, object } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(string, number, fc.constantFrom('true', 'false', 'null')),
    tie('object'),
    tie('array'),
  ),
  object: fc
    .array(fc.tuple(often_none, key, often_none, tie('value')), { maxLength: 5 })
    .map((all) => `{${all.map(([s, name, t, of]) => `${s}${name}${t}:${s}${of}`).join()}}`),
  array: fc
    .array(fc.tuple(often_none, tie('value')), { maxLength: 4 })
    .map((all) => `[${all.map(([s, of]) => s + of + s).join()}]`),
}))

const member = fc.oneof(
  fc.tuple(fc.constant('"data"'), object),
  fc.tuple(fc.constantFrom('"ref"', '"id"', '"conv_id"', '"node_id"'), fc.oneof(string, number)),
  fc.tuple(fc.constant('"type"'), fc.constantFrom('"create"', '"modify"', '"show"')),
  fc.tuple(fc.constant('"obj"'), fc.constant('"task"')),
  fc.tuple(fc.constantFrom('"is_sync"', '"obj_id"', '"data"', '"type"', '"tipe"', '"re"'), value),
  fc.tuple(key, value),
)
const raw_op = fc
  .tuple(often_none, fc.array(fc.tuple(member, often_none), { maxLength: 7 }))
  .map(([s, all]) => `{${s}${all.map(([[name, of], t]) => `${name}${t}:${t}${of}`).join(`${s},`)}}`)
const common_body = fc
  .tuple(often_none, fc.array(raw_op, { minLength: 1, maxLength: 3 }), fc.option(value))
  .map(([s, ops, more]) => {
    const list = `"ops"${s}:${s}[${ops.join()}${s}]`
    return more === null ? `{${list}}${s}` : `{"more":${more},${s}${list}}`
  })

describe('the scanner agrees with the reference parser', () => {
  const bounds = fc.record({
    nesting_max: fc.integer({ min: 1, max: 9 }),
    body_values_max: fc.integer({ min: 1, max: 40 }),
    ops_max: fc.integer({ min: 1, max: 3 }),
  })

  test('over bodies of every spelling', () => {
    fc.assert(
      fc.property(common_body, (text) => {
        mustAgree(text)
        mustAgreeAsData(text)
      }),
      { numRuns: runs(1_000) },
    )
  })

  test('over any bounds', () => {
    const property = fc.property(common_body, bounds, (text, given) => {
      mustAgree(text, limitsWith(given))
      const nesting_max = given.nesting_max + 3
      mustAgreeAsData(text, limitsWith({ ...given, nesting_max }))
    })
    fc.assert(property, { numRuns: runs(500) })
  })

  test('over bodies that are broken somewhere', () => {
    const piece = fc.constantFrom('', '"', '\\', '{', '}', '[', ']', ',', ':', '0', '-', '\n', 'é')
    const property = fc.property(common_body, fc.nat(), fc.nat(3), piece, (text, at, cut, put) => {
      const from = at % (text.length + 1)
      const broken = text.slice(0, from) + put + text.slice(from + cut)
      mustAgree(broken)
      mustAgreeAsData(broken)
    })
    fc.assert(property, { numRuns: runs(1_000) })
  })
})
