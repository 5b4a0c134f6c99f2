/**
 * The ops on tasks that tools of the public service send beside create, modify and show: `get`,
 * `delete`, and a process named by its alias. Over signed HTTP in both versions, and over gRPC.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { parseOp } from '../src/codec/op.ts'
import { emitRefusedOps } from '../src/core/refusals.ts'
import { openGrpc } from './support/grpc-server.ts'
import { definition, node, openHttp, type TestHttp } from './support/http-server.ts'

type Json = Readonly<Record<string, unknown>>
type Entry = Record<string, unknown>

const editor = '13002'
let served: TestHttp
let secret = ''

before(async () => {
  served = await openHttp()
  const { engine } = served
  secret = (await engine.users.add({ id: editor })).secret
  await engine.processes.share('1234', editor, ['show', 'edit'])
  await engine.processes.put(
    definition(7, [node('start', 1, [{ type: 'go', to_node_id: 'end' }]), node('end', 2, [])]),
  )
  await engine.processes.share('7', editor, ['create', 'show', 'edit'])
  await engine.processes.setAlias('orders', '1234')
  await engine.processes.setAlias('quick', '7')
})
after(() => served.close())

async function send(user: string, ops: readonly Json[], version: 1 | 2 = 2): Promise<Entry[]> {
  const how = user === editor ? { user, secret, version } : { version }
  const { body } = await served.send(JSON.stringify({ ops }), how)
  return (JSON.parse(body) as { ops: Entry[] }).ops
}

const one = async (user: string, op: Json, version?: 1 | 2): Promise<Entry> =>
  (await send(user, [op], version))[0] as Entry

let refs = 0
async function made(conv_id = '1234'): Promise<{ ref: string; obj_id: string }> {
  const ref = `r${++refs}`
  const { obj_id } = await served.engine.create({ conv_id, ref, data: { n: refs } })
  return { ref, obj_id: obj_id as string }
}

describe('get', () => {
  for (const version of [1, 2] as const) {
    test(`is show in every member, version ${version}`, async () => {
      const { ref, obj_id } = await made()
      for (const by of [{ ref }, { obj_id }]) {
        const op = { obj: 'task', conv_id: '1234', ...by }
        const got = await one(editor, { ...op, type: 'get' }, version)
        assert.equal(got.proc, 'ok')
        assert.deepEqual(got, await one(editor, { ...op, type: 'show' }, version))
      }
    })
  }
})

describe('a process by its alias', () => {
  const alias = { obj: 'task', obj_alias: 'orders' }
  test('create, modify, show, get', async () => {
    const ref = `r${++refs}`
    const user = '13000'
    const ops = [
      { ...alias, type: 'create', ref, data: { a: 1 } },
      { ...alias, type: 'modify', ref, data: { b: 2 } },
      { ...alias, type: 'show', ref },
      { ...alias, type: 'get', ref, stage_id: 0, project_id: 0 },
    ]
    const results = await send(user, ops)
    assert.deepEqual(
      results.map(({ proc, ref }) => [proc, ref]),
      ops.map(() => ['ok', ref]),
    )
    assert.deepEqual(results[3]?.data, { a: 1, b: 2 })
  })

  /** [what, op, proc, description] */
  const rows: readonly (readonly [string, Json, string, string?])[] = [
    ['conv_id decides', { conv_id: 1234, obj_alias: 'quick' }, 'ok'],
    ['no such alias', { obj_alias: 'none' }, 'access_denied', 'user: 13000, conv_id: @none'],
    [
      'a stage that has no such alias',
      { obj_alias: 'orders', stage_id: 5 },
      ...(['access_denied', 'user: 13000, conv_id: @orders'] as const),
    ],
    [
      'stages by names',
      { obj_alias: 'orders', project_short_name: 'p', stage_short_name: 's' },
      ...(['access_denied', 'user: 13000, conv_id: @orders'] as const),
    ],
    ['no right on it', { obj_alias: 'quick' }, 'access_denied', 'user: 13000, conv_id: 7'],
    ['no text', { obj_alias: 7 }, 'error', 'Value is not valid. obj_alias: 7'],
    ['empty', { obj_alias: '' }, 'error', 'Value is not valid. obj_alias: ""'],
    ['neither', {}, 'error', "Key 'conv_id' is required"],
    [
      'a stage of another type',
      { obj_alias: 'orders', stage_id: {} },
      ...(['error', 'Value is not valid. stage_id: an object'] as const),
    ],
  ]
  for (const [what, members, proc, description] of rows) {
    test(what, async () => {
      const op = { type: 'create', obj: 'task', ref: `r${++refs}`, data: {}, ...members }
      const result = await one('13000', op)
      assert.deepEqual([result.proc, result.description], [proc, description])
      assert.equal('conv_id' in result || 'obj_alias' in result, false)
    })
  }

  test('a refused op is logged by the alias alone', () => {
    const op = parseOp(
      { type: 'show', obj: 'task', obj_alias: 'none', stage_id: 9, ref: 'x' },
      served.engine.limits,
    )
    const said: unknown[] = []
    const refused = { ref: 'x', obj: 'task', proc: 'access_denied' } as const
    emitRefusedOps((_name, row) => void said.push(row), 'http', '7', [op], [refused])
    assert.deepEqual(said, [{ server: 'http', code: 'access_denied', conv_id: '@none', user: '7' }])
  })
})

describe('delete', () => {
  const task = { type: 'delete', obj: 'task' }

  test('ends a live task as canceled and frees its ref, in the words of both versions', async () => {
    for (const version of [1, 2] as const) {
      const { ref, obj_id } = await made()
      const op = { ...task, conv_id: 1234, obj_id, node_id: 'wait' }
      const { body } = await served.send(JSON.stringify({ ops: [op] }), {
        ...{ user: editor, secret, version },
      })
      const done =
        version === 1
          ? `{"obj":"task","obj_id":"${obj_id}","proc":"ok"}`
          : `{"id":"","proc":"ok","obj":"task","obj_id":"${obj_id}"}`
      assert.equal(body, `{"request_proc":"ok","ops":[${done}]}`)
      const { status } = (await served.engine.task({ conv_id: 1234, obj_id })) ?? {}
      assert.equal(status, 'canceled')
      const again = await served.engine.create({ conv_id: 1234, ref, data: { again: true } })
      assert.notEqual(again.obj_id, obj_id)
    }
    assert.deepEqual((await served.engine.check()).breaches, [])
  })

  test('removes an ended task, by its ref and by its alias too', async () => {
    for (const by of [{ conv_id: 7 }, { obj_alias: 'quick' }]) {
      const { ref, obj_id } = await made('7')
      const { proc, obj_id: deleted } = await one(editor, { ...task, ...by, ref })
      assert.deepEqual([proc, deleted], ['ok', obj_id])
      assert.equal(await served.engine.task({ conv_id: 7, obj_id }), undefined)
      const again = await one(editor, { ...task, ...by, ref, id: 'again' })
      assert.equal(again.proc, 'not_found_task')
    }
    assert.deepEqual((await served.engine.check()).breaches, [])
  })

  test('sent again in the same signed bytes it deletes once', async () => {
    const { obj_id } = await made()
    const body = JSON.stringify({ ops: [{ ...task, conv_id: 1234, obj_id }] })
    const timestamp = String(Math.floor(served.engine.clock.now_ms() / 1000) - 3)
    const how = { user: editor, secret, timestamp, version: 2 } as const
    const first = await served.send(body, how)
    assert.match(first.body, /"proc":"ok"/)
    assert.equal((await served.send(body, how)).body, first.body)
  })

  /** [what, user, members, proc, description] */
  const rows: readonly (readonly [string, string, Json, string, RegExp])[] = [
    [
      'without the right',
      '13000',
      { conv_id: 1234 },
      'access_denied',
      /^user: 13000, conv_id: 1234$/,
    ],
    ['of no process', editor, { conv_id: 99 }, 'access_denied', /conv_id: 99$/],
    ['of another process', editor, { conv_id: 7 }, 'not_found_task', /^not found task$/],
    ['in another node', editor, { conv_id: 1234, node_id: 'end' }, 'not_found_task', /not found/],
    ['without a process', editor, {}, 'error', /^Key 'conv_id' is required$/],
    ['without a task', editor, { conv_id: 1234, obj_id: null }, 'error', /^Key 'ref' is required$/],
    ['of a misspelt id', editor, { conv_id: 1234, obj_id: 'x' }, 'error', /^Value is not valid/],
    ['in no text', editor, { conv_id: 1234, node_id: 7 }, 'error', /^Value is not valid. node_id/],
  ]
  for (const [what, user, members, proc, description] of rows) {
    test(`${what} is refused and changes nothing`, async () => {
      const { obj_id } = await made()
      const result = await one(user, { ...task, obj_id, ...members })
      assert.equal(result.proc, proc)
      assert.match(String(result.description), description)
      assert.deepEqual(
        [result.obj, (await served.engine.task({ conv_id: 1234, obj_id }))?.status],
        ['task', 'delayed'],
      )
    })
  }

  test('over gRPC, with the right of the certificate’s user', async () => {
    await using server = await openGrpc()
    const { users, processes } = server.engine
    const client = server.connect()
    const { obj_id } = await server.engine.create({ conv_id: 1234, ref: 'g', data: {} })
    const body = JSON.stringify({ ops: [{ ...task, conv_id: 1234, ref: 'g' }] })
    const procOf = async (): Promise<string> => {
      const request = { body_json: Buffer.from(body), request_key: '' }
      const { answer_json } = await client.call('ApplyJson', request)
      return JSON.parse(answer_json.toString()).ops[0].proc
    }
    assert.equal(await procOf(), 'access_denied', 'a certificate of no user')
    const { id } = await users.add({ id: 13005 })
    await users.bind(id, 'uri:conveyor:test')
    await processes.share('1234', id, ['edit'])
    assert.equal(await procOf(), 'ok')
    assert.equal(
      (await server.engine.task({ conv_id: 1234, obj_id: obj_id as string }))?.status,
      'canceled',
    )
  })
})
