/**
 * What `traceparent` may hold (W3C Trace Context): each row has a text, and the context in it or
 * undefined where it is ignored. A malformed one costs no more than its length.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSampled, parseTraceparent, traceparentOf } from '../src/core/tracing.ts'

const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
const span_id = '00f067aa0ba902b7'
const good = `00-${trace_id}-${span_id}-01`
const sampled = { trace_id, span_id, flags: 1 }
const unsampled = { trace_id, span_id, flags: 0 }

// biome-ignore format: a table
const rows: readonly (readonly [string, string | undefined, object | undefined])[] = [
  ['none',                            undefined,                                   undefined],
  ['a sampled one',                   good,                                        sampled],
  ['an unsampled one',                `00-${trace_id}-${span_id}-00`,              unsampled],
  ['flags of a later version',        `00-${trace_id}-${span_id}-ff`,              sampled],
  ['a later version',                 `cc-${trace_id}-${span_id}-01`,              sampled],
  ['a later version with more',       `cc-${trace_id}-${span_id}-01-what-ever`,    sampled],
  ['a later version that runs on',    `cc-${trace_id}-${span_id}-01x`,             undefined],
  ['version 00 with more',            `${good}-00`,                                undefined],
  ['version ff',                      `ff-${trace_id}-${span_id}-01`,              undefined],
  ['empty',                           '',                                          undefined],
  ['a trace id of zeros',             `00-${'0'.repeat(32)}-${span_id}-01`,        undefined],
  ['a span id of zeros',              `00-${trace_id}-${'0'.repeat(16)}-01`,       undefined],
  ['upper case',                      good.toUpperCase(),                          undefined],
  ['a short trace id',                `00-${trace_id.slice(1)}-${span_id}-01`,     undefined],
  ['a long trace id',                 `00-${trace_id}0-${span_id}-01`,             undefined],
  ['no hex',                          `00-${'g'.repeat(32)}-${span_id}-01`,        undefined],
  ['no flags',                        `00-${trace_id}-${span_id}`,                 undefined],
  ['twice, as node joins headers',    `${good}, ${good}`,                          undefined],
  ['twice, in a later version',       `cc${good.slice(2)}-x, ${good}`,             undefined],
  ['a space in front',                ` ${good}`,                                  undefined],
  ['10 kB',                           `cc${good.slice(2)}-${'x'.repeat(10_000)}`,  undefined],
  ['10 kB of zeros',                  '0'.repeat(10_000),                          undefined],
]

for (const [name, text, expected] of rows) {
  test(`${name}: ${expected === undefined ? 'ignored' : 'read'}`, () => {
    const context = parseTraceparent(text)
    assert.deepEqual(context, expected)
    if (context === undefined) return
    assert.equal(isSampled(context), context.flags === 1)
    assert.deepEqual(parseTraceparent(traceparentOf(context)), context)
  })
}
