/**
 * Stages: an alias or a variable belongs to the stage of the folder that it stands in, and a name
 * in a definition is looked up in its logic's stage or its own, then among those of no stage.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject, JsonValue } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import type { ExportFile } from '../src/engine/api/process-api.ts'
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

const copy = (conv_id: string, more: JsonObject = {}): JsonObject => ({
  ...{ type: 'api_copy', mode: 'create', conv_id, data: {}, data_type: {} },
  ...more,
})
const sets = (got: string): JsonObject => ({
  ...{ type: 'set_param', extra: { got }, extra_type: { got: 'string' } },
})
const alias = (short_name: string, obj_to_id: JsonValue, more: JsonObject = {}) => ({
  ...{ short_name, obj_to_id, obj_to_type: 'conv', obj_type: 9 },
  ...more,
})
const variable = (short_name: string, value: string, obj_id: number) => ({
  ...{ short_name, value, obj_id, data_type: 'raw', env_var_type: 'visible' },
})

const file = (name: string, value: unknown): ExportFile => ({
  name,
  text: JSON.stringify(value),
  is_found: true,
})
const dev = 'x.zip/5_shop.project/7_dev.stage'
const prod = 'x.zip/5_shop.project/8_prod.stage'

/** Two stages with the same names, and each a process that uses them: 1 in dev, 2 in prod. */
const two: readonly ExportFile[] = [
  file(`${dev}/7_dev.stage.json`, {
    obj_type: 6,
    obj_id: 7,
    title: 'Development',
    short_name: 'dev',
  }),
  file(`${dev}/_ALIASES_.json`, [alias('next', 11), alias('only-dev', 11)]),
  file(`${dev}/_ENV_VARS_.json`, [variable('url', 'dev url', 608)]),
  file(`${dev}/F_1.folder/1_a.conv.json`, processOf(1, sets('{{env_var[@url]}}'), copy('@next'))),
  file(`${dev}/11_b.conv.json`, processOf(11)),
  file(`${prod}/_ALIASES_.json`, [alias('next', 12)]),
  file(`${prod}/_ENV_VARS_.json`, [variable('url', 'prod url', 609)]),
  file(`${prod}/2_a.conv.json`, processOf(2, sets('{{env_var[@url]}}'), copy('@next'))),
  file(`${prod}/12_b.conv.json`, processOf(12)),
]

const made = async (engine: Engine, conv_id: number): Promise<number> =>
  (await tasksOf(engine, conv_id, { status: 'processed' })).length

async function ran(engine: Engine, conv_id: number): Promise<{ got: unknown; tag: unknown }> {
  const { obj_id } = await engine.create({ conv_id, data: {} })
  const task = await engine.task({ conv_id, obj_id: obj_id as string })
  return { got: (task as { data: JsonObject }).data.got, tag: task?.status_details?.tag }
}

describe('two stages with the same names', () => {
  test('each definition reads those of its own', async () => {
    await using engine = await openEngine(':memory:')
    const result = await engine.processes.importFiles(two)
    assert.deepEqual(
      result.aliases.map(({ name, conv_id, stage_id, state }) => [name, conv_id, stage_id, state]),
      [
        ['next', '11', '7', 'created'],
        ['only-dev', '11', '7', 'created'],
        ['next', '12', '8', 'created'],
      ],
    )
    assert.deepEqual(
      result.processes.flatMap(({ warnings }) => warnings),
      [],
    )
    assert.deepEqual(await ran(engine, 1), { got: 'dev url', tag: undefined })
    assert.deepEqual(await ran(engine, 2), { got: 'prod url', tag: undefined })
    assert.deepEqual([await made(engine, 11), await made(engine, 12)], [1, 1])
    const again = await engine.processes.importFiles(two)
    const states = [...again.processes, ...again.aliases, ...again.variables].map(
      (one) => one.state,
    )
    assert.deepEqual(new Set(states), new Set(['unchanged']))
    assert.deepEqual((await engine.check()).breaches, [])
  })

  test('a new version keeps the stage, and only an import changes it', async () => {
    await using engine = await openEngine(':memory:')
    await engine.processes.importFiles(two)
    await engine.processes.put(processOf(1, sets('{{env_var[@url]}}!')))
    assert.equal((await ran(engine, 1)).got, 'dev url!')
    const moved = file(`${prod}/1_a.conv.json`, processOf(1, sets('{{env_var[@url]}}!')))
    const { processes } = await engine.processes.importFiles([moved])
    assert.deepEqual([processes[0]?.state, processes[0]?.version], ['updated', 2])
    assert.equal((await ran(engine, 1)).got, 'prod url!')
  })

  /** [logic of process 1, who gets a task; 0 for nobody] */
  const rows: readonly (readonly [JsonObject, number])[] = [
    [copy('@next'), 11],
    [copy('@next', { project_id: 5, stage_id: 8 }), 12],
    [copy('@next', { stage_id: '8' }), 12],
    [copy('@next', { stage_id: 0 }), 11],
    [copy('@next', { stage_id: null }), 11],
    [copy('@next', { stage_id: 99 }), 13],
    [copy('{{to}}', { stage_id: 8 }), 0],
    [copy('@only-dev', { stage_id: 8 }), 0],
    [copy('@shared'), 13],
    [copy('@shared', { stage_id: 8 }), 13],
    [copy('12', { stage_id: 7 }), 12],
  ]
  for (const [logic, to] of rows) {
    test(`${logic.conv_id} with stage ${JSON.stringify(logic.stage_id)} leads to ${to}`, async () => {
      await using engine = await openEngine(':memory:')
      await engine.processes.importFiles(two)
      await engine.processes.putMany([processOf(13), alias('shared', 13), alias('next', 13)])
      await engine.processes.put(processOf(1, logic))
      const { obj_id } = await engine.create({ conv_id: 1, data: { to: '@next' } })
      const task = await engine.task({ conv_id: 1, obj_id: obj_id as string })
      const tag = task?.status_details?.tag
      assert.equal(tag, to === 0 ? 'access_denied' : undefined)
      if (to === 0)
        assert.match(String(task?.status_details?.description), /conv_id: @(only-dev|next)$/)
      for (const conv_id of [11, 12, 13]) {
        assert.equal(await made(engine, conv_id), conv_id === to ? 1 : 0, String(conv_id))
      }
    })
  }

  test('a handler for an alias has the nodes of the process that it is in each stage', async () => {
    await using engine = await openEngine(':memory:', {
      handlers: { '@next/work': () => ({ got: 'handled' }) },
    })
    const waits = { type: 'api_callback' }
    const files = two.map((one) =>
      /1[12]_b/.test(one.name)
        ? file(one.name, {
            ...processOf(Number(/(1[12])_b/.exec(one.name)?.[1]), waits),
          })
        : one,
    )
    await engine.processes.importFiles(
      files.map((one) => ({
        ...one,
        text: one.text.replace('"id":"work"', '"id":"work","title":"work"'),
      })),
    )
    for (const conv_id of [11, 12]) {
      const { obj_id } = await engine.create({ conv_id, data: {} })
      const task = await engine.result({ conv_id, obj_id: obj_id as string })
      assert.equal((task.data as JsonObject).got, 'handled')
    }
  })
})

describe('a variable by its number', () => {
  /** [template, what process 1 of stage 7 gets] */
  const rows = [
    ['{{env_var[608]}}', 'dev url'],
    ['{{env_var[609]}}', 'prod url'],
    ['{{env_var[{{n}}]}}', 'prod url'],
    ['{{env_var[@url]}}', 'dev url'],
    ['{{env_var[610]}}', ''],
    ['{{env_var[@608]}}', ''],
  ] as const
  for (const [template, got] of rows) {
    test(template, async () => {
      await using engine = await openEngine(':memory:')
      await engine.processes.importFiles(two)
      await engine.processes.put(processOf(1, sets(template)))
      const { obj_id } = await engine.create({ conv_id: 1, data: { n: 609 } })
      const { data } = (await engine.task({ conv_id: 1, obj_id: obj_id as string })) ?? {}
      assert.equal((data as JsonObject).got ?? '', got)
    })
  }

  test('without a value is named at import, a given one comes first', async () => {
    await using engine = await openEngine(':memory:', { variables: { url: 'given' } })
    await engine.processes.importFiles(two)
    const put = await engine.processes.put(processOf(1, sets('{{env_var[608]}}{{env_var[77]}}')))
    assert.deepEqual(put.waits_for.variables, ['77'])
    assert.deepEqual(put.warnings, ['variable 77 has no value'])
    assert.equal((await ran(engine, 1)).got, 'given')
  })

  test('is one variable’s: in one import, and against the file', async () => {
    await using engine = await openEngine(':memory:')
    const other = file(`${prod}/_ENV_VARS_.json`, [variable('host', 'h', 608)])
    await assert.rejects(
      engine.processes.importFiles([...two.slice(0, 5), other]),
      ({ message }) => {
        assert.match(
          message,
          /variable 608 is @url in .*7_dev.*: definition 1 and @host in .*8_prod/,
        )
        return true
      },
    )
    await engine.processes.importFiles(two)
    await assert.rejects(engine.processes.importFiles([other]), {
      code: 'bad_definition',
      message: /8_prod.*: variable 608 is @url of stage 7 in the file already/,
    })
  })
})

describe('choosing a stage of an import', () => {
  /** [choice, ids of the processes, [alias, stage]] */
  const rows: readonly (readonly [object, string[], [string, string | undefined][]])[] = [
    [{ stage: '8' }, ['12', '2'], [['next', '8']]],
    [{ stage: '8_prod' }, [], []],
    [{ stage: 'prod' }, ['12', '2'], [['next', '8']]],
    [
      { stage: 'dev', project: '5' },
      ['1', '11'],
      [
        ['next', '7'],
        ['only-dev', '7'],
      ],
    ],
    [
      { stage: 'Development', project: 'shop' },
      ['1', '11'],
      [
        ['next', '7'],
        ['only-dev', '7'],
      ],
    ],
    [
      { project: 'shop' },
      ['1', '11', '12', '2'],
      [
        ['next', '7'],
        ['only-dev', '7'],
        ['next', '8'],
      ],
    ],
  ]
  for (const [choice, ids, aliases] of rows) {
    test(JSON.stringify(choice), async () => {
      await using engine = await openEngine(':memory:')
      const importing = engine.processes.importFiles(two, choice)
      if (ids.length === 0) return assert.rejects(importing, { code: 'bad_definition' })
      const result = await importing
      assert.deepEqual(result.processes.map(({ conv_id }) => conv_id).sort(), ids)
      assert.deepEqual(
        result.aliases.map(({ name, stage_id }) => [name, stage_id]),
        aliases,
      )
    })
  }

  test('none drops the distinction where names do not clash', async () => {
    await using engine = await openEngine(':memory:')
    await engine.processes.importFiles(two.slice(0, 5))
    const result = await engine.processes.importFiles(two.slice(0, 5), { stage: 'none' })
    assert.deepEqual(
      result.aliases.map(({ name, stage_id, state }) => [name, stage_id, state]),
      [
        ['next', undefined, 'created'],
        ['only-dev', undefined, 'created'],
      ],
    )
    await engine.processes.removeAlias('next', { stage_id: '7' })
    assert.deepEqual(await ran(engine, 1), { got: 'dev url', tag: undefined })
    const refused = await engine.processes
      .importFiles(two, { stage: 'none' })
      .catch((fault) => fault)
    const mistakes = [
      /alias @next is another one than in .*7_dev.stage\/_ALIASES_.json/,
      /variable @url is another one than in .*7_dev.stage\/_ENV_VARS_.json/,
    ]
    for (const [at, mistake] of mistakes.entries()) assert.match(refused.mistakes[at], mistake)
  })

  /** [choice, mistake] */
  const bad: readonly (readonly [object, string])[] = [
    [
      { stage: 'test' },
      'there is no stage "test"; the stages are 7 (Development) of project 5, 8 (prod) of project 5',
    ],
    [
      { stage: 'dev', project: 'crm' },
      'there is no stage "dev" of project "crm"; the stages are 7 (Development) of project 5, 8 (prod) of project 5',
    ],
  ]
  for (const [choice, mistake] of bad) {
    test(mistake, async () => {
      await using engine = await openEngine(':memory:')
      await assert.rejects(engine.processes.importFiles(two, choice), {
        code: 'bad_definition',
        message: mistake,
      })
      assert.deepEqual(await engine.processes.list(), [])
    })
  }

  test('two of one name need their project', async () => {
    await using engine = await openEngine(':memory:')
    const files = [
      file('1_a.project/7_dev.stage/1.json', processOf(1)),
      file('2_b.project/8_dev.stage/2.json', processOf(2)),
    ]
    await assert.rejects(engine.processes.importFiles(files, { stage: 'dev' }), {
      message: /^several are stage "dev": give the id; /,
    })
    const { processes } = await engine.processes.importFiles(files, { stage: 'dev', project: 'b' })
    assert.deepEqual(
      processes.map(({ conv_id }) => conv_id),
      ['2'],
    )
  })
})

describe('ops by the alias of a stage', () => {
  /** [members, the process] */
  const rows: readonly (readonly [JsonObject, string | undefined])[] = [
    [{ obj_alias: 'next', stage_id: 7 }, '11'],
    [{ obj_alias: 'next', stage_id: '8', project_id: 5 }, '12'],
    [{ obj_alias: 'next', project_short_name: 'shop', stage_short_name: 'dev' }, '11'],
    [{ obj_alias: 'next' }, undefined],
    [{ obj_alias: 'next', stage_id: 9 }, undefined],
    [{ obj_alias: 'next', project_short_name: 'shop', stage_short_name: 'test' }, undefined],
  ]
  for (const [members, conv_id] of rows) {
    test(JSON.stringify(members), async () => {
      await using engine = await openEngine(':memory:')
      await engine.processes.importFiles(two)
      const op = { type: 'create', obj: 'task', data: {}, ...members }
      const [result] = await engine.apply([op as never])
      assert.equal(result?.proc, conv_id === undefined ? 'conv_not_found' : 'ok')
      for (const id of [11, 12]) {
        assert.equal(await made(engine, id), String(id) === conv_id ? 1 : 0)
      }
    })
  }
})

test('a folder in one file has its stages too, and an item says its own', async () => {
  await using engine = await openEngine(':memory:')
  const tree = {
    obj_type: 0,
    list: [
      {
        obj_type: 6,
        obj_id: 7,
        title: 'dev',
        children: [processOf(1, copy('@next')), alias('next', 1)],
      },
      alias('next', 1, { stage_id: 9, project_id: 5 }),
    ],
  }
  const { aliases } = await engine.processes.importFiles([file('f.json', tree)])
  assert.deepEqual(
    aliases.map(({ stage_id }) => stage_id),
    ['7', '9'],
  )
})
