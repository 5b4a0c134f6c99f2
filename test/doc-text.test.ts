/**
 * Docs merged and put in canonical order by their text: to the byte what parsing, merging or
 * sorting, and printing gives.
 */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  canonicalText,
  digestOf,
  mergeDocs,
  mergedText,
  sortedText,
} from '../src/codec/doc-text.ts'
import { docOfText, objectOf, rawJson, setMember, stringifyJson } from '../src/codec/json.ts'
import type { Doc, JsonObject, JsonValue } from '../src/core/model.ts'
import { runs } from './support/short-run.ts'

/** [base, patch, merged; undefined where the values must be parsed] */
const merges: [string, string, string | undefined][] = [
  ['{"a":1}', '{"b":2}', '{"a":1,"b":2}'],
  ['{"a":1,"b":2}', '{"a":[3,{"b":4}]}', '{"a":[3,{"b":4}],"b":2}'],
  ['{"a":{"b":1},"c":"\\"b\\":1"}', '{"b":1.0}', '{"a":{"b":1},"c":"\\"b\\":1","b":1.0}'],
  ['{"a":"{","b":"}"}', '{"b":"]","a":"[,"}', '{"a":"[,","b":"]"}'],
  ['{"\\\\":1,"\\"":2}', '{"\\"":3,"\\\\":4}', '{"\\\\":4,"\\"":3}'],
  ['{"1":1,"a":2}', '{"a":3,"b":4}', '{"1":1,"a":3,"b":4}'],
  ['{"a":2}', '{"b":3,"1":1}', undefined],
  ['{"__proto__":1}', '{"a":2,"__proto__":{}}', '{"__proto__":{},"a":2}'],
  ['{"":1}', '{"":"é\u2028"}', '{"":"é\u2028"}'],
]

for (const [base, patch, expected] of merges) {
  test(`${patch} over ${base}`, () => {
    assert.equal(mergedText(base, patch), expected)
    if (expected !== undefined) assert.equal(expected, byValues(rawJson(base), rawJson(patch)))
  })
}

/** [text, sorted; undefined where the values must be parsed] */
const sorted: [string, string | undefined][] = [
  ['{}', '{}'],
  ['{"b":1,"a":{"d":[{"f":1,"e":2}],"c":{}}}', '{"a":{"c":{},"d":[{"e":2,"f":1}]},"b":1}'],
  ['{"b!":1,"b":2,"B":[],"é":3,"z":4}', '{"B":[],"b":2,"b!":1,"z":4,"é":3}'],
  ['{"10":1,"9":2}', '{"10":1,"9":2}'],
  ['{"a":1.10,"b":-0,"c":1e400}', '{"a":"\\ud8001.10","b":"\\ud800-0","c":"\\ud8001e400"}'],
  [
    '{"a":123456789012345,"b":12345678901234567890}',
    '{"a":123456789012345,"b":"\\ud80012345678901234567890"}',
  ],
  ['{"a":[true,false,null,-7,0.5,1e-7]}', '{"a":[true,false,null,-7,0.5,1e-7]}'],
  ['{"b":"\\n","a":1}', undefined],
]

for (const [text, expected] of sorted) {
  test(`${text} in order`, () => {
    assert.equal(sortedText(text), expected)
    if (expected !== undefined) assert.equal(expected, canonicalText(objectOf(rawJson(text))))
  })
}

const key = fc.oneof(
  fc.constantFrom('a', 'b', 'c', '', '__proto__', 'constructor', 'toJSON', '"', '\\', 'a":', '"a"'),
  fc.constantFrom('0', '1', '01', '10', '-1', '1.5', '4294967294', '4294967295', '1a', ' '),
  fc.string({ unit: 'grapheme', maxLength: 3 }),
)
const scalar = fc.oneof(
  fc.constantFrom(
    'true',
    'null',
    '"a"',
    '"\\"a\\":"',
    '"}"',
    '"\\\\"',
    '1.10',
    '-0',
    '1e400',
    '[]',
  ),
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.stringMatching(/^-?[1-9][0-9]{0,25}$/),
  fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text)),
)

/** JSON objects whose keys often meet. */
const { object } = fc.letrec<{ object: string; value: string }>((tie) => ({
  object: fc
    .array(fc.tuple(key, tie('value')), { maxLength: 6 })
    .map((members) => `{${members.map(([name, at]) => `${JSON.stringify(name)}: ${at}`).join()}}`),
  value: fc.oneof(
    { maxDepth: 4 },
    scalar,
    tie('object'),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join()}]`),
  ),
}))
const doc = object.map((text) => rawJson(text))

test('merging by text gives what merging by values gives', () => {
  fc.assert(
    fc.property(doc, doc, doc, (first, second, third) => {
      const once = mergeDocs(fresh(first), fresh(second))
      assert.equal(once.text, byValues(first, second))
      assert.equal(mergeDocs(once, third).text, byValues(rawJson(once.text), third))
    }),
    { numRuns: runs(3_000) },
  )
})

test('the digest by text is the digest by values', () => {
  fc.assert(
    fc.property(doc, (one) => {
      const expected = hash('sha256', canonicalText(objectOf(one)), 'hex')
      assert.equal(digestOf(fresh(one)).toString('hex'), expected)
    }),
    { numRuns: runs(3_000) },
  )
})

test('a text that is cut short is neither merged nor sorted', () => {
  for (const text of ['{"a":', '{"a', '{"a":1,', '{"a":[']) {
    assert.throws(() => mergeDocs(docOfText(text), docOfText('{"b":1}')))
    assert.throws(() => digestOf(docOfText(text)))
  }
})

/** A Doc with the same text, not yet parsed. */
const fresh = ({ text }: Doc): Doc => docOfText(text)

function byValues(base: Doc, patch: Doc): string {
  const merged: JsonObject = { ...objectOf(base) }
  const added = objectOf(patch)
  for (const name of Object.keys(added)) setMember(merged, name, added[name] as JsonValue)
  return stringifyJson(merged)
}
