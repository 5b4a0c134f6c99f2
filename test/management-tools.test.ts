/**
 * The sequences of requests that tools of the public service send to pull, create, push, run,
 * inspect, pause and set variables, as one script: over signed HTTP in both versions and over gRPC;
 * and what the library has of it.
 */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signatureOf } from '../src/codec/signature.ts'
import type { ServedEngine } from '../src/engine/served-engine.ts'
import { openEngine } from '../src/open.ts'
import { openGrpc } from './support/grpc-server.ts'
import { openHttp } from './support/http-server.ts'

type Json = Readonly<Record<string, unknown>>
type Entry = Record<string, unknown>

interface Tool extends AsyncDisposable {
  readonly engine: ServedEngine
  send(ops: readonly Json[]): Promise<Entry[]>
  /** What a process is now, as a pull has it. */
  pull(obj_id: unknown): Promise<Entry>
}

const ann = '13001'

async function overHttp(version: 1 | 2): Promise<Tool> {
  const { engine, port, close, send } = await openHttp()
  const { secret } = await engine.users.add({ id: ann, name: 'ann', administer: true })
  const signed = (body: string): string => {
    const time = String(Math.floor(engine.clock.now_ms() / 1000))
    return `${ann}/${time}/${signatureOf(time, secret, body)}`
  }
  return {
    engine,
    async send(ops) {
      const { body } = await send(JSON.stringify({ ops }), { user: ann, secret, version })
      return (JSON.parse(body) as { ops: Entry[] }).ops
    },
    async pull(obj_id) {
      const op = { obj: 'obj_scheme', obj_id, obj_type: 'conv', format: 'json', async: false }
      const body = JSON.stringify({ ops: [{ type: 'create', ...op, with_alias: true }] })
      const path = `http://127.0.0.1:${port}/api/2/download/${signed(body)}`
      const asked = await fetch(path, { method: 'POST', body })
      const { ops } = (await asked.json()) as { ops: Entry[] }
      const file = await fetch(`${ops[0]?.download_url}/${signed('')}`)
      return ((await file.json()) as Entry[])[0] as Entry
    },
    [Symbol.asyncDispose]: close,
  }
}

async function overGrpc(): Promise<Tool> {
  const server = await openGrpc()
  const { engine } = server
  await engine.users.add({ id: ann, name: 'ann', administer: true })
  await engine.users.bind(ann, 'uri:conveyor:test')
  const client = server.connect()
  const send: Tool['send'] = async (ops) => {
    const request = { body_json: Buffer.from(JSON.stringify({ ops })), request_key: '' }
    const { answer_json } = await client.call('ApplyJson', request)
    return (JSON.parse(answer_json.toString()) as { ops: Entry[] }).ops
  }
  return {
    engine,
    send,
    async pull(obj_id) {
      const ops = [{ type: 'get', obj: 'obj_scheme', obj_id, obj_type: 'conv' }]
      const [{ scheme } = {}] = await send(ops)
      return (scheme as Entry[])[0] as Entry
    },
    [Symbol.asyncDispose]: () => server.close(),
  }
}

const ways: readonly (readonly [string, () => Promise<Tool>])[] = [
  ['HTTP, version 1', () => overHttp(1)],
  ['HTTP, version 2', () => overHttp(2)],
  ['gRPC', overGrpc],
]

const go = (to_node_id: unknown): Json => ({ type: 'go', to_node_id })
const idsOf = (rows: unknown): unknown[] => (rows as Entry[]).map(({ obj_id }) => obj_id)

for (const [way, open] of ways) {
  test(`tools create, push, run, inspect, pause and set variables: ${way}`, async () => {
    await using tool = await open()
    const { engine, send, pull } = tool
    /** Each of one request; a tool ends where one is not ok. */
    const all = async (ops: readonly Json[]): Promise<Entry[]> => {
      const answers = await send(ops)
      for (const { proc, description } of answers) assert.equal(proc, 'ok', String(description))
      return answers
    }
    const one = async (op: Json): Promise<Entry> => (await all([op]))[0] as Entry

    // create
    const { obj_id: conv_id } = await one({
      ...{ type: 'create', obj: 'conv', title: 'Orders', conv_type: 'process', status: 'active' },
      ...{ folder_id: 0, description: '', create_mode: 'without_nodes', company_id: '' },
    })
    assert.equal(typeof conv_id, 'number')
    const read = { type: 'list', obj: 'conv', obj_id: conv_id, include_nodes: true }

    // push
    const version = 1_700_000_001
    const of = { conv_id, version }
    await one({ type: 'list', obj: 'aliases', stage_id: 0, project_id: 0 })
    const before = await one(read)
    assert.deepEqual([before.list, (before.commits as Entry).version], [[], 0])
    const [snapshots, commits, nonsense] = await send([
      { type: 'list', obj: 'snapshots', obj_id: conv_id },
      { type: 'list', obj: 'commits', conv_id },
      { type: 'list', obj: 'qqq', obj_id: conv_id },
    ])
    assert.equal(commits?.proc, 'ok')
    assert.equal(JSON.stringify(snapshots).replace('snapshots', 'qqq'), JSON.stringify(nonsense))
    assert.deepEqual([snapshots?.proc, snapshots?.description], ['error', 'bad object'])
    const node = { type: 'create', obj: 'node', ...of, description: '' }
    const made = await all([
      { ...node, obj_type: 1, title: 'Start', id: 'a' },
      { ...node, obj_type: 0, title: 'Code', id: 'b' },
      { ...node, obj_type: 0, title: 'Wait', id: 'c' },
      { ...node, obj_type: 2, title: 'Done', id: 'd' },
    ])
    const [start, code, wait, done] = idsOf(made)
    assert.deepEqual(
      made.map(({ id }) => id),
      ['a', 'b', 'c', 'd'],
    )
    await one({ type: 'modify', obj: 'conv_params', obj_id: conv_id, params: [], ref_mask: false })
    const src = 'data.b = data.a + 1;'
    const write = { type: 'modify', obj: 'node', ...of }
    const api_code = { type: 'api_code', lang: 'js', src, err_node_id: done }
    await all([
      { ...write, obj_id: start, logics: [go(code)], semaphors: [] },
      { ...write, obj_id: code, logics: [api_code, go(wait)], semaphors: [] },
      { ...write, obj_id: wait, logics: [{ type: 'api_callback' }, go(done)], position: [1, 2] },
      { ...write, obj_id: done, options: JSON.stringify({ save_task: true }) },
    ])
    const of_code = { obj: 'api_code', conv_id, node_id: code, lang: 'js', env: 'production' }
    for (const type of ['load', 'compile']) {
      assert.equal((await one({ type, ...of_code, src })).description, '')
    }
    const [broken] = await send([{ type: 'compile', ...of_code, src: 'data.b = ;' }])
    assert.deepEqual(Object.keys(broken?.errors as object), [code])
    assert.equal(((await one(read)).commits as Entry).version, version)
    const confirmed = await one({ type: 'confirm', obj: 'commit', ...of })
    const after = await one(read)
    assert.equal(after.last_confirmed_version, confirmed.version)
    assert.deepEqual(idsOf(after.list), [start, code, wait, done])
    const scheme = (await pull(conv_id)).scheme as { nodes: Entry[] }
    assert.deepEqual(
      scheme.nodes.map(({ id, obj_type }) => [id, obj_type]),
      [
        [start, 1],
        [code, 0],
        [wait, 0],
        [done, 2],
      ],
    )

    // a push that fails leaves nothing behind
    const second = { conv_id, version: version + 1 }
    await one({ type: 'modify', obj: 'node', ...second, obj_id: wait, logics: [go('nowhere')] })
    const [failed] = await send([{ type: 'confirm', obj: 'commit', ...second }])
    assert.deepEqual(Object.keys(failed?.errors as object), [wait])
    await one({ type: 'delete', obj: 'commits', ...second })
    const left = await one(read)
    assert.equal((left.commits as Entry).version, 0)
    assert.equal(left.last_confirmed_version, after.last_confirmed_version)
    assert.equal(left.change_time, after.change_time)

    // run
    const task = { obj: 'task', conv_id, ref: 'order-1' }
    const { obj_id } = await one({ ...task, type: 'create', data: { a: 1 }, action: 'user' })
    const show = { ...task, type: 'show' }
    const until = async (node_id: unknown): Promise<Entry> => {
      for (let left_tries = 200; ; left_tries--) {
        const shown = await one(show)
        if (shown.node_id === node_id || left_tries === 0) return shown
        await new Promise((resume) => setTimeout(resume, 10))
      }
    }
    assert.deepEqual((await until(wait)).data, { a: 1, b: 2 })

    // inspect
    const at_wait = await one({ type: 'list', obj: 'node', conv_id, obj_id: wait, limit: 10 })
    assert.deepEqual(idsOf(at_wait.list), [obj_id])
    await one({ ...task, type: 'modify', data: { paid: true } })
    assert.deepEqual((await until(done)).data, { a: 1, b: 2, paid: true })
    const history = await one({ type: 'list', obj: 'task_history', conv_id, obj_id })
    const passed = new Set((history.list as Entry[]).map(({ node_id }) => node_id))
    assert.deepEqual([...passed], [start, code, wait, done])
    const now_s = Math.floor(engine.clock.now_ms() / 1000)
    const window = { start: now_s - 600, end: now_s + 600 }
    const stat = await one({ type: 'show', obj: 'stat', conv_id, ...window, group: 'all' })
    assert.deepEqual(
      (stat.data as Entry[]).map((row) => [row.id, row.in, row.out]),
      [
        [start, 1, 1],
        [code, 1, 1],
        [wait, 1, 1],
        [done, 1, 0],
      ],
    )
    await one({ type: 'delete', obj: 'task', conv_id, obj_id, node_id: done })
    const [gone] = await send([show])
    assert.notEqual(gone?.proc, 'ok')

    // pause, resume, move
    for (const [status, is_changed] of [
      ['paused', true],
      ['paused', false],
      ['active', true],
    ] as const) {
      const set = { type: 'modify', obj: 'conv', obj_id: conv_id, status }
      // With an id of its own: the same bytes in one second are one request.
      const changed = await one({ ...set, id: `${status} ${is_changed}` })
      assert.equal(changed.is_changed, is_changed)
      assert.equal((await one({ type: 'show', obj: 'conv', obj_id: conv_id })).status, status)
    }
    await one({ type: 'link', obj: 'folder', obj_id: conv_id, obj_type: 'conv', folder_id: 0 })
    const { parent_obj_id } = await one({ type: 'show', obj: 'conv', obj_id: conv_id })
    assert.equal(parent_obj_id, 0)

    // variable
    const root = await one({ type: 'show', obj: 'folder', obj_id: 0 })
    assert.deepEqual([root.obj_id, root.parent_obj_id], [0, 0])
    const list = { type: 'list', obj: 'env_var', stage_id: 0, project_id: 0 }
    const variable = await one({
      ...{ type: 'create', obj: 'env_var', short_name: 'url', title: 'url', value: 'x' },
      ...{ env_var_type: 'visible', data_type: 'raw', stage_id: 0, project_id: 0 },
      scopes: [{ type: '*', fields: '*' }],
    })
    const named = { obj: 'env_var', obj_id: variable.obj_id, stage_id: 0, project_id: 0 }
    await one({ ...named, type: 'modify', short_name: 'url', value: 'y' })
    const rows = async (): Promise<unknown[]> =>
      ((await one(list)).list as Entry[]).map(({ short_name, value }) => [short_name, value])
    assert.deepEqual(await rows(), [['url', 'y']])
    await one({ ...named, type: 'delete' })
    assert.deepEqual(await rows(), [])

    // pull all
    const folder = (await one({ type: 'list', obj: 'folder', obj_id: 0 })).list as Entry[]
    for (const entry of folder) {
      assert.equal(entry.obj_type, 'conv')
      assert.equal((await pull(entry.obj_id)).title, entry.title)
    }
    assert.deepEqual((await engine.check()).breaches, [])
  })
}

test('the library pushes as a draft, runs and inspects', async () => {
  const engine = await openEngine(':memory:')
  try {
    await engine.processes.put({
      ...{ obj_type: 1, obj_id: 7, title: 'Orders', conv_type: 'process', status: 'active' },
      scheme: {
        nodes: [
          { id: 'start', obj_type: 1, condition: { logics: [go('done')], semaphors: [] } },
          { id: 'done', obj_type: 2, condition: { logics: [], semaphors: [] } },
        ],
      },
    })
    const draft = engine.processes.draft(7)
    const condition = (to: string): Json => ({ logics: [go(to)], semaphors: [] })
    await draft.putNode({ id: 'start', obj_type: 1, condition: condition('wait') })
    assert.deepEqual(
      (await draft.check()).mistakes.map(({ node_id }) => node_id),
      ['start'],
    )
    const logics = [{ type: 'api_callback' }, go('done')]
    await draft.putNode({ id: 'wait', obj_type: 0, condition: { logics, semaphors: [] } })
    await draft.putNode({
      ...{ id: 'done', obj_type: 2, options: JSON.stringify({ save_task: true }) },
      condition: { logics: [], semaphors: [] },
    })
    assert.equal((await draft.confirm()).version, 2)
    await engine.create({ conv_id: 7, ref: 'a', data: { a: 1 } })
    assert.equal((await engine.task({ conv_id: 7, ref: 'a' }))?.node_id, 'wait')
    await engine.modify({ conv_id: 7, ref: 'a', data: { b: 2 } })
    const task = await engine.task({ conv_id: 7, ref: 'a' })
    assert.deepEqual([task?.node_id, task?.data], ['done', { a: 1, b: 2 }])
    const passed = new Set(task?.history?.map(({ node_id }) => node_id))
    assert.deepEqual([...passed], ['start', 'wait', 'done'])
    await draft.putNode({ id: 'wait', obj_type: 0, title: 'x', condition: condition('nowhere') })
    await draft.discard()
    assert.deepEqual(await engine.processes.drafts(7), [])
    assert.equal((await engine.processes.show(7)).version, 2)
  } finally {
    await engine.close()
  }
})
