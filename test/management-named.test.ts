/**
 * Ops on aliases, variables, projects and stages over signed HTTP: what they answer, that what
 * they change counts at once, and that a secret is never shown again.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { JsonObject } from '../src/core/model.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { answerOthers } from '../src/management/requests.ts'
import { openEngine } from '../src/open.ts'
import { tempFolder } from './support/cli-run.ts'
import { exchange } from './support/http-raw.ts'
import { definition, node, openHttp, type TestHttp } from './support/http-server.ts'

type Json = Readonly<Record<string, unknown>>
type Entry = Record<string, unknown>

const admin = '13001'
const editor = '13002'
let served: TestHttp
const secrets = new Map<string, string>()

const file = (name: string, value: unknown) => ({ name, text: JSON.stringify(value) })
const reads = (id: number, template: string) =>
  definition(id, [
    node('start', 1, [
      { type: 'set_param', extra: { got: template }, extra_type: { got: 'string' } },
      { type: 'go', to_node_id: 'end' },
    ]),
    node('end', 2, []),
  ])

before(async () => {
  served = await openHttp()
  const { engine } = served
  secrets.set('13000', served.secret)
  secrets.set(admin, (await engine.users.add({ id: admin, name: 'ann', administer: true })).secret)
  secrets.set(editor, (await engine.users.add({ id: editor })).secret)
  await engine.processes.share('1234', editor, ['show', 'edit'])
  await engine.processes.importFiles([
    file('5_shop.project/7_dev.stage/7.stage.json', {
      obj_type: 6,
      obj_id: 7,
      title: 'Dev',
      short_name: 'dev',
    }),
    file('5_shop.project/7_dev.stage/_ALIASES_.json', [{ short_name: 'old', obj_to_id: 70 }]),
    file('5_shop.project/7_dev.stage/_ENV_VARS_.json', [
      { obj_id: 608, short_name: 'url', value: 'x', data_type: 'raw', env_var_type: 'visible' },
      {
        obj_id: 609,
        short_name: 'hosts',
        value: '["a"]',
        data_type: 'json',
        env_var_type: 'visible',
      },
    ]),
    file('5_shop.project/7_dev.stage/70_a.conv.json', reads(70, '{{env_var[@token]}}')),
    file('5_shop.project/8_prod.stage/80_a.conv.json', reads(80, '{{env_var[@token]}}')),
  ])
  await engine.processes.share('70', '13000')
})
after(async () => {
  assert.deepEqual((await served.engine.check()).breaches, [])
  await served.close()
})

let ids = 0
async function one(user: string, op: Json, version: 1 | 2 = 2): Promise<Entry> {
  const body = JSON.stringify({ ops: [{ ...op, id: ++ids }] })
  const secret = secrets.get(user) as string
  const answer = await served.send(body, { user, secret, version })
  const { id, ...entry } = (JSON.parse(answer.body) as { ops: Entry[] }).ops[0] as Entry
  assert.equal(id, ids)
  return entry
}

const pick = (of: Entry, ...names: string[]): Entry =>
  Object.fromEntries(names.map((name) => [name, of[name]]))

async function listed(obj: string, more: Json = {}): Promise<Entry[]> {
  return (await one(admin, { type: 'list', obj, ...more })).list as Entry[]
}

describe('aliases', () => {
  const alias = { obj: 'alias' }

  test('are made, changed, linked and deleted, and lead at once', async () => {
    const made = await one(admin, {
      ...{ ...alias, type: 'create', short_name: 'orders', title: 'Orders' },
      ...{ obj_to_id: 1234, obj_to_type: 'conv', stage_id: 7, project_id: 5 },
    })
    const { obj_id } = made
    assert.deepEqual(made, { proc: 'ok', obj: 'alias', obj_id })
    assert.equal(Number.isSafeInteger(obj_id), true)
    const [row] = await listed('aliases', { stage_id: 7, pattern: 'orders' })
    assert.deepEqual(pick(row as Entry, 'obj_id', 'obj_type', 'title', 'short_name'), {
      ...{ obj_id, obj_type: 'alias', title: 'Orders', short_name: 'orders' },
    })
    assert.deepEqual(
      pick(
        row as Entry,
        'project_id',
        'stage_id',
        'obj_to_id',
        'obj_to_type',
        'obj_to_title',
        'owner_name',
      ),
      {
        ...{ project_id: 5, stage_id: 7, obj_to_id: 1234, obj_to_type: 'conv' },
        ...{ obj_to_title: 'process 1234', owner_name: 'ann' },
      },
    )
    const create = { type: 'create', obj: 'task', data: {}, obj_alias: 'orders', stage_id: 7 }
    assert.equal((await one('13000', { ...create, ref: `a${++ids}` })).proc, 'ok')
    const to = { ...alias, obj_id }
    assert.equal((await one(admin, { ...to, type: 'link', obj_to_id: 80, link: true })).proc, 'ok')
    assert.match(String((await one('13000', create)).description), /conv_id: 80$/)
    assert.equal((await one(admin, { ...to, type: 'link', link: false })).proc, 'ok')
    assert.match(String((await one('13000', create)).description), /conv_id: @orders$/)
    const renamed = { ...to, type: 'modify', short_name: 'sales', title: 'Sales', obj_to_id: 1234 }
    assert.equal((await one(admin, renamed)).obj_id, obj_id)
    const shown = await one(admin, { ...to, type: 'show' })
    assert.deepEqual(pick(shown, 'obj_id', 'short_name', 'title', 'obj_to_id'), {
      ...{ obj_id, short_name: 'sales', title: 'Sales', obj_to_id: 1234 },
    })
    // The name that it had is free, and its number is not given again.
    const again = await one(admin, { ...alias, type: 'upsert', short_name: 'orders', stage_id: 7 })
    assert.notEqual(again.obj_id, obj_id)
    const upserted = { ...alias, type: 'upsert', short_name: 'orders', stage_id: 7, obj_to_id: 70 }
    assert.equal((await one(admin, upserted)).obj_id, again.obj_id)
    for (const id of [obj_id, again.obj_id]) {
      assert.equal((await one(admin, { ...alias, type: 'delete', obj_id: id })).proc, 'ok')
    }
    assert.match(String((await one('13000', create)).description), /conv_id: @orders$/)
  })

  test('of imports have numbers too, which stay', async () => {
    const [before] = await listed('aliases', { stage_id: 7 })
    assert.deepEqual(pick(before as Entry, 'short_name', 'title', 'obj_to_id'), {
      ...{ short_name: 'old', title: 'old', obj_to_id: 70 },
    })
    const { obj_id } = before as Entry
    await one(admin, { obj: 'alias', type: 'modify', obj_id, title: 'Older' })
    const [now] = await listed('aliases', { stage_id: 7 })
    assert.deepEqual(pick(now as Entry, 'obj_id', 'title'), { obj_id, title: 'Older' })
    assert.deepEqual(await listed('aliases', { stage_id: 8 }), [])
  })

  test('are listed to an editor where he may edit what they name', async () => {
    await served.engine.processes.setAlias('mine', '1234')
    const { list } = await one(editor, { type: 'list', obj: 'aliases' })
    assert.deepEqual(
      (list as Entry[]).map(({ short_name }) => short_name),
      ['mine'],
    )
    const none = await one('13000', { type: 'list', obj: 'aliases' })
    assert.deepEqual(none.list, [])
    await served.engine.processes.removeAlias('mine')
  })

  /** [user, op, proc, description] */
  const refused: readonly (readonly [string, Json, string, string])[] = [
    [editor, { type: 'create', short_name: 'a' }, 'access_denied', 'user: 13002, conv_id: -'],
    [editor, { type: 'delete', obj_id: 5 }, 'access_denied', 'user: 13002, conv_id: 5'],
    [admin, { type: 'create' }, 'error', "Key 'short_name' is required"],
    [
      admin,
      { type: 'create', short_name: 'A b' },
      'error',
      'Value is not valid. short_name: 1 to 63 of a-z, 0-9 and -',
    ],
    [
      admin,
      { type: 'create', short_name: 'old', stage_id: 7 },
      'error',
      'alias name already exists',
    ],
    [
      admin,
      { type: 'create', short_name: 'x', stage_id: 99 },
      'error',
      'Object stage with id 99 does not exist',
    ],
    [
      admin,
      { type: 'create', short_name: 'x', stage_id: 7, project_id: 6 },
      'error',
      'Object stage with id 7 does not exist',
    ],
    [
      admin,
      { type: 'create', short_name: 'x', obj_to_id: 999 },
      'error',
      'Object conv with id 999 does not exist',
    ],
    [
      admin,
      { type: 'create', short_name: 'x', obj_to_id: 7, obj_to_type: 'dashboard' },
      'error',
      'Value is not valid. obj_to_id: a process',
    ],
    [
      admin,
      { type: 'modify', obj_id: 5, short_name: 'x' },
      'error',
      'Object alias with id 5 does not exist',
    ],
    [admin, { type: 'link' }, 'error', "Key 'obj_id' is required"],
    [admin, { type: 'restore', obj_id: 5 }, 'error', 'bad type'],
  ]
  for (const [user, op, proc, description] of refused) {
    test(`${op.type} is refused: ${description}`, async () => {
      const entry = await one(user, { ...alias, ...op })
      assert.deepEqual([entry.proc, entry.description, entry.obj], [proc, description, 'alias'])
    })
  }

  test('of a webhook: it stands behind the number of the alias, and follows it', async () => {
    const made = await one(admin, { ...alias, type: 'create', short_name: 'hook', obj_to_id: 1234 })
    const op = (type: string): Json => ({ type, obj: 'callback_hash', alias_id: made.obj_id })
    assert.equal((await one(admin, op('get'))).callback_hash, null)
    const { callback_hash } = await one(admin, op('create'))
    assert.match(String(callback_hash), /^[0-9a-f]{40}$/)
    assert.equal((await one(admin, op('create'))).callback_hash, callback_hash)
    const post = async (hash: unknown, id = made.obj_id): Promise<string> => {
      const path = `/api/2/json/public/${id}/${hash}`
      const bytes = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`
      const { body } = await exchange(served.port, Buffer.from(bytes))
      const { request_proc, ops } = JSON.parse(body)
      if (request_proc !== 'ok') return request_proc
      for (const conv_id of ['1234', '70']) {
        const task = await served.engine.task({ conv_id, obj_id: ops.obj_id })
        if (task !== undefined) return conv_id
      }
      return ops.proc
    }
    assert.equal(await post(callback_hash), '1234')
    assert.equal(await post('0'.repeat(40)), 'not_found')
    assert.equal(await post(callback_hash, '1234'), 'not_found')
    await one(admin, { ...alias, type: 'link', obj_id: made.obj_id, obj_to_id: 70 })
    assert.equal(await post(callback_hash), '70')
    const { callback_hash: next } = await one(admin, op('modify'))
    assert.deepEqual([await post(callback_hash), await post(next)], ['not_found', '70'])
    await one(admin, op('delete'))
    assert.equal(await post(next), 'not_found')
    await one(admin, { ...alias, type: 'delete', obj_id: made.obj_id })
    const gone = await one(admin, op('get'))
    assert.equal(gone.proc, 'error')
    assert.equal((await one(editor, op('create'))).proc, 'access_denied')
  })
})

describe('variables', () => {
  const variable = { obj: 'env_var' }
  const got = async (conv_id = '70'): Promise<unknown> => {
    const { obj_id } = await served.engine.create({ conv_id, data: {} })
    const task = await served.engine.task({ conv_id, obj_id: obj_id as string })
    return (task?.data as JsonObject | undefined)?.got
  }
  const colons = (algo: string, text: string): unknown =>
    createHash(algo).update(text).digest('hex').toUpperCase().match(/../g)?.join(':')

  test('of an import are listed with their numbers', async () => {
    const rows = await listed('env_var', { stage_id: 7 })
    assert.deepEqual(
      rows.map((row) =>
        pick(
          row,
          'obj_id',
          'short_name',
          'data_type',
          'env_var_type',
          'value',
          'project_id',
          'stage_id',
        ),
      ),
      [
        {
          ...{ obj_id: 609, short_name: 'hosts', data_type: 'json', env_var_type: 'visible' },
          ...{ value: '["a"]', project_id: 5, stage_id: 7 },
        },
        {
          ...{ obj_id: 608, short_name: 'url', data_type: 'raw', env_var_type: 'visible' },
          ...{ value: 'x', project_id: 5, stage_id: 7 },
        },
      ],
    )
    assert.deepEqual(await listed('env_var', { stage_id: 8 }), [])
  })

  test('are made, changed and deleted, and count at once in their stage', async () => {
    assert.equal(await got(), '')
    const made = await one(admin, {
      ...{ ...variable, type: 'create', short_name: 'token', title: 'T', value: 'one' },
      ...{ data_type: 'raw', env_var_type: 'visible', stage_id: 7, project_id: 5 },
      scopes: [{ type: '*', fields: '*' }],
    })
    const { obj_id, fingerprints } = made
    assert.deepEqual(fingerprints, [
      { algo: 'md5', value: colons('md5', 'one') },
      { algo: 'sha256', value: colons('sha256', 'one') },
    ])
    assert.deepEqual([await got(), await got('80')], ['one', ''])
    const to = { ...variable, type: 'modify', obj_id, short_name: 'token' }
    assert.equal((await one(admin, { ...to, title: 'Token' })).obj_id, obj_id)
    assert.equal(await got(), 'one')
    await one(admin, { ...to, data_type: 'json', value: '{"a":1.10}' })
    assert.equal(await got(), '{"a":1.10}')
    await served.engine.processes.put(reads(71, `{{env_var[${obj_id}].a}}`))
    assert.equal(await got('71'), '1.10')
    await one(admin, { ...to, short_name: 'key' })
    assert.deepEqual([await got(), await got('71')], ['', '1.10'])
    const [row] = await listed('env_var', { stage_id: 7, pattern: 'key' })
    assert.deepEqual(pick(row as Entry, 'obj_id', 'title', 'value'), {
      ...{ obj_id, title: 'Token', value: '{"a":1.10}' },
    })
    assert.equal(
      (await one(admin, { ...variable, type: 'delete', obj_id, stage_id: 7 })).obj_id,
      obj_id,
    )
    assert.equal(await got('71'), '')
  })

  test('that are secret are read by tasks and shown to nobody', async () => {
    const value = 'sesame-open-sesame'
    const made = await one(admin, {
      ...{ ...variable, type: 'create', short_name: 'token', value },
      ...{ env_var_type: 'secret', stage_id: 8 },
    })
    assert.equal(await got('80'), value)
    const [row] = await listed('env_var', { stage_id: 8 })
    assert.deepEqual(pick(row as Entry, 'env_var_type', 'value', 'data_type'), {
      ...{ env_var_type: 'secret', value: null, data_type: 'raw' },
    })
    assert.ok(!JSON.stringify(row).includes(value))
    const to = { ...variable, type: 'modify', obj_id: made.obj_id, short_name: 'token' }
    await one(admin, { ...to, title: 'kept' })
    assert.equal(await got('80'), value)
    await one(admin, { ...to, value: 'another secret' })
    assert.equal(await got('80'), 'another secret')
    const moved = await one(admin, { ...to, data_type: 'json' })
    assert.equal(moved.description, "Key 'value' is required")
    // An export has no value of a secret, so an import leaves it.
    await served.engine.processes.importFiles([
      file('8_prod.stage/_ENV_VARS_.json', [{ short_name: 'token', env_var_type: 'secret' }]),
    ])
    assert.equal(await got('80'), 'another secret')
    await one(admin, { ...variable, type: 'delete', obj_id: made.obj_id })
    assert.equal(await got('80'), '')
  })

  /** [user, op, proc, description] */
  const refused: readonly (readonly [string, Json, string, string | RegExp])[] = [
    [editor, { type: 'list' }, 'access_denied', 'user: 13002, conv_id: -'],
    [
      editor,
      { type: 'create', short_name: 'a', value: '' },
      'access_denied',
      'user: 13002, conv_id: -',
    ],
    [admin, { type: 'create', short_name: 'a' }, 'error', "Key 'value' is required"],
    [
      admin,
      { type: 'create', short_name: 'a', value: 7 },
      'error',
      /^Value is not valid. value: a text/,
    ],
    [
      admin,
      { type: 'create', short_name: 'a', value: '{', data_type: 'json' },
      'error',
      /^Value is not valid. value: JSON/,
    ],
    [
      admin,
      { type: 'create', short_name: 'a', value: '', data_type: 'xml' },
      'error',
      'Value is not valid. data_type: raw or json',
    ],
    [
      admin,
      { type: 'create', short_name: 'a', value: '', env_var_type: 'x' },
      'error',
      'Value is not valid. env_var_type: visible or secret',
    ],
    [
      admin,
      { type: 'create', short_name: 'a', value: 'x'.repeat(200_000) },
      'error',
      /^Value is not valid. value: a text of at most 131072/,
    ],
    [
      admin,
      { type: 'create', short_name: 'url', value: '', stage_id: 7 },
      'error',
      'env_var name already exists',
    ],
    [
      admin,
      { type: 'create', short_name: 'a', value: '', stage_id: 4 },
      'error',
      'Object stage with id 4 does not exist',
    ],
    [admin, { type: 'modify', obj_id: 608 }, 'error', "Key 'short_name' is required"],
    [
      admin,
      { type: 'modify', obj_id: 608, short_name: 'hosts' },
      'error',
      'env_var name already exists',
    ],
    [
      admin,
      { type: 'modify', obj_id: 608, short_name: 'url', data_type: 'json' },
      'error',
      /^Value is not valid. value: JSON/,
    ],
    [
      admin,
      { type: 'delete', obj_id: 6080 },
      'error',
      'Object env_var with id 6080 does not exist',
    ],
    [admin, { type: 'show', obj_id: 608 }, 'error', 'bad type'],
  ]
  for (const [user, op, proc, description] of refused) {
    test(`${op.type} is refused: ${String(description).slice(0, 60)}`, async () => {
      const entry = await one(user, { ...variable, ...op })
      assert.deepEqual([entry.proc, entry.obj], [proc, 'env_var'])
      assert.match(
        String(entry.description),
        description instanceof RegExp
          ? description
          : new RegExp(`^${description.replace(/[.]/g, '\\.')}$`),
      )
      assert.equal((await listed('env_var', { pattern: 'url' }))[0]?.value, 'x')
    })
  }

  test('that are given to the server cannot be changed', async () => {
    await using engine = servedEngine(await openEngine(':memory:', { variables: { url: 'given' } }))
    const { id } = await engine.users.add({ administer: true })
    const ops = [
      { type: 'create', obj: 'env_var', short_name: 'url', value: 'x' },
      { type: 'create', obj: 'env_var', short_name: 'other', value: 'x' },
    ]
    const body = Buffer.from(JSON.stringify({ ops }))
    const request = {
      server: 'http',
      version: 2,
      caller: { user: id },
      ops: ops as never,
      body,
    } as const
    const { ops: entries } = JSON.parse(
      await answerOthers(engine, { ...request, ops: parsed(ops.length) }),
    )
    assert.deepEqual(
      entries.map(({ description }: Entry) => description),
      ['env_var @url is given to the server', undefined],
    )
  })

  const parsed = (count: number) =>
    Array.from({ length: count }, () => ({ ref: null, obj: 'task', proc: 'error' }) as const)
})

test('a secret variable is encrypted in the file, and there after a restart', async () => {
  const folder = tempFolder()
  const path = `${folder.path}/tasks.lmdb`
  const value = 'sesame-open-sesame'
  const send = async (op: Json): Promise<Entry> => {
    await using engine = servedEngine(await openEngine(path))
    const [user] = await engine.users.list()
    const { id } = user ?? (await engine.users.add({ administer: true }))
    const ops = [op]
    const body = Buffer.from(JSON.stringify({ ops }))
    const parsed = [{ ref: null, obj: 'task', proc: 'error' }] as const
    const request = { server: 'http', version: 2, caller: { user: id }, ops: parsed, body } as const
    await engine.processes.put(reads(1, '{{env_var[@token]}}'))
    const { ops: entries } = JSON.parse(await answerOthers(engine, request))
    const { obj_id } = await engine.create({ conv_id: 1, data: {} })
    const task = await engine.task({ conv_id: 1, obj_id: obj_id as string })
    assert.deepEqual((await engine.check()).breaches, [])
    return { ...entries[0], got: (task as { data: JsonObject }).data.got }
  }
  const create = {
    type: 'create',
    obj: 'env_var',
    short_name: 'token',
    value,
    env_var_type: 'secret',
  }
  assert.equal((await send(create)).got, value)
  const list = await send({ type: 'list', obj: 'env_var' })
  assert.equal(list.got, value)
  const [row] = list.list as Entry[]
  const deleted = await send({ type: 'delete', obj: 'env_var', obj_id: row?.obj_id })
  assert.deepEqual([deleted.proc, deleted.got], ['ok', ''])
  const { list: none } = await send({ type: 'list', obj: 'env_var' })
  assert.deepEqual(none, [])
  folder.remove()
})

describe('projects and stages', () => {
  /** [user, op, what the answer has] */
  const rows: readonly (readonly [string, Json, Entry])[] = [
    [
      admin,
      { type: 'list', obj: 'projects' },
      {
        list: [
          {
            ...{ obj: 'project', obj_id: 5, project_id: 5, title: 'shop', short_name: 'shop' },
            ...{ owner_login: '', undeployed: false },
          },
        ],
      },
    ],
    [
      admin,
      { type: 'list', obj: 'project', obj_id: 5 },
      {
        list: [
          {
            ...{ obj: 'stage', obj_id: 7, title: 'Dev', short_name: 'dev' },
            ...{ immutable: false, undeployed: false },
          },
          {
            ...{ obj: 'stage', obj_id: 8, title: 'prod', short_name: 'prod' },
            ...{ immutable: false, undeployed: false },
          },
        ],
      },
    ],
    [
      admin,
      { type: 'show', obj: 'stage', obj_id: 7, project_id: 5 },
      { obj_id: 7, title: 'Dev', short_name: 'dev', immutable: false, project_id: 5 },
    ],
    [
      admin,
      { type: 'show', obj: 'folder', obj_id: 7 },
      { obj_id: 7, title: 'Dev', obj_type: 10, parent_obj_id: 5, parent_obj_type: 'project' },
    ],
    [
      admin,
      { type: 'show', obj: 'folder', obj_id: 5 },
      { obj_id: 5, title: 'shop', obj_type: 5, parent_obj_id: 0, parent_obj_type: 'folder' },
    ],
    [
      admin,
      { type: 'show', obj: 'folder', obj_id: 0 },
      { obj_id: 0, title: 'Root folder', obj_type: 0, parent_obj_id: 0 },
    ],
    [
      admin,
      { type: 'show', obj: 'folder', obj_id: 9 },
      { description: 'Object folder with id 9 does not exist' },
    ],
    [
      admin,
      { type: 'show', obj: 'stage', obj_id: 9 },
      { description: 'Object stage with id 9 does not exist' },
    ],
    [
      admin,
      { type: 'list', obj: 'project', obj_id: 9 },
      { description: 'Object project with id 9 does not exist' },
    ],
    [editor, { type: 'list', obj: 'projects' }, { proc: 'access_denied' }],
    [admin, { type: 'create', obj: 'stage', title: 'x' }, { description: 'bad type' }],
    [admin, { type: 'show', obj: 'conv', obj_id: 70 }, { project_id: 5, stage_id: 7 }],
    [admin, { type: 'list', obj: 'conv', obj_id: 1234 }, { project_id: 0, stage_id: 0 }],
  ]
  for (const [user, op, wanted] of rows) {
    test(`${op.type} ${op.obj} ${op.obj_id} of ${user}`, async () => {
      const entry = await one(user, op)
      assert.deepEqual(pick(entry, ...Object.keys(wanted)), wanted)
    })
  }

  test('a stage is a folder of its processes, and a new process may be made in one', async () => {
    const make = { type: 'create', obj: 'conv', title: 'new', conv_type: 'process', stage_id: 8 }
    const { obj_id } = await one(admin, make)
    const { list } = await one(admin, { type: 'list', obj: 'folder', obj_id: 8 })
    assert.deepEqual(
      (list as Entry[]).map((row) => row.obj_id),
      [obj_id, 80],
    )
    const project = await one(admin, { type: 'list', obj: 'folder', obj_id: 5 })
    assert.deepEqual(
      (project.list as Entry[]).map((row) => [row.obj, row.obj_id]),
      [
        ['stage', 7],
        ['stage', 8],
      ],
    )
    const refused = await one(admin, { ...make, stage_id: 9 })
    assert.equal(refused.description, 'Object stage with id 9 does not exist')
  })
})
