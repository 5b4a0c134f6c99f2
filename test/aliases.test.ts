/**
 * Aliases: what `@name` in a definition leads to while tasks run, row by row; that a change takes
 * effect at once, that files may come in any order, and whose right an alias acts by.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject, JsonValue } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/open.ts'
import { go } from './support/processes.ts'
import { tasksOf } from './support/tasks-of.ts'

function processOf(obj_id: number, ...logics: JsonObject[]): JsonObject {
  const nodes: JsonObject[] = [
    { id: 'start', obj_type: 1, condition: { logics: [go('work')] } },
    { id: 'work', obj_type: 0, condition: { logics: [...logics, go('end')] } },
    { id: 'end', obj_type: 2, options: '{"save_task":true}' },
  ]
  return { obj_type: 1, obj_id, title: `Process ${obj_id}`, scheme: { nodes } }
}

const copy = (conv_id: JsonValue): JsonObject => ({
  type: 'api_copy',
  mode: 'create',
  conv_id,
  data: { from: '{{root.conv_id}}' },
  data_type: { from: 'string' },
})
const alias = (short_name: string, obj_to_id: JsonValue) => ({
  short_name,
  obj_to_id,
  obj_to_type: 'conv',
  obj_type: 9,
})

async function made(engine: Engine, conv_id: number): Promise<number> {
  return (await tasksOf(engine, conv_id, { status: 'processed' })).length
}

async function tagOf(engine: Engine, data: object, user?: string): Promise<string> {
  const made = await engine.create({ conv_id: 1, data }, user === undefined ? {} : { user })
  const task = await engine.task({ conv_id: 1, obj_id: made.obj_id as string })
  return task?.status_details?.tag ?? String(task?.status)
}

test('an alias leads where it points at that moment, whichever file brought it', async () => {
  await using engine = await openEngine(':memory:')
  const [put] = await engine.processes.putMany(processOf(1, copy('@next')))
  assert.deepEqual(put?.waits_for, {
    handlers: [],
    variables: [],
    aliases: ['next'],
    processes: [],
  })
  assert.deepEqual(put?.warnings, ['alias @next is not there: import it or set it'])
  assert.equal(await tagOf(engine, {}), 'access_denied')
  assert.deepEqual(await engine.processes.putMany([alias('next', 2)]), [])
  const [again] = await engine.processes.putMany(processOf(1, copy('@next')))
  assert.equal(again?.state, 'unchanged')
  assert.deepEqual(again?.warnings, ['process 2 is not there'])
  assert.equal(await tagOf(engine, {}), 'access_denied')
  await engine.processes.putMany([processOf(2), processOf(3)])
  assert.equal(await tagOf(engine, {}), 'processed')
  assert.deepEqual(await engine.processes.setAlias('@next', 3), {
    name: 'next',
    conv_id: '3',
    state: 'updated',
  })
  assert.equal(await tagOf(engine, {}), 'processed')
  assert.deepEqual([await made(engine, 2), await made(engine, 3)], [1, 1])
  await engine.processes.removeAlias('next')
  assert.equal(await tagOf(engine, {}), 'access_denied')
  assert.deepEqual(await engine.processes.aliases(), [])
  assert.deepEqual((await engine.check()).breaches, [])
})

const call = (conv_id: JsonValue): JsonObject => ({ type: 'api_rpc', conv_id, extra: {} })
const reads = (path: string): JsonObject => ({
  type: 'set_param',
  extra: { got: path },
  extra_type: { got: 'number' },
})

// [a logic of process 1, what the task comes to: a user without a grant, with one, no user]
const rights: [logic: JsonObject, ungranted: string, granted: string, no_user: string][] = [
  [copy('@next'), 'processed', 'processed', 'processed'],
  [copy('{{to}}'), 'access_denied', 'processed', 'access_denied'],
  [call('@answers'), 'processed', 'processed', 'processed'],
  [call('{{to_answers}}'), 'access_denied', 'access_denied', 'access_denied'],
  [reads('{{conv[@state].ref[r].n}}'), 'processed', 'processed', 'processed'],
]

for (const [logic, ungranted, granted, no_user] of rights) {
  test(`the right of ${JSON.stringify(logic)}`, async () => {
    await using engine = await openEngine(':memory:')
    await engine.processes.putMany([
      processOf(1, logic),
      processOf(2),
      processOf(3, { type: 'api_callback' }),
      processOf(4, { type: 'api_rpc_reply', mode: 'key_value', res_data: {}, res_data_type: {} }),
      alias('next', 2),
      alias('state', 3),
      alias('answers', '4'),
    ])
    await engine.create({ conv_id: 3, ref: 'r', data: { n: 7 } })
    for (const user of ['13000', '13001']) {
      await engine.users.add({ id: user })
      await engine.processes.share(1, user)
    }
    await engine.processes.share(2, '13001')
    const data = { to: '@next', to_answers: '@answers' }
    assert.equal(await tagOf(engine, data, '13000'), ungranted)
    assert.equal(await tagOf(engine, data, '13001'), granted)
    assert.equal(await tagOf(engine, data), no_user)
  })
}

test('a task without a user may go where the definition leads by another name', async () => {
  await using engine = await openEngine(':memory:')
  await engine.processes.putMany([processOf(1, copy('{{to}}'), copy('@next')), processOf(2)])
  await engine.processes.setAlias('next', 2)
  for (const to of [2, '2', '@next']) assert.equal(await tagOf(engine, { to }), 'processed')
})

test('an op names its process by id, not by alias', async () => {
  await using engine = await openEngine(':memory:')
  await engine.processes.putMany([processOf(1), alias('one', 1)])
  const result = await engine.create({ conv_id: '@one', data: {} })
  assert.equal(result.proc, 'conv_not_found')
})

test('an alias is set to a process that is there, under a name that can be one', async () => {
  await using engine = await openEngine(':memory:')
  await engine.processes.put(processOf(1))
  await assert.rejects(engine.processes.setAlias('x', 2), { code: 'conv_not_found' })
  for (const name of ['', '@', '@@x', 'a\nb', 'x'.repeat(64)]) {
    await assert.rejects(engine.processes.setAlias(name, 1), { code: 'not_possible' })
  }
  assert.equal((await engine.processes.setAlias('x'.repeat(63), 1)).state, 'created')
})
