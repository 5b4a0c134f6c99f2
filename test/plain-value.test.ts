/**
 * Values that an embedder passes as data: the text of each, or the path and reason of the refusal.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawJson } from '../src/codec/json.ts'
import { docOfPlain } from '../src/codec/plain-value.ts'

const own_proto = JSON.parse('{"__proto__":{"a":1}}')
const cycle: Record<string, unknown> = {}
cycle.self = cycle

/** [value, its text or the sentence that refuses it] */
const rows: [object, string | RegExp][] = [
  [{}, '{}'],
  [
    { a: 1, b: 'x', c: null, d: [true, false], e: { f: 0.5 } },
    '{"a":1,"b":"x","c":null,"d":[true,false],"e":{"f":0.5}}',
  ],
  [{ a: undefined, b: 1 }, '{"b":1}'],
  [{ a: -0 }, '{"a":-0}'],
  [{ a: 12345678901234567890n }, '{"a":12345678901234567890}'],
  [{ a: 7n }, '{"a":7}'],
  [{ a: 1e21 }, '{"a":1e+21}'],
  [{ a: rawJson('{"b":1.10}'), c: -0 }, '{"a":{"b":1.10},"c":-0}'],
  [{ a: [rawJson('{"b":1e400}')] }, '{"a":[{"b":1e400}]}'],
  [own_proto, '{"__proto__":{"a":1}}'],
  [{ ...own_proto, n: 1n }, '{"__proto__":{"a":1},"n":1}'],
  [Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
  [{ a: '😀' }, '{"a":"😀"}'],
  [{ a: { b: [0, Number.NaN] } }, /^data\.a\.b\[1\] is NaN/],
  [{ a: Number.POSITIVE_INFINITY }, /^data\.a is Infinity/],
  [{ a: new Date(0) }, /^data\.a is no plain object/],
  [{ a: new Map() }, /^data\.a is no plain object/],
  [{ a: () => 1 }, /^data\.a is a function/],
  [{ a: Symbol('s') }, /^data\.a is a symbol/],
  [{ toJSON: () => 1 }, /^data\.toJSON is a function/],
  [{ a: [undefined] }, /^data\.a\[0\] is a undefined/],
  [{ a: '\ud800' }, /^data\.a has a lone surrogate/],
  [{ '\ud800': 1 }, /^data has a key with a lone surrogate/],
  [{ a: { b: { c: { d: {} } } } }, /^data\.a\.b\.c\.d is nested too deep/],
  [cycle, /^data\.self\.self\.self\.self is nested too deep/],
]

for (const [value, expected] of rows) {
  test(String(expected), () => {
    const made = docOfPlain(value, 4)
    if (typeof expected === 'string') {
      assert.ok(typeof made !== 'string', String(made))
      assert.equal(made.text, expected)
    } else assert.match(String(made), expected)
  })
}
