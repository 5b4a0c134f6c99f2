/**
 * The steps of logics: what funs, patterns and digests may compute in one logic, and that what they
 * compute counts as moves, so that a task which computes much lets others have their turn.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { nextTurn } from '../src/core/clock.ts'
import type { JsonObject, Task } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/open.ts'

const list = Array.from({ length: 400 }, (_, at) => at)
/** About 320,000 steps. */
const loop = '$.filter(fun(X) -> [1 || _ <- X, _ <- X, false] == [] end, {{a}})'
const plus = '+'.repeat(400)
const endless_pattern = '(a+)+\\1b'
const heavy_pattern = '(x+x+)+(?=y)'

function setParams(count: number, value: string): JsonObject {
  const keys = Array.from({ length: count }, (_, at) => `k${at}`)
  const extra = Object.fromEntries(keys.map((key) => [key, value]))
  return { type: 'set_param', extra, extra_type: {} }
}

function conditions(consts: readonly string[]): JsonObject {
  const rows = consts.map((pattern) => ({ param: 's', fun: 'regexp', const: pattern }))
  return { type: 'go_if_const', to_node_id: 'end', conditions: rows }
}

/** `count` nodes with the logic, one after another. */
function chain(count: number, logic: JsonObject): JsonObject[] {
  const nodes = Array.from({ length: count }, (_, at) => {
    const to_node_id = at === count - 1 ? 'end' : `n${at + 1}`
    return { id: `n${at}`, obj_type: 0, condition: { logics: [logic, { type: 'go', to_node_id }] } }
  })
  const start = { logics: [{ type: 'go', to_node_id: 'n0' }] }
  return [
    { id: 'start', obj_type: 1, condition: start },
    ...nodes,
    { id: 'end', obj_type: 2, options: { save_task: true } },
  ]
}

async function openWith(nodes: readonly JsonObject[], params: readonly JsonObject[] = []) {
  const engine = await openEngine(':memory:')
  const scheme = { nodes: [...nodes] }
  await engine.processes.put({ obj_type: 1, obj_id: 1, conv_type: 'process', params, scheme })
  return engine
}

async function atRest(engine: Engine, obj_id: string | undefined): Promise<Task | undefined> {
  for (;;) {
    await nextTurn()
    const task = await engine.task({ conv_id: '1', obj_id: obj_id as string })
    if (task?.status !== 'processing') return task
  }
}

type Steps = readonly [what: string, logic: JsonObject, data: JsonObject, tag: string | undefined]

describe('a logic', () => {
  // biome-ignore format: a table
  const rows: readonly Steps[] = [
    ['has steps for three funs',          setParams(3, loop),  { a: [list] },         undefined],
    ['fails where four take more',        setParams(4, loop),  { a: [list] },         'set_param_wrong_convert_param'],
    ['fails where digests take more',     setParams(500, '$.md5_hex({{a}})'), { a: 'x'.repeat(100_000) }, 'set_param_wrong_convert_param'],
    ['has steps for many patterns',       conditions(Array(100).fill('^x(?=x)')), { s: 'x'.repeat(900) }, undefined],
    ['fails where a pattern takes more',  conditions([endless_pattern]), { s: 'a'.repeat(40) }, 'go_if_const_executing_error'],
    ['fails where all patterns take more', conditions(Array(900).fill('x{99}$')), { s: 'x'.repeat(900) }, 'go_if_const_executing_error'],
    ['pays for what it compiles',         conditions(Array(900).fill('x*{{t}}y*')), { s: `x${plus}y`, t: plus }, 'go_if_const_executing_error'],
  ]
  for (const [what, logic, data, tag] of rows) {
    test(what, async () => {
      await using engine = await openWith(chain(1, logic))
      const [made] = await engine.apply([{ type: 'create', obj: 'task', conv_id: '1', data }])
      const task = await atRest(engine, made?.obj_id)
      assert.equal(task?.status_details?.tag, tag)
      assert.equal(task?.status, tag === undefined ? 'processed' : 'failed')
    })
  }
})

describe('what tasks compute', () => {
  test('counts as moves: the rest is done in later transactions', async () => {
    await using engine = await openWith(chain(8, setParams(1, loop)))
    const ops = ['r', 's'].flatMap((ref) => [
      { type: 'create', obj: 'task', conv_id: '1', ref, data: { a: [list] } },
      { type: 'show', obj: 'task', conv_id: '1', ref },
    ])
    const results = await engine.apply(ops)
    const shown = results.map(({ task }) => task && [task.status, task.node_id])
    assert.deepEqual(shown.filter(Boolean), Array(2).fill(['processing', 'n0']))
    assert.equal((await atRest(engine, results[2]?.obj_id))?.status, 'processed')
  })

  test('is not what makes a task loop without end', async () => {
    await using engine = await openWith(chain(40, setParams(1, loop)))
    const { obj_id } = await engine.create({ conv_id: '1', data: { a: [list] } })
    assert.equal((await atRest(engine, obj_id))?.status, 'processed')
  })

  test('holds for the patterns of parameters', async () => {
    const names = ['a', 'b']
    const params = names.map((name) => ({ name, flags: ['input'], regex: heavy_pattern }))
    await using engine = await openWith(chain(1, setParams(1, '')), params)
    const data = { a: 'x'.repeat(60), b: 'x' }
    const op = { type: 'create', obj: 'task', conv_id: '1', data }
    const [refused] = await engine.apply([op])
    assert.equal(refused?.proc, 'wrong_validate_params')
    assert.match(refused?.description ?? '', /the pattern takes more than 1000000 steps/)
  })
})
