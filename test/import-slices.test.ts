/**
 * An import is compiled in slices: the event loop turns while a large definition is read, compiled
 * and hashed, and each definition is compiled once. No slice does more than one node at a time,
 * which is counted, not timed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalText } from '../src/codec/doc-text.ts'
import { parseInSlices, parseJson } from '../src/codec/json.ts'
import { limitsWith } from '../src/core/limits.ts'
import type { JsonObject } from '../src/core/model.ts'
import { atOnce } from '../src/core/slices.ts'
import { hashOf } from '../src/engine/definitions/definitions.ts'
import { openEngine } from '../src/open.ts'
import { compileInSlices } from '../src/process/compile-process.ts'

const nodes_count = 100

function large(): JsonObject {
  const nodes = Array.from({ length: nodes_count }, (_, at) => {
    const keys = Array.from({ length: 300 }, (_, key) => [`k${key}`, `{{a.b${key}}} x`])
    const set = { type: 'set_param', extra: Object.fromEntries(keys), extra_type: {} }
    const logics = [set, { type: 'go', to_node_id: `n${(at + 1) % nodes_count}` }]
    return { id: `n${at}`, obj_type: at === 0 ? 1 : 0, condition: { logics } }
  })
  return { obj_id: 1, n: 1.5, '\u20ac': [1, []], scheme: { nodes, b: {}, a: [] } } as never
}

test('the compiler and the reader pause at each node', () => {
  const text = JSON.stringify(large())
  const pauses = (work: Generator<void, unknown>): number => [...work].length
  assert.ok(pauses(compileInSlices(large(), limitsWith())) >= nodes_count)
  const bounds = { nesting_max: 64, values_max: Number.MAX_SAFE_INTEGER }
  assert.ok(pauses(parseInSlices(text, bounds, 6)) >= nodes_count)
  assert.deepEqual(atOnce(parseInSlices(text, bounds, 6)), parseJson(text))
})

const forms: Readonly<Record<string, (definition: JsonObject) => unknown>> = {
  'a value': (definition) => definition,
  text: (definition) => JSON.stringify(definition),
}

for (const [name, formOf] of Object.entries(forms)) {
  test(`the event loop turns while ${name} is imported, and what is stored is the same`, async () => {
    const engine = await openEngine(':memory:')
    let turns = 0
    let is_on = true
    const turn = (): void => {
      turns++
      if (is_on) setImmediate(turn)
    }
    turn()
    await engine.processes.put(formOf(large()))
    is_on = false
    assert.ok(turns >= 5, `${turns} turns`)
    const { hash, definition_text } = await engine.processes.show(1)
    assert.equal(definition_text, JSON.stringify(large()))
    assert.equal(hash, hashOf(large()))
    assert.equal(canonicalText(JSON.parse(definition_text)), canonicalText(large()))
    assert.equal((await engine.processes.put(formOf(large()))).state, 'unchanged')
    await engine.close()
  })
}
