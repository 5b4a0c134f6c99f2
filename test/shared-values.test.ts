/**
 * A value that holds one object in many places stands for more than a machine holds. Each call that
 * takes a JavaScript value refuses it, and has followed a few of its ways by then. The innermost
 * object is reached in a million ways, half of which read a counted member.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dataTextOf } from '../src/client/sent-op.ts'
import { setData, when } from '../src/define-steps.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/open.ts'
import { by_kind, created, processWith, waiting } from './support/handler-harness.ts'

const levels = 20
const reads_max = 2 ** levels / 2
let reads = 0

function shared(): Record<string, unknown> {
  let value = {}
  for (let level = 0; level < levels; level++) {
    const inner = value
    value = {
      get a() {
        reads++
        return inner
      },
      b: inner,
    }
  }
  return value
}

const refused = async ({ create, modify }: Engine, data: object): Promise<string[]> => {
  await create({ conv_id: 1, ref: 'r', data: {} })
  const results = [await create({ conv_id: 1, data }), await modify({ conv_id: 1, ref: 'r', data })]
  return results.map(({ proc, description }) => `${proc}: ${description}`)
}
const op_refused = 'error: Value is not valid. data holds more than 100000 keys and values'

// [call, what it does with the value, the answer or what it throws]
const rows: [string, (engine: Engine, value: object) => unknown, RegExp | readonly string[]][] = [
  ['create and modify', refused, [op_refused, op_refused]],
  [
    'apply',
    (engine, data) => applied(engine, [{ type: 'create', conv_id: 1, data }]),
    [op_refused],
  ],
  [
    'a filter of tasks',
    (engine, where) => engine.tasks.list({ where } as never),
    /more than 100000/,
  ],
  [
    'a bulk job',
    (engine, data) =>
      engine.tasks.bulk({ action: 'modify', filter: { conv_id: 1 }, data } as never),
    /more than 100000/,
  ],
  ['a variable', (engine, v) => engine.setVariables({ v }), /more than 100000/],
  [
    'a schedule',
    (engine, data) => engine.schedules.put({ id: 's', every_ms: 1_000, conv_id: 1, data }),
    /100000/,
  ],
  ['a definition', (engine, definition) => engine.processes.put(definition), /more than/],
  ['definitions', (engine, definition) => engine.processes.putMany([definition]), /more than/],
  ['the client library', (_engine, data) => dataTextOf(data), /more than 500000/],
  ['a step that sets', (_engine, x) => setData({ x }), /larger than/],
  ['a step that compares', (_engine, x) => when('a', 'eq', x), /larger than/],
]

async function applied(engine: Engine, ops: readonly object[]): Promise<string[]> {
  const results = await engine.apply(ops.map((op) => ({ obj: 'task', ...op })))
  return results.map(({ proc, description }) => `${proc}: ${description}`)
}

for (const [name, call, expected] of rows) {
  test(`${name} refuses what holds one object a million times`, async () => {
    const engine = await openEngine(':memory:')
    await engine.processes.put(processWith(waiting))
    reads = 0
    const answer = (async () => call(engine, shared()))()
    if (expected instanceof RegExp) await assert.rejects(answer, expected)
    else assert.deepEqual(await answer, expected)
    assert.ok(reads < reads_max, `${reads} members were read`)
    await engine.close()
  })
}

test('a handler that returns such a value fails its task', async () => {
  const engine = await openEngine(':memory:')
  engine.handle('db_call', () => shared())
  await engine.processes.put(by_kind)
  const obj_id = await created(engine)
  reads = 0
  const { data, node_id } = await engine.result({ conv_id: 1, obj_id }, { timeout_ms: 10_000 })
  assert.equal(node_id, 'failed')
  assert.match(JSON.stringify(data), /more than 100000 keys and values/)
  assert.ok(reads < reads_max, `${reads} members were read`)
  await engine.close()
})
