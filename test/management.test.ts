/** Ops on other objects than tasks, over signed HTTP in both versions: answers, rights, repeats. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { signatureOf } from '../src/codec/signature.ts'
import type { ServedEngine } from '../src/engine/served-engine.ts'
import { fileContent } from '../src/management/downloads.ts'
import {
  definition,
  node,
  openHttp,
  process_definition,
  type TestHttp,
} from './support/http-server.ts'

type Json = Readonly<Record<string, unknown>>
type Entry = Record<string, unknown>

const admin = '13001'
const editor = '13002'
const locked = { direct_url: true, type_auth: 'basic', login: 'a', secret: 'hush' }
const coded = definition(7, [
  { ...node('start', 1, [{ type: 'go', to_node_id: 'code' }]), options: locked },
  node('code', 0, [
    { type: 'api_code', lang: 'js', src: 'data.a = 1.50', err_node_id: 'end' },
    { type: 'go', to_node_id: 'end' },
  ]),
  node('end', 2, []),
])

let served: TestHttp
const secrets = new Map<string, string>()

before(async () => {
  served = await openHttp()
  const { engine } = served
  secrets.set('13000', served.secret)
  const { secret } = await engine.users.add({ id: admin, name: 'ann', administer: true })
  secrets.set(admin, secret)
  secrets.set(editor, (await engine.users.add({ id: editor, name: 'ed' })).secret)
  await engine.processes.share('1234', editor, ['show', 'edit'])
  await engine.processes.put(coded)
})
after(() => served.close())

async function text(user: string, ops: readonly Json[], version: 1 | 2 = 2): Promise<string> {
  const secret = secrets.get(user) as string
  const { body } = await served.send(JSON.stringify({ ops }), { user, secret, version })
  return body
}

async function send(user: string, ...ops: readonly Json[]): Promise<Entry[]> {
  return (JSON.parse(await text(user, ops)) as { ops: Entry[] }).ops
}

const one = async (user: string, op: Json): Promise<Entry> => (await send(user, op))[0] as Entry

/** [user, version, op, the whole entry as text] */
const texts: readonly (readonly [string, 1 | 2, Json, string])[] = [
  ['13000', 2, { type: 'list', obj: 'snapshots', stage_id: 4 }, unknown('snapshots')],
  ['13000', 2, { type: 'list', obj: 'no_such_thing', obj_id: 4 }, unknown('no_such_thing')],
  [admin, 2, { type: 'create', obj: 'group' }, unknown('group')],
  [
    admin,
    1,
    { type: 'get', obj: 'user', id: 7 },
    '{"id":7,"obj":"user","proc":"error","description":"bad object"}',
  ],
  [
    admin,
    2,
    { type: 'restore', obj: 'conv', obj_id: 1234 },
    '{"id":"","obj":"conv","obj_id":1234,"proc":"error","description":"bad type","key":"type"}',
  ],
  [
    '13000',
    2,
    { type: 'list', obj: 'conv', obj_id: 1234 },
    '{"id":"","obj":"conv","obj_id":1234,"proc":"access_denied","description":"user: 13000, conv_id: 1234"}',
  ],
  [
    editor,
    2,
    { type: 'show', obj: 'conv', obj_id: 999 },
    '{"id":"","obj":"conv","obj_id":999,"proc":"access_denied","description":"user: 13002, conv_id: 999"}',
  ],
  [
    admin,
    2,
    { type: 'show', obj: 'conv', obj_id: 999 },
    '{"id":"","obj":"conv","obj_id":999,"proc":"error","description":"Object conv with id 999 does not exist"}',
  ],
  [
    admin,
    1,
    { type: 'show', obj: 'conv', obj_id: 999 },
    '{"obj":"conv","obj_id":999,"proc":"obj_id_not_found","description":"Object conv with id 999 does not exist"}',
  ],
  [
    admin,
    2,
    { type: 'list', obj: 'conv' },
    `{"id":"","obj":"conv","proc":"error","description":"Key 'obj_id' is required","key":"obj_id"}`,
  ],
  [
    editor,
    1,
    { type: 'list', obj: 'conv_params', obj_id: 1234 },
    '{"obj":"conv_params","obj_id":1234,"proc":"ok","params":[],"ref_mask":false}',
  ],
  [
    editor,
    2,
    { type: 'list', obj: 'conv_params', obj_id: '1234', id: 'x' },
    '{"id":"x","proc":"ok","obj":"conv_params","obj_id":"1234","params":[],"ref_mask":false}',
  ],
]

function unknown(obj: string): string {
  return `{"id":"","obj":"${obj}","proc":"error","description":"bad object"}`
}

for (const [user, version, op, expected] of texts) {
  test(`${op.type} ${op.obj} ${op.obj_id} of ${user}, version ${version}`, async () => {
    const body = await text(user, [op], version)
    assert.equal(body, `{"request_proc":"ok","ops":[${expected}]}`)
  })
}

/** [user, op, members of its answer] */
const members: readonly (readonly [string, Json, Json])[] = [
  [
    editor,
    { type: 'list', obj: 'conv', obj_id: 1234 },
    { title: 'process 1234', status: 'active', conv_type: 'process', last_confirmed_version: 1 },
  ],
  [
    editor,
    { type: 'show', obj: 'conv', obj_id: 1234 },
    { parent_obj_id: 0, parent_obj_type: 'folder', stage_id: 0, is_owner: false },
  ],
  [
    editor,
    { type: 'show', obj: 'node', conv_id: 1234, obj_id: 'end' },
    { title: 'end', obj_type: 2, count: 0, logics: [] },
  ],
  [
    editor,
    { type: 'show', obj: 'node', conv_id: 1234, obj_id: 'no' },
    { proc: 'error', description: 'Object node with id no does not exist' },
  ],
  [
    editor,
    { type: 'list', obj: 'nodes', conv_id: 1234, pattern: 'EN' },
    {
      list: [{ conv_id: 1234, id: 'end', title: 'end', description: '', type: 2, status: 1 }],
    },
  ],
  [
    admin,
    { type: 'list', obj: 'conv', list_obj: 'group', obj_id: 1234 },
    {
      list: [
        share('13000', '', ['create', 'modify', 'view']),
        share(editor, 'ed', ['modify', 'view', 'delete']),
      ],
    },
  ],
  [editor, { type: 'check', obj: 'obj_scheme', obj_id: 1234, obj_type: 'conv' }, { proc: 'ok' }],
  [
    admin,
    { type: 'get', obj: 'obj_scheme', obj_id: 1234, obj_type: 'conv', version: 9 },
    { proc: 'error', description: 'Version 9 does not exist' },
  ],
  [
    editor,
    { type: 'delete', obj: 'commits', conv_id: 1234, version: 1_700_000_000 },
    { proc: 'ok', obj_id: 1234, version: 1_700_000_000 },
  ],
  [
    admin,
    { type: 'get', obj: 'api_code', conv_id: 7, node_id: 'code', env: 'develop' },
    { lang: 'js', src: 'data.a = 1.50' },
  ],
  [
    admin,
    { type: 'compile', obj: 'api_code', conv_id: 7, node_id: 'code', lang: 'js', src: 'a = 1' },
    { proc: 'ok', description: '' },
  ],
  [
    admin,
    { type: 'load', obj: 'api_code', conv_id: 7, node_id: 'code', lang: 'js', src: 'a = = 1' },
    {
      description: '1',
      errors: { code: ["Key 'src'. 'src is no JavaScript: Unexpected token '=''"] },
    },
  ],
  [
    '13000',
    { type: 'show', obj: 'folder', obj_id: 0 },
    { obj_id: 0, title: 'Root folder', obj_type: 0, parent_obj_id: 0 },
  ],
  ['13000', { type: 'list', obj: 'folder', obj_id: 0 }, { list: [] }],
  [
    admin,
    { type: 'create', obj: 'folder', title: 'x' },
    { proc: 'error', description: 'folders are not kept here' },
  ],
  [admin, { type: 'link', obj: 'folder', obj_id: 7, folder_id: 0 }, { proc: 'ok', folder_id: 0 }],
  [
    admin,
    { type: 'link', obj: 'folder', obj_id: 7, folder_id: 5 },
    { proc: 'error', description: 'folders are not kept here' },
  ],
  [
    admin,
    { type: 'list', obj: 'company' },
    { list: [{ company_id: 'conveyor', title: 'Conveyor', is_owner: true, is_admin: true }] },
  ],
  [admin, { type: 'list', obj: 'projects' }, { list: [] }],
  [
    admin,
    { type: 'show', obj: 'stage', obj_id: 5 },
    { proc: 'error', description: 'Object stage with id 5 does not exist' },
  ],
  [editor, { type: 'list', obj: 'projects' }, { proc: 'access_denied' }],
  [
    editor,
    { type: 'create', obj: 'conv', title: 'x', conv_type: 'process' },
    { proc: 'access_denied' },
  ],
  [
    editor,
    {
      ...{ type: 'link', obj: 'conv', obj_id: 1234, obj_to: 'user', obj_to_id: 13000 },
      privs: [{ type: 'create' }],
    },
    { proc: 'access_denied' },
  ],
  [
    admin,
    { type: 'link', obj: 'conv', obj_id: 1234, obj_to: 'group', obj_to_id: 1, privs: [] },
    { proc: 'error', description: 'bad object' },
  ],
  [
    admin,
    { type: 'link', obj: 'conv', obj_id: 1234, obj_to: 'user', obj_to_id: 5, privs: [] },
    { proc: 'error', description: 'Object user with id 5 does not exist' },
  ],
]

function share(login: string, title: string, privs: readonly string[]): Json {
  const id = Number(login)
  const all = privs.map((type) => ({ type, list_obj: ['all'] }))
  return { obj: 'user', obj_id: id, login_id: id, title, login, privs: all }
}

for (const [user, op, expected] of members) {
  test(`${op.type} ${op.obj} of ${user}: ${JSON.stringify(expected).slice(0, 60)}`, async () => {
    const answer = await one(user, op)
    const found = Object.fromEntries(Object.keys(expected).map((name) => [name, answer[name]]))
    assert.deepEqual(found, expected, JSON.stringify(answer))
  })
}

test('a definition is shown whole to editors, with its numbers exact and its secrets hidden', async () => {
  const op = { type: 'get', obj: 'obj_scheme', obj_id: 7, obj_type: 'conv' }
  const body = await text(admin, [op])
  assert.ok(body.includes('"src":"data.a = 1.50"'))
  assert.ok(body.includes('"secret":"***"'))
  assert.ok(!body.includes('hush'))
})

test('a process is made, renamed, paused, shared and deleted, each at once', async () => {
  const op = { type: 'create', obj: 'conv', title: 'new', conv_type: 'process', folder_id: 4 }
  const [made] = await send(admin, op)
  const { obj_id, folder_id } = made as Entry
  assert.deepEqual({ obj_id, folder_id }, { obj_id: 1235, folder_id: 0 })
  const create = { type: 'create', obj: 'task', conv_id: obj_id, ref: 'a', data: {} }
  assert.equal((await one(admin, create)).proc, 'ok')
  const rename = { type: 'modify', obj: 'conv', obj_id, title: 'newer', status: 'paused' }
  const changed = { new_status: 2, old_status: 1, is_changed: true }
  assert.deepEqual(changes(await one(admin, rename)), changed)
  // The same bytes signed in the same second would be a repeat, with the first answer.
  assert.deepEqual(changes(await one(admin, { ...rename, id: 2 })), {
    ...{ new_status: 2, old_status: 2, is_changed: false },
  })
  const { title, status, is_owner } = await one(admin, { type: 'show', obj: 'conv', obj_id })
  assert.deepEqual(
    { title, status, is_owner },
    { title: 'newer', status: 'paused', is_owner: true },
  )
  const link = { type: 'link', obj: 'conv', obj_id, obj_to: 'user', obj_to_id: Number(editor) }
  const privs = [{ type: 'modify', list_obj: ['all'] }, { type: 'delete' }]
  assert.equal((await one(admin, { ...link, privs })).action_type, 'link')
  assert.equal((await one(editor, { type: 'show', obj: 'conv', obj_id })).proc, 'ok')
  assert.equal((await one(admin, { ...link, privs: [] })).action_type, 'unlink')
  assert.equal((await one(editor, { type: 'show', obj: 'conv', obj_id })).proc, 'access_denied')
  assert.equal((await one(admin, { type: 'delete', obj: 'conv', obj_id })).proc, 'ok')
  assert.equal((await one(admin, { ...op, id: 3 })).obj_id, 1236)
})

const changes = ({ new_status, old_status, is_changed }: Entry): Json => {
  return { new_status, old_status, is_changed }
}

test('a process without nodes has no confirmed version, and its list is empty', async () => {
  const op = { type: 'create', obj: 'conv', title: 'n', create_mode: 'without_nodes' }
  const { obj_id } = await one(admin, op)
  const found = await one(admin, { type: 'list', obj: 'conv', obj_id })
  const { list, commits, last_confirmed_version } = found
  assert.deepEqual(
    { list, commits, last_confirmed_version },
    { list: [], commits: { version: 0, list: [] }, last_confirmed_version: 0 },
  )
  const commit_list = await one(admin, { type: 'list', obj: 'commits', conv_id: obj_id })
  assert.deepEqual(commit_list.list, [])
})

test('a process with live tasks is not deleted, and the answer says how many', async () => {
  const { engine } = served
  await engine.create({ conv_id: '1234', ref: 'alive', data: {} })
  const refused = await one(admin, { type: 'delete', obj: 'conv', obj_id: 1234 })
  const description = 'process 1234 has 1 live tasks; cancel them'
  assert.deepEqual([refused.proc, refused.description], ['error', description])
  await engine.tasks.cancel({ conv_id: '1234', ref: 'alive' })
})

test('a process with a task that the same request made is not deleted', async () => {
  await served.engine.processes.put({ ...(process_definition as object), obj_id: 23 })
  await served.engine.processes.share('23', admin)
  const create = { type: 'create', obj: 'task', conv_id: 23, ref: 'same', data: {} }
  const remove = { type: 'delete', obj: 'conv', obj_id: 23 }
  const procs = await send(admin, create, remove, { ...remove, force: true })
  assert.deepEqual(
    procs.map(({ proc }) => proc),
    ['ok', 'error', 'ok'],
  )
  assert.deepEqual((await served.engine.check()).breaches, [])
})

test('with force its live tasks are ended with it, up to a bound', async () => {
  const { engine } = served
  for (const [id, tasks] of [
    [21, 3],
    [22, 1_001],
  ] as const) {
    await engine.processes.put({ ...(process_definition as object), obj_id: id })
    const ops = Array.from({ length: tasks }, (_, n) => {
      return { type: 'create', obj: 'task', conv_id: id, ref: `f${n}`, data: {} } as const
    })
    for (let from = 0; from < tasks; from += 500) await engine.apply(ops.slice(from, from + 500))
    const { description } = await one(admin, {
      type: 'delete',
      obj: 'conv',
      obj_id: id,
      force: true,
    })
    const is_there = (await engine.processes.list()).some(({ conv_id }) => conv_id === String(id))
    const many = `over 1000 live tasks are in process ${id}: cancel them before`
    assert.deepEqual([description, is_there], tasks > 1_000 ? [many, true] : [undefined, false])
  }
  assert.deepEqual((await engine.check()).breaches, [])
})

test('the webhook of a process is opened, renewed and closed', async () => {
  const op = (type: string): Json => ({ type, obj: 'callback_hash', conv_id: 1234 })
  assert.equal((await one(admin, op('get'))).callback_hash, null)
  const { callback_hash: first } = await one(admin, op('create'))
  assert.match(first as string, /^[0-9a-f]{40}$/)
  assert.equal((await one(admin, op('create'))).callback_hash, first)
  const sent = await fetch(`http://127.0.0.1:${served.port}/api/2/json/public/1234/${first}`, {
    ...{ method: 'POST', body: '{}' },
  })
  assert.equal(sent.status, 200)
  const { callback_hash: second } = await one(admin, op('modify'))
  assert.notEqual(second, first)
  assert.equal((await one(admin, op('delete'))).callback_hash, null)
})

test('ops on tasks and on processes are applied in their order, each on its own', async () => {
  const task = (ref: string): Json => ({
    type: 'create',
    obj: 'task',
    conv_id: 1234,
    ref,
    data: {},
  })
  const pause = (status: string): Json => ({ type: 'modify', obj: 'conv', obj_id: 1234, status })
  await served.engine.processes.share('1234', admin)
  const unknown_op = { type: 'list', obj: 'snapshots' }
  const ops = [task('m1'), pause('paused'), task('m2'), unknown_op, pause('active'), task('m3')]
  const procs = (await send(admin, ...ops)).map(({ proc }) => proc)
  assert.deepEqual(procs, ['ok', 'ok', 'conveyor_is_not_active', 'error', 'ok', 'ok'])
})

test('the same signed bytes make one process, and what they read is read again', async () => {
  const op = { type: 'create', obj: 'conv', title: 'once', conv_type: 'process' }
  const ops = [op, { type: 'list', obj: 'folder', obj_id: 0 }]
  const timestamp = String(Math.floor(served.engine.clock.now_ms() / 1000) - 7)
  const how = { user: admin, secret: secrets.get(admin) as string, version: 2, timestamp } as const
  const answers: string[] = []
  for (let times = 0; times < 2; times++) {
    answers.push((await served.send(JSON.stringify({ ops }), how)).body)
  }
  assert.equal(answers[0], answers[1])
  const listed = (await served.engine.processes.list()).filter(({ title }) => title === 'once')
  assert.equal(listed.length, 1)
})

test('a request with an op on a task is done once, whatever else its ops read', async () => {
  const secret = secrets.get('13000') as string
  const task = { obj: 'task', conv_id: 1234, ref: 'mixed' }
  const long = 'x'.repeat(70_000)
  await served.engine.create({ conv_id: '1234', ref: 'mixed', data: {} })
  const ops = [
    { ...task, type: 'modify', data: { n: 1 } },
    { type: 'list', obj: long },
    { type: 'list', obj: 'folder', obj_id: 0 },
  ]
  const how = {
    user: '13000',
    secret,
    version: 2,
    timestamp: String(Math.floor(served.engine.clock.now_ms() / 1000) - 9),
  } as const
  const answers = []
  for (let n = 0; n < 2; n++) {
    answers.push((await served.send(JSON.stringify({ ops }), how)).body)
  }
  assert.equal((JSON.parse(answers[0] as string) as { ops: Entry[] }).ops[0]?.proc, 'ok')
  assert.equal(answers[1], answers[0])
})

test('an id that a kept answer has no room for is refused with the whole request', async () => {
  const op = { type: 'modify', obj: 'conv', obj_id: 1234, title: 'other', id: 'x'.repeat(70_000) }
  assert.match(await text(admin, [op]), /^\{"request_proc":"format_error"/)
  assert.notEqual((await one(editor, { type: 'show', obj: 'conv', obj_id: 1234 })).title, 'other')
})

test('the tasks of a node are listed, and what happened to one', async () => {
  const { engine } = served
  await engine.processes.put(
    definition(9, [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
      node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'end' }]),
      node('end', 2, []),
    ]),
  )
  await engine.processes.share('9', '13000')
  const ids: string[] = []
  for (const ref of ['a', 'b', 'c']) {
    const op = { type: 'create', obj: 'task', conv_id: 9, ref, data: { n: 1 } }
    ids.push((await one('13000', op)).obj_id as string)
  }
  const list = (more: Json): Json => ({ type: 'list', obj: 'node', conv_id: 9, ...more })
  const refs = async (more: Json): Promise<unknown[]> =>
    ((await one('13000', list(more))).list as Entry[]).map(({ ref }) => ref)
  const { count, count_delayed } = await one('13000', list({ obj_id: 'wait' }))
  assert.deepEqual([count, count_delayed], [3, 3])
  assert.deepEqual(await refs({ obj_id: 'wait' }), ['a', 'b', 'c'])
  assert.deepEqual(await refs({ obj_id: 'wait', sort: 'DESC', limit: 1, offset: 1 }), ['b'])
  const filters = [{ name: 'ref', value: 'c', fun: 'eq' }]
  assert.deepEqual(await refs({ obj_id: 'wait', filters }), ['c'])
  await engine.modify({ conv_id: '9', ref: 'a', data: { done: true } })
  assert.deepEqual(await refs({ obj_id: 'end' }), ['a'])
  assert.deepEqual(await refs({ obj_id: 'wait' }), ['b', 'c'])
  const op = { type: 'list', obj: 'task_history', conv_id: '9', obj_id: ids[0] }
  const { ref, list: moves } = await one('13000', op)
  const seen = (moves as Entry[]).map((row) => [row.node_id, row.user_id, row.status])
  assert.equal(ref, 'a')
  assert.deepEqual(seen.at(0), ['start', 13000, 'processed'])
  assert.deepEqual(seen.at(-1), ['end', null, 'processed'])
})

/** [op, proc, description] */
const refused_reads: readonly (readonly [Json, string, string])[] = [
  [{ obj: 'node', obj_id: 'no' }, 'error', 'Object node with id no does not exist'],
  [
    { obj: 'node', obj_id: 'end', offset: 100_001 },
    ...(['error', 'Value is not valid. offset: a whole number from 0 to 100000'] as const),
  ],
  [
    { obj: 'node', obj_id: 'end', filters: [{ name: 'x', value: '1' }] },
    ...(['error', 'Value is not valid. filters: one filter by ref, fun eq'] as const),
  ],
  [{ obj: 'task_history', obj_id: 'f'.repeat(24) }, 'not_found_task', 'not found task'],
  [{ obj: 'node', obj_id: 'code', conv_id: 7 }, 'access_denied', 'user: 13000, conv_id: 7'],
]

for (const [op, proc, description] of refused_reads) {
  test(`list ${op.obj} is refused: ${description}`, async () => {
    const answer = await one('13000', { type: 'list', conv_id: 1234, ...op })
    assert.deepEqual([answer.proc, answer.description], [proc, description])
  })
}

interface Signed {
  readonly user: string
  readonly secret?: string
}

function signedPath({ user, secret = secrets.get(user) }: Signed, body: string): string {
  const time = String(Math.floor(served.engine.clock.now_ms() / 1000))
  return `${user}/${time}/${signatureOf(time, secret as string, body)}`
}

const download = (user: string, op: Json): Promise<Entry> => at('download', user, op)

async function at(service: string, user: string, op: unknown): Promise<Entry> {
  const body = JSON.stringify({ ops: [op] })
  const path = `/api/2/${service}/${signedPath({ user }, body)}`
  const answer = await fetch(`http://127.0.0.1:${served.port}${path}`, { method: 'POST', body })
  return ((await answer.json()) as { ops: Entry[] }).ops[0] as Entry
}

const get = (url: string, by: Signed, method = 'GET'): Promise<Response> =>
  fetch(`${url}/${signedPath(by, '')}`, { method })

test('a scheme is downloaded from an address for the user who asked', async () => {
  const op = { obj: 'obj_scheme', obj_id: 7, obj_type: 'conv', format: 'json', async: true }
  const { proc, download_url } = await download(admin, op)
  assert.equal(proc, 'ok')
  const url = download_url as string
  assert.match(url, /\/user_downloads\/conv_7_[0-9]+_00000001[0-9a-f]{56}\.json$/)
  for (let times = 0; times < 2; times++) {
    const answer = await get(url, { user: admin })
    assert.equal(answer.status, 200)
    const [scheme] = (await answer.json()) as [Entry]
    assert.equal(scheme.title, 'process 7')
    assert.ok(!JSON.stringify(scheme).includes('hush'))
  }
  assert.equal((await get(url, { user: admin, secret: 'x' })).status, 401)
  assert.equal((await get(url, { user: editor })).status, 404)
  assert.equal((await get(url.replace('_00000001', '_00000002'), { user: admin })).status, 404)
  assert.equal((await get(url.replace('conv_7_', 'conv_1234_'), { user: admin })).status, 404)
  assert.equal((await get(url.replace('conv_7_1', 'conv_7_2'), { user: admin })).status, 404)
  assert.equal((await get(url, { user: admin }, 'POST')).status, 405)
  await served.engine.users.administer(admin, false)
  assert.equal((await get(url, { user: admin })).status, 404)
  await served.engine.users.administer(admin, true)
})

/** [service, op, the answer] */
const not_offered: readonly (readonly [string, unknown, Json])[] = [
  [
    'merge',
    { type: 'create', obj: 'obj_scheme', obj_id: 7, obj_to_id: 8 },
    {
      id: '',
      obj: 'obj_scheme',
      obj_id: 7,
      proc: 'error',
      description: 'merge is not offered here',
    },
  ],
  [
    'compare',
    { type: 'compare', obj: 'version', id: 3 },
    { id: 3, obj: 'version', proc: 'error', description: 'compare is not offered here' },
  ],
  ['copy', {}, { id: '', proc: 'error', description: 'copy is not offered here' }],
  [
    'copy',
    { type: 'create', obj: 'task', conv_id: 1234, ref: 'copied', data: {} },
    { id: '', obj: 'task', proc: 'error', description: 'copy is not offered here' },
  ],
]

for (const [service, op, answer] of not_offered) {
  test(`${service} of ${JSON.stringify(op)} is refused in the form of an op`, async () => {
    assert.deepEqual(await at(service, '13000', op), answer)
    assert.equal(await served.engine.task({ conv_id: 1234, ref: 'copied' }), undefined)
  })
}

/** [user, op, description] */
const refused_downloads: readonly (readonly [string, Json, string])[] = [
  ['13000', { obj: 'obj_scheme', obj_id: 1234 }, 'user: 13000, conv_id: 1234'],
  [
    editor,
    { obj: 'obj_scheme', obj_id: 1234, format: 'tar' },
    'Value is not valid. format: json or zip',
  ],
  [editor, { obj: 'obj_scheme', obj_id: 4, obj_type: 'stage' }, 'user: 13002, conv_id: 4'],
  [editor, { obj: 'snapshots' }, 'bad object'],
]

for (const [user, op, description] of refused_downloads) {
  test(`a download is refused: ${description}`, async () => {
    assert.equal((await download(user, op)).description, description)
  })
}

test('the address of a download holds for ten minutes', async () => {
  const { engine } = served
  const { download_url } = await download(admin, { obj: 'obj_scheme', obj_id: 7 })
  const [, made = ''] = /conv_7_([0-9]+)_/.exec(download_url as string) ?? []
  const [, token = ''] = /([0-9a-f]{64})\.json/.exec(download_url as string) ?? []
  const how = { of: 'conv', format: 'json' } as const
  const file = { ...how, obj_id: '7', made_ms: Number(made), token }
  const at = (ms: number): Promise<unknown> => {
    const later = { ...engine, submitOthers: atTime(engine, Number(made) + ms) }
    return fileContent(later, file, { user: admin })
  }
  assert.notEqual(await at(600_000), undefined)
  assert.equal(await at(600_001), undefined)
  assert.equal(await at(-1), undefined)
})

/** As if the transaction began at another time. */
function atTime(engine: ServedEngine, now_ms: number): ServedEngine['submitOthers'] {
  return (ops, caller, { apply, is_change }) =>
    engine.submitOthers(ops, caller, {
      apply: (tx, some, by) => apply(Object.assign(Object.create(tx), { now_ms }), some, by),
      is_change,
    })
}

test('a right that is taken away is gone at the next request', async () => {
  const { engine } = served
  const op = { type: 'list', obj: 'projects' }
  await engine.users.administer(editor, true)
  assert.equal((await one(editor, op)).proc, 'ok')
  await engine.users.administer(editor, false)
  assert.equal((await one(editor, op)).proc, 'access_denied')
})
