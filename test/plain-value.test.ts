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

class Money {
  readonly #cents: number
  constructor(cents: number) {
    this.#cents = cents
  }
  toJSON(key: string): object {
    return { cents: this.#cents, key }
  }
}
const rejects = (): never => {
  throw new Error('no')
}
const itself = {
  toJSON(): unknown {
    return this
  },
}
/** Followed along all its ways it would have 2 to the power of its depth members. */
const wide_cycle: Record<string, unknown> = { at: new Date(0) }
wide_cycle.one = wide_cycle
wide_cycle.two = wide_cycle

/** What is reached on a million ways, of which a walk must follow a few. */
let read_members = 0
const counted = (member: object): object => ({
  get a() {
    read_members++
    return member
  },
  b: member,
})
const shared = (innermost: object, holder: (inner: object) => object): object =>
  Array.from({ length: 20 }).reduce<object>(holder, innermost)
const over = /^data holds more than 1000 keys and values$/
const long = 'x'.repeat(900)
const manyTimes: [object, RegExp][] = [
  [shared({}, counted), over],
  [shared({}, (inner) => ({ list: [inner, inner] })), over],
  [shared({ at: new Date(0) }, counted), over],
  [shared({ toJSON: () => ({}) }, counted), over],
  [{ list: Array(900).fill(Array(900).fill(1)) }, over],
  [
    { list: Array(900).fill(Object.fromEntries(Array.from(long, (_, at) => [at, undefined]))) },
    over,
  ],
  [{ list: Array(900).fill(long) }, /^data holds more than 20000 characters$/],
  [{ list: Array(900).fill({ [long]: 1 }) }, /^data holds more than 20000 characters$/],
  [
    { list: Array(900).fill(rawJson(`{"a":"${long}"}`)) },
    /^data holds more than 20000 characters$/,
  ],
  [{ list: Array(900).fill(10n ** 100n) }, /^data holds more than 20000 characters$/],
]
const bounds = { nesting_max: 4, values_max: 1_000, chars_max: 20_000 }

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
  [{ a: new Map() }, /^data\.a is no plain object/],
  [{ a: () => 1 }, /^data\.a is a function/],
  [{ a: Symbol('s') }, /^data\.a is a symbol/],
  [{ a: [undefined] }, /^data\.a\[0\] is a undefined/],
  [{ a: /x/ }, /^data\.a is no plain object/],
  [{ a: new Error('x') }, /^data\.a is no plain object/],
  [{ a: new Date(0) }, '{"a":"1970-01-01T00:00:00.000Z"}'],
  [{ a: new Date(Number.NaN) }, '{"a":null}'],
  [
    { a: [new Date(1), { b: new Date(2) }], c: -0, d: 5n },
    '{"a":["1970-01-01T00:00:00.001Z",{"b":"1970-01-01T00:00:00.002Z"}],"c":-0,"d":5}',
  ],
  [{ a: { b: { c: { d: new Date(0) } } } }, '{"a":{"b":{"c":{"d":"1970-01-01T00:00:00.000Z"}}}}'],
  [{ at: new Date(0), ...own_proto }, '{"at":"1970-01-01T00:00:00.000Z","__proto__":{"a":1}}'],
  [{ a: new URL('http://h/') }, '{"a":"http://h/"}'],
  [{ a: Buffer.from([7]) }, '{"a":{"type":"Buffer","data":[7]}}'],
  [{ a: new Money(5) }, '{"a":{"cents":5,"key":"a"}}'],
  [new Money(5), '{"cents":5,"key":""}'],
  [[new Money(5)], '[{"cents":5,"key":"0"}]'],
  [{ a: { toJSON: () => undefined }, b: 1 }, '{"b":1}'],
  [{ a: { toJSON: () => ({ b: new Date(0) }) } }, '{"a":{"b":"1970-01-01T00:00:00.000Z"}}'],
  [
    { a: rawJson('{"b":1.10}'), at: new Date(0) },
    '{"a":{"b":1.10},"at":"1970-01-01T00:00:00.000Z"}',
  ],
  [{ a: { toJSON: () => Number.NaN } }, /^data\.a is NaN/],
  [{ a: [{ toJSON: () => new Map() }] }, /^data\.a\[0\] is no plain object/],
  [{ a: { toJSON: () => rejects() } }, /^data\.a has a toJSON that throws/],
  [{ a: itself }, /^data\.a\.toJSON is a function/],
  [{ toJSON: () => 1 }, /^data is no object/],
  [{ toJSON: () => [1] }, /^data is an array/],
  [new Date(0), /^data is no object/],
  [wide_cycle, /^data\.one\.one\.one\.one is nested too deep/],
  [{ a: '\ud800' }, /^data\.a has a lone surrogate/],
  [{ '\ud800': 1 }, /^data has a key with a lone surrogate/],
  [{ a: { b: { c: { d: {} } } } }, /^data\.a\.b\.c\.d is nested too deep/],
  [cycle, /^data\.self\.self\.self\.self is nested too deep/],
]

for (const [value, expected] of rows) {
  test(String(expected), () => {
    const made = docOfPlain(value, bounds)
    if (typeof expected === 'string') {
      assert.ok(typeof made !== 'string', String(made))
      assert.equal(made.text, expected)
    } else assert.match(String(made), expected)
  })
}

for (const [at, [value, expected]] of manyTimes.entries()) {
  test(`a value in many places, row ${at}: ${expected.source}`, () => {
    read_members = 0
    assert.match(String(docOfPlain(value, { ...bounds, nesting_max: 64 })), expected)
    assert.ok(read_members <= 3 * bounds.values_max, `${read_members} members were read`)
  })
}
