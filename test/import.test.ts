/**
 * Files with several definitions: which ids are replaced and which are not, row by row; that all of
 * a file is stored or nothing; and that an export imports as the same definition.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawJson } from '../src/codec/json.ts'
import type { JsonObject, JsonValue } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/open.ts'
import { exportItems } from '../src/process/export-items.ts'
import { go } from './support/processes.ts'
import { tasksOf } from './support/tasks-of.ts'

const sourcesOf = (value: JsonValue) => [{ name: undefined, value }]

function processOf(obj_id: JsonValue, ...logics: JsonObject[]): JsonObject {
  const nodes: JsonObject[] = [
    { id: 'start', obj_type: 1, condition: { logics: [go('work')] } },
    { id: 'work', obj_type: 0, condition: { logics: [...logics, go('end')] } },
    { id: 'end', obj_type: 2, options: '{"save_task":true}' },
  ]
  return { obj_type: 1, obj_id, title: `Process ${String(obj_id)}`, scheme: { nodes } }
}

const copy = (conv_id: JsonValue): JsonObject => ({ type: 'api_copy', mode: 'create', conv_id })
const sets = (value: string): JsonObject => ({ type: 'set_param', extra: { x: value } })

function logicsOf(definition: JsonObject): JsonObject[] {
  const { nodes } = definition.scheme as { nodes: { condition: { logics: JsonObject[] } }[] }
  return nodes[1]?.condition.logics.slice(0, -1) as JsonObject[]
}

const map = { '1': '101', '2': 'two', '@third': '3' }

// [a logic of process 1, the logic after mapping 1 → 101 and 2 → two]
const rows: [logic: JsonObject, becomes: JsonObject][] = [
  [copy(1), copy(101)],
  [copy('1'), copy('101')],
  [copy(2), copy('two')],
  [copy(12), copy(12)],
  [copy('@second'), copy('@second')],
  [copy('@third'), copy('3')],
  [copy('{{conv[1].ref[a].id}}'), copy('{{conv[101].ref[a].id}}')],
  [copy('{{to}}'), copy('{{to}}')],
  [sets('{{conv[1].ref[a].b}}'), sets('{{conv[101].ref[a].b}}')],
  [
    sets('a {{ conv[ 1 ].ref[a].b }} and {{conv[2].ref[{{conv[1].ref[b].c}}].d}}'),
    sets('a {{ conv[ 101 ].ref[a].b }} and {{conv[two].ref[{{conv[101].ref[b].c}}].d}}'),
  ],
  [sets('{{conv[@second].ref[a].b}}'), sets('{{conv[@second].ref[a].b}}')],
  [sets('{{conv[@third].ref[a].b}}'), sets('{{conv[3].ref[a].b}}')],
  [sets('{{conv[{{to}}].ref[a].b}}'), sets('{{conv[{{to}}].ref[a].b}}')],
  [sets('$.math({{conv[1].ref[a].b}}+1)'), sets('$.math({{conv[101].ref[a].b}}+1)')],
  [
    sets('{{a.conv[1].b}}, conv[1].ref[a].b and 1'),
    sets('{{a.conv[1].b}}, conv[1].ref[a].b and 1'),
  ],
  [
    { type: 'set_param', extra: { '{{conv[1].ref[a].k}}': '1' }, extra_type: {} },
    { type: 'set_param', extra: { '{{conv[101].ref[a].k}}': '1' }, extra_type: {} },
  ],
  [
    { type: 'go_if_const', conditions: [{ param: 'conv[1].ref[a].b', const: '1' }] },
    { type: 'go_if_const', conditions: [{ param: 'conv[101].ref[a].b', const: '1' }] },
  ],
  [
    { type: 'api_code', lang: 'js', src: 'data.x = "{{conv[1].ref[a].b}}"' },
    { type: 'api_code', lang: 'js', src: 'data.x = "{{conv[1].ref[a].b}}"' },
  ],
  [
    { type: 'set_param', extra: { conv_id: '1' } },
    { type: 'set_param', extra: { conv_id: '1' } },
  ],
]

const aliases: JsonObject[] = [
  { short_name: 'second', obj_to_id: 2, obj_to_type: 'conv', title: 'Second' },
  { short_name: 'elsewhere', obj_to_id: 777, obj_to_type: 'conv' },
  { short_name: 'nobody', obj_to_id: null },
  { short_name: '@third', obj_to_id: 1 },
  { short_name: 'instance', obj_to_id: 5, obj_to_type: 'instance' },
  { obj_type: 2, obj_id: 9, title: 'A dashboard', scheme: { charts: [] } },
]

for (const [logic, becomes] of rows) {
  test(`renames ${JSON.stringify(logic)}`, () => {
    const file: JsonValue = [processOf(1, logic), processOf(2), ...aliases]
    const { definitions, aliases: named, mistakes } = exportItems(sourcesOf(file), { map })
    assert.deepEqual(mistakes, [])
    assert.deepEqual(
      named.map(({ name, conv_id }) => [name, conv_id]),
      [
        ['second', 'two'],
        ['elsewhere', '777'],
        ['third', '3'],
      ],
    )
    const [first, second] = definitions.map(({ definition }) => definition)
    assert.deepEqual(logicsOf(first as JsonObject), [becomes])
    assert.deepEqual([first?.obj_id, second?.obj_id], [101, 'two'])
  })
}

test('a file in which nothing is replaced stays the same objects', () => {
  const file = [processOf(1, copy(2), sets('{{conv[2].ref[a].b}}')), processOf('2')]
  const { definitions } = exportItems(sourcesOf(file))
  for (const [at, { definition }] of definitions.entries()) assert.equal(definition, file[at])
})

test('a map may give an alias, and swap two processes', () => {
  const file = [processOf(1, copy('@x')), processOf(2, copy(1))]
  const { definitions, mistakes } = exportItems(sourcesOf(file), {
    map: { '1': '2', '2': '1', '@x': '9' },
  })
  assert.deepEqual(mistakes, [])
  assert.deepEqual(
    definitions.map(({ definition }) => [definition.obj_id, logicsOf(definition)[0]?.conv_id]),
    [
      [2, '9'],
      [1, 2],
    ],
  )
})

// [a file, a map, mistakes]
const bad: [file: JsonValue, map: Record<string, string>, mistakes: string[]][] = [
  [[], {}, ['there is no definition']],
  [[{ obj_type: 0, title: 'a folder' }], {}, ['there is no definition']],
  [[processOf(1), 7], {}, ['definition 2: no JSON object']],
  [[{ short_name: '@@x', obj_to_id: 1 }], {}, ['definition 1: "@@x" cannot name an alias']],
  [
    [{ short_name: 'x'.repeat(64), obj_to_id: 1 }],
    {},
    [`definition 1: "${'x'.repeat(64)}" cannot name an alias`],
  ],
  [processOf(1), { '2': '3' }, ['nothing is or names "2", to be mapped']],
  [processOf(1), { constructor: '3' }, ['nothing is or names "constructor", to be mapped']],
]

for (const [file, given, mistakes] of bad) {
  test(`refuses a file: ${mistakes[0]}`, () => {
    const map = given as Record<string, string> | undefined
    assert.deepEqual(exportItems(sourcesOf(file), { map }).mistakes, mistakes)
  })
}

async function ids(engine: Engine): Promise<string[]> {
  return (await engine.processes.list()).map(({ conv_id }) => conv_id).sort()
}

test('an export of processes that name each other runs under new ids', async () => {
  const engine = await openEngine(':memory:')
  const file = [
    { obj_type: 0, obj_id: 5, title: 'Folder' },
    processOf(1, {
      ...copy('@second'),
      data: { from: '{{root.conv_id}}' },
      data_type: {},
      ref: 'x',
    }),
    processOf(2),
    ...aliases,
  ]
  const results = await engine.processes.putMany(JSON.stringify(file), { map })
  assert.deepEqual(
    results.map(({ conv_id, state }) => [conv_id, state]),
    [
      ['101', 'created'],
      ['two', 'created'],
    ],
  )
  await engine.create({ conv_id: 101, data: {} })
  const [made] = await tasksOf(engine, 'two', { status: 'processed' })
  assert.deepEqual(made?.data, { from: 101 })
  const again = await engine.processes.putMany(file, { map })
  assert.deepEqual(
    again.map(({ state }) => state),
    ['unchanged', 'unchanged'],
  )
  await engine.close()
})

test('processes.put takes one process and nothing else', async () => {
  await using engine = await openEngine(':memory:')
  for (const item of [{ obj_type: 0, list: [processOf(1)] }, aliases[0] as JsonObject]) {
    await assert.rejects(engine.processes.put(item), { code: 'bad_definition' })
  }
  assert.deepEqual(await ids(engine), [])
  assert.deepEqual(await engine.processes.aliases(), [])
})

test('an export imports with the same hash', async () => {
  const engine = await openEngine(':memory:')
  const other = await openEngine(':memory:')
  const file = [
    processOf(1, copy('@second'), sets('{{conv[2].ref[a].b}}')),
    processOf(2),
    ...aliases,
  ]
  const exact = rawJson('{"definitions":[{"number":1.10,"big":123456789012345678901}]}')
  await engine.processes.putMany([{ ...file[0], extra: exact }, ...file.slice(1)], { map })
  for (const conv_id of ['101', 'two']) {
    const { definition_text, hash } = await engine.processes.show(conv_id)
    await other.processes.putMany(definition_text)
    assert.equal((await other.processes.show(conv_id)).hash, hash)
  }
  assert.match((await other.processes.show(101)).definition_text, /1\.10.*123456789012345678901/)
  await engine.close()
  await other.close()
})

test('a mistake or a refusal for one definition stores none', async () => {
  const engine = await openEngine(':memory:')
  const rests = processOf(3, { type: 'api_callback' })
  await engine.processes.put(rests)
  await engine.create({ conv_id: 3, data: {} })
  const without = JSON.parse(JSON.stringify(rests).replaceAll('"work"', '"other"')) as JsonObject
  const two = JSON.parse(JSON.stringify(processOf(2, copy(1)))) as JsonObject
  // [definitions, options, the rejection]
  const refused: [unknown, object, object][] = [
    [
      [processOf(1), { ...two, scheme: {} }],
      {},
      { code: 'bad_definition', message: /definition 2: / },
    ],
    [[processOf(1), processOf('1')], {}, { code: 'bad_definition', message: /a second one of 1/ }],
    [[processOf(1), two], { map: { '2': '1' } }, { message: /a second one of 1/ }],
    [[processOf(1), two], { conv_id: 9 }, { message: /none can be given an id/ }],
    [[processOf(1), processOf(null)], {}, { message: /definition 2: obj_id is missing/ }],
    [[processOf(1), without], {}, { code: 'tasks_in_node', message: /drops node "work"/ }],
    [[processOf(1), without], { moves: { work: 'x' } }, { message: /move to "x": no such node/ }],
    [[processOf(1), processOf('x'.repeat(65))], {}, { code: 'bad_definition' }],
    [[processOf(1), 'text'], {}, { message: /definition 2: no JSON object/ }],
    [
      [...aliases, processOf(1), 7, { ...two, scheme: {} }],
      {},
      { message: /definition 9: scheme: nodes was expected to be an array, and 2 more/ },
    ],
    ['[{"obj_id":1', {}, { code: 'format_error' }],
    [7, {}, { code: 'bad_definition' }],
  ]
  for (const [definitions, options, says] of refused) {
    await assert.rejects(engine.processes.putMany(definitions, options), says)
    assert.deepEqual(await ids(engine), ['3'])
  }
  await engine.processes.putMany([processOf(1), without], { moves: { work: 'other' } })
  assert.deepEqual(await ids(engine), ['1', '3'])
  await engine.close()
})

test('the mistakes of all definitions are reported at once', async () => {
  const engine = await openEngine(':memory:')
  const file = [processOf(1, { type: 'odd' }), processOf(2, { type: 'even' })]
  const error = await engine.processes.putMany(file).catch((one: unknown) => one)
  assert.deepEqual((error as { mistakes: string[] }).mistakes, [
    'definition 1: nodes[1] "work": logics[0] type "odd" is no logic of this release',
    'definition 2: nodes[1] "work": logics[0] type "even" is no logic of this release',
  ])
  await engine.close()
})

test('a task that is moved to a node with a mistake has failed there', async () => {
  await using engine = await openEngine(':memory:')
  const waits = processOf(1, { type: 'api_callback' })
  await engine.processes.put(waits)
  await engine.create({ conv_id: 1, ref: 'x', data: { a: 1 } })
  const { nodes } = waits.scheme as { nodes: JsonObject[] }
  const lost = {
    id: 'lost',
    obj_type: 0,
    condition: { logics: [{ type: 'go', to_node_id: null }] },
  }
  const [start, , end] = nodes as [JsonObject, JsonObject, JsonObject]
  const after = [{ ...start, condition: { logics: [go('end')] } }, lost, end]
  const put = { ...waits, scheme: { nodes: after } }
  const { warnings } = await engine.processes.put(put, { moves: { work: 'lost' } })
  const told = 'nodes[1] "lost": to_node_id null is no node, and a task that is moved here fails'
  assert.ok(warnings.includes(told), String(warnings))
  await engine.apply([{ type: 'modify', obj: 'task', conv_id: 1, ref: 'x', data: { b: 2 } }])
  const task = await engine.task({ conv_id: 1, ref: 'x' })
  assert.deepEqual([task?.node_id, task?.status, task?.data], ['lost', 'failed', { a: 1, b: 2 }])
  assert.equal(task?.status_details?.tag, 'bad_definition')
  assert.deepEqual((await engine.check()).breaches, [])
})

test('a process without nodes is a draft until an import brings nodes', async () => {
  await using engine = await openEngine(':memory:')
  const empty = { ...processOf(7), scheme: { nodes: [], web_settings: [[], []] } }
  const [put] = await engine.processes.putMany([empty, processOf(1, copy(7))])
  assert.deepEqual(put?.warnings, ['scheme: there are no nodes, so it is stored as a draft'])
  const status = async () => (await engine.processes.show(7)).status
  assert.equal(await status(), 'draft')
  assert.equal((await engine.processes.list())[1]?.status, 'draft')
  const refusal = 'conveyor is not active: a draft without nodes'
  for (const op of [{ type: 'create' }, { type: 'modify', ref: 'x' }]) {
    const [result] = await engine.apply([{ ...op, obj: 'task', conv_id: 7, data: {} }])
    assert.deepEqual([result?.proc, result?.description], ['conveyor_is_not_active', refusal])
  }
  const { obj_id } = await engine.create({ conv_id: 1, data: {} })
  const task = await engine.task({ conv_id: 1, obj_id: obj_id as string })
  assert.deepEqual(task?.status_details, { tag: 'conveyor_is_not_active', description: refusal })
  assert.equal((await engine.processes.put(empty)).state, 'unchanged')

  await engine.processes.pause(7)
  const waits = processOf(7, { type: 'api_callback' })
  assert.equal((await engine.processes.put(waits)).state, 'updated')
  assert.equal(await status(), 'paused')
  await engine.processes.resume(7)
  await engine.create({ conv_id: 7, ref: 'x', data: {} })
  await assert.rejects(engine.processes.put(empty), { code: 'tasks_in_node' })
  const moves = { work: 'end' }
  await assert.rejects(engine.processes.put(empty, { moves }), { code: 'bad_definition' })
  await engine.tasks.cancel({ conv_id: 7, ref: 'x' })
  assert.equal((await engine.processes.put(empty)).state, 'updated')
  assert.equal(await status(), 'draft')
})
