/**
 * Exact JSON (wire 1.7): JSON.parse where it is used, the exact parser and a reference parser give
 * the same values and the same refusals, and numbers come back digit for digit.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { mergeDocs } from '../src/codec/doc-text.ts'
import { objectOf, parseJson, rawJson, stringifyJson } from '../src/codec/json.ts'
import { parseExact } from '../src/codec/json-exact.ts'
import { parseReference } from './support/json-reference.ts'
import { runs } from './support/short-run.ts'

const bounds = { nesting_max: 64, values_max: 100_000 }

/** [text, what comes back] */
const kept: [string, string][] = [
  ['{"a":1.10,"b":10.0,"c":-0,"d":1e400,"e":12345678901234567890}', ''],
  ['{"a":0.1,"b":-0.5,"c":1e21,"d":1E5,"e":9007199254740993}', ''],
  ['{"__proto__":{"x":1.0},"constructor":2}', ''],
  ['{"a":1,"a":2.50}', '{"a":2.50}'],
  ['{"a":"\\u0041\\/\\ud83d\\ude00"}', '{"a":"A/😀"}'],
  ['{"a":"\\\\ud800 \\"\\\\ud8001.5\\""}', ''],
  ['{"a":"é","b":"é"}', ''],
  [' { "a" : [ ] , "b" : { } } ', '{"a":[],"b":{}}'],
]

for (const [text, expected] of kept) {
  test(text, () => {
    const back = expected === '' ? text : expected
    assert.equal(stringifyJson(parseJson(text)), back)
    assert.equal(stringifyJson(parseExact(text, bounds)), back)
  })
}

/** [text, what the refusal says] */
const refused: [string, RegExp][] = [
  ['{"a":"\\ud800"}', /lone surrogate stands in a string, line 1 column 6/],
  ['{"a":"\ud800"}', /lone surrogate/],
  ['{"\udc00":1}', /lone surrogate/],
  ['{"a":1,\n"é":["\ud83d\\ude00"]}', /lone surrogate stands in a string, line 2 column 6/],
  ['{"a":01}', /line 1 column 7/],
  ['{"a":1,}', /a key in quotes was expected, line 1 column 8/],
  ['{\n"a":\ttru}', /a value was expected, line 2 column 6/],
  ['{"a":"\n"}', /control character/],
  ['{"a":1} x', /nothing may follow the value/],
  ['', /a value was expected/],
  [`${'['.repeat(65)}${']'.repeat(65)}`, /nested deeper than 6[14]/],
]

for (const [text, says] of refused) {
  test(`refuses ${JSON.stringify(text).slice(0, 40)}`, () => {
    assert.throws(() => parseJson(text), says)
    assert.throws(() => rawJson(text), says)
  })
}

const token = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.stringMatching(/^-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,3})?$/),
)

/** JSON texts with number tokens of every kind, by their own printer. */
const json = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    token,
    fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text)),
    fc.constantFrom('true', 'false', 'null'),
    fc.array(tie('value')).map((items) => `[${items.join(', ')}]`),
    fc
      .uniqueArray(fc.tuple(fc.string(), tie('value')), { selector: ([key]) => key })
      .map((members) => `{${members.map(([key, at]) => `${JSON.stringify(key)} :${at}`).join()}}`),
  ),
})).value

test('all parsers give the same values', () => {
  fc.assert(
    fc.property(json, (text) => {
      const expected = parseReference(text, bounds)
      for (const value of [parseJson(text), parseExact(text, bounds)]) {
        assert.deepEqual(value, expected)
        assert.equal(stringifyJson(value), stringifyJson(expected))
      }
    }),
    { numRuns: runs(2_000) },
  )
})

test('all parsers refuse the same texts, at the same place', () => {
  const piece = fc.constantFrom(
    '',
    '"',
    '\\',
    '{',
    ']',
    ',',
    ':',
    '-',
    '.',
    'e',
    '\n',
    '\u0001',
    '\udc00',
  )
  const few = fc.record({
    nesting_max: fc.integer({ min: 1, max: 5 }),
    values_max: fc.integer({ min: 1, max: 20 }),
  })
  const said = (parse: typeof parseExact, text: string, given: typeof bounds): unknown => {
    try {
      return parse(text, given)
    } catch (error) {
      return (error as Error).message
    }
  }
  fc.assert(
    fc.property(json, fc.nat(), fc.nat(2), piece, few, (whole, at, cut, put, given) => {
      const from = at % (whole.length + 1)
      const text = whole.slice(0, from) + put + whole.slice(from + cut)
      const expected = said(parseReference, text, given)
      assert.deepEqual(said(parseJson, text, given), expected)
      assert.deepEqual(said(parseExact, text, given), expected)
    }),
    { numRuns: runs(3_000) },
  )
})

test('every token comes back as it was', () => {
  fc.assert(
    fc.property(fc.array(token, { maxLength: 8 }), (tokens) => {
      const text = `{"a":[${tokens.join()}]}`
      assert.equal(rawJson(text).text, text)
      assert.equal(mergeDocs(rawJson('{"b":1.0}'), rawJson(text)).text, `{"b":1.0,${text.slice(1)}`)
    }),
    { numRuns: runs(1_000) },
  )
})

test('no text of JavaScript makes either path store what cannot be read back', () => {
  const unit = fc.oneof(
    fc.constantFrom('"', '\\', '{', '}', ':', '\ud800', '1', '.0', ','),
    fc.string(),
  )
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 12 }), (units) => {
      const text = `{"a":"${units.join('')}"}`
      let stored: string
      try {
        stored = rawJson(text).text
      } catch (error) {
        assert.equal((error as { code?: unknown }).code, 'format_error')
        return
      }
      assert.equal(stringifyJson(objectOf(rawJson(stored))), stored)
    }),
    { numRuns: runs(2_000) },
  )
})

test('levels are counted outside strings', () => {
  const rows: [string, number][] = [
    ['1', 0],
    ['{}', 1],
    ['{"a":"[[["}', 1],
    ['{"a":"\\"[["}', 1],
    ['[[[{"a":[1]}]]]', 5],
  ]
  for (const [text, levels] of rows) {
    parseJson(text, { ...bounds, nesting_max: levels })
    if (levels === 0) continue
    assert.throws(() => parseJson(text, { ...bounds, nesting_max: levels - 1 }), /nested deeper/)
  }
})
