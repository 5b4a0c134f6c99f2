/**
 * Keys that are one escaped character. JSON.parse of Node 24 and 26 reads such a key as another one
 * that an object parsed before had in its place. No reader of JSON here may do so.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalText } from '../src/codec/doc-text.ts'
import {
  docOfText,
  objectOf,
  parseJson,
  parsePlain,
  rawJson,
  stringifyJson,
} from '../src/codec/json.ts'
import { parseExact } from '../src/codec/json-exact.ts'
import { decodeRecord } from '../src/codec/records.ts'
import { openEngine } from '../src/open.ts'
import { inNode } from './support/code-setup.ts'
import { parseReference } from './support/json-reference.ts'
import { runs } from './support/short-run.ts'

/** Parsed by those in this order, the inner key of the second becomes `\\`. */
const first = '{"\\n":0,"\\\\":{"\\"":{"\\"":0,"\\\\":0}}}'
const second = '{"\\"":{"\\"":0,"\\n":{"\\n":0,"\\"":0}}}'
const bounds = { nesting_max: 64, values_max: 100 }

/** [reader, its function] */
const readers: readonly (readonly [string, (text: string) => unknown])[] = [
  ['parseJson', (text) => parseJson(text)],
  ['parseExact', (text) => parseExact(text, bounds)],
  ['parsePlain', (text) => parsePlain(text)],
  ['a Doc', (text) => objectOf(docOfText(text))],
  ['a record', (text) => decodeRecord(Buffer.from(text))],
]

for (const [name, read] of readers) {
  test(`${name} reads each key as it was written`, () => {
    for (const text of [
      first,
      second,
      second.replaceAll('\\n', '\\u000a').replaceAll(':', ' \t:'),
    ]) {
      const exact = parseReference(text, bounds)
      assert.deepEqual(read(text), exact)
      assert.equal(canonicalText(read(text) as typeof exact), canonicalText(exact))
    }
  })
}

test('keys are read as written, whatever objects were read before', () => {
  const name = fc.constantFrom('"\\n"', '"\\\\"', '"\\""', '"\\t"', '"\\u002f"', '"\\b"', '"a"')
  const { object } = fc.letrec<{ object: string }>((tie) => ({
    object: fc.oneof(
      { maxDepth: 4 },
      fc.constant('0'),
      fc
        .uniqueArray(fc.tuple(name, tie('object')), { selector: ([key]) => key, maxLength: 3 })
        .map((members) => `{${members.map(([key, value]) => `${key}:${value}`).join()}}`),
    ),
  }))
  fc.assert(
    fc.property(object, (text) => {
      const exact = parseReference(text, bounds)
      assert.equal(stringifyJson(parseJson(text)), stringifyJson(exact))
      assert.deepEqual(parsePlain(text), exact)
    }),
    { numRuns: runs(2_000) },
  )
})

test('conditions, code and the data of a task have the keys that were sent', async () => {
  const is_second = { param: 'd', fun: 'eq', const: second, cast: 'object' }
  const to = (to_node_id: string) => ({ type: 'go', to_node_id })
  const node = (id: string, ...logics: object[]) => ({ id, obj_type: 0, condition: { logics } })
  const engine = await openEngine(':memory:')
  await engine.processes.put({
    obj_id: 1,
    scheme: {
      nodes: [
        {
          ...node('start', { ...to('code'), type: 'go_if_const', conditions: [is_second] }),
          obj_type: 1,
        },
        node(
          'code',
          { type: 'api_code', lang: 'js', src: 'data.seen = JSON.stringify(data.d)' },
          to('done'),
        ),
        { ...node('done'), obj_type: 2, options: '{"save_task":true}' },
      ],
    },
  })
  await engine.create({ conv_id: 1, data: rawJson(`{"d":${first}}`) })
  const { obj_id = '' } = await engine.create({ conv_id: 1, data: rawJson(`{"d":${second}}`) })
  const { data } = await inNode(engine, obj_id, 'done')
  assert.deepEqual(data, { d: parseReference(second, bounds), seen: second })
  await engine.close()
})
