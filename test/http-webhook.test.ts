/**
 * Addresses that need no signature (wire 1.11): webhooks and the callback addresses of nodes. What
 * opens them, what a request to them does, and that a guess learns nothing.
 */
import assert from 'node:assert/strict'
import { readFile, rename } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { docOfForm } from '../src/codec/form-body.ts'
import { isFault } from '../src/core/faults.ts'
import type { JsonObject } from '../src/core/model.ts'
import { serveHttp } from '../src/http.ts'
import { openEngine } from '../src/open.ts'
import { type Answer, arrived, connectRaw, exchange } from './support/http-raw.ts'
import {
  conv_id,
  openHttp,
  process_definition,
  type TestHttp,
  user,
} from './support/http-server.ts'
import { fileHarness } from './support/model-setup.ts'
import { tasksOf } from './support/tasks-of.ts'

const hash = 'a'.repeat(40)
const webhook_path = /^\/api\/1\/json\/public\/1234\/[0-9a-f]{40}$/

function bytesOf(path: string, body: string | Buffer, headers: readonly string[] = []): Buffer {
  const lines = ['Host: x', `Content-Length: ${Buffer.byteLength(body)}`, ...headers]
  const head = `POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), Buffer.from(body)])
}

function post(server: TestHttp, path: string, body: string | Buffer, headers?: readonly string[]) {
  return exchange(server.port, bytesOf(path, body, headers))
}

/** The whole fault, or the result of the op without its ids. */
function told({ body }: Answer): string {
  const { request_proc, ops } = JSON.parse(body) as { request_proc: string; ops: JsonObject }
  if (request_proc !== 'ok') return request_proc
  const { proc, key, description } = ops
  return [proc, key, proc === 'ok' ? undefined : description].filter(Boolean).join(': ')
}

/** Opens the webhook of the process and gives its path. */
async function opened(server: TestHttp, change = { address: 'new' } as const): Promise<string> {
  const { address } = await server.engine.processes.webhook(conv_id, change)
  return new URL(address as string).pathname
}

async function withHttp(
  fn: (server: TestHttp) => Promise<void>,
  options: Parameters<typeof openHttp>[0] = {},
): Promise<void> {
  const server = await openHttp(options)
  try {
    await fn(server)
    assert.deepEqual((await server.engine.check()).breaches, [])
  } finally {
    await server.close()
  }
}

async function dataOf({ engine }: TestHttp): Promise<unknown[]> {
  return (await tasksOf(engine, conv_id)).map(({ data_text }) => JSON.parse(data_text))
}

test('a webhook is open or closed from the next request on, whatever changes it', () =>
  withHttp(async (server) => {
    const { processes } = server.engine
    const [first, hidden] = [await opened(server), `/api/1/json/public/1234/${hash}`]
    const found: string[] = []
    const ask = async (path: string): Promise<void> => {
      found.push(told(await post(server, path, '{}')), told(await post(server, hidden, '{}')))
    }
    await ask(first)
    const second = await opened(server)
    await ask(first)
    await ask(second)
    await processes.webhook(conv_id, { address: 'off' })
    await ask(second)
    const third = await opened(server)
    await server.engine.processes.put(process_definition)
    await ask(third)
    for (const { obj_id } of await tasksOf(server.engine, conv_id)) {
      await server.engine.tasks.cancel({ conv_id, obj_id })
    }
    await processes.remove(conv_id)
    await ask(third)
    await server.engine.processes.put(process_definition)
    await ask(third)
    const not = 'not_found'
    const expected = ['ok', not, 'ok', not, 'ok', not, not]
    assert.deepEqual(
      found.filter((_, at) => at % 2 === 0),
      expected,
    )
    assert.deepEqual(new Set(found.filter((_, at) => at % 2 === 1)), new Set([not]))
  }))

describe('a webhook', () => {
  test('makes a task without a user, in both versions and forms, and answers one object', () =>
    withHttp(async (server) => {
      const path = await opened(server)
      assert.match(path, webhook_path)
      const xml = path.replace('json', 'xml')
      for (const [one, sent] of [
        [path, '{"a":"1"}'],
        [path.replace('/1/', '/2/'), '{"a":"1"}'],
        [path.replace('json', 'nvp'), 'a=1'],
        [xml, '<?xml version="1.0"?><a> 1 </a>'],
        [`${xml.replace('/1/', '/2/')}/`, '<a>1</a>'],
        [`${path}?a=1`, '{"a":"1"}'],
        [`${path}/?a=1`, '{"a":"1"}'],
      ] as const) {
        const { status, body } = await post(server, one, sent)
        const [task] = await tasksOf(server.engine, conv_id)
        assert.ok(task)
        const ops = `{"proc":"ok","obj":"task","ref":null,"obj_id":"${task.obj_id}"}`
        assert.deepEqual([status, body], [200, `{"request_proc":"ok","ops":${ops}}`])
        assert.deepEqual([task.data, task.user_id, task.ref], [{ a: '1' }, null, null])
        await server.engine.tasks.cancel({ conv_id, obj_id: task.obj_id })
      }
    }))

  const xml_bodies: readonly (readonly [string | Buffer, JsonObject | RegExp])[] = [
    ['<o id="7"><i>1</i><i>2</i>x</o>', { o: { '@id': '7', i: ['1', '2'], '#value': 'x' } }],
    ['<o>&lt;&#1092;</o>', { o: '<ф' }],
    ['', /no XML/],
    ['{"a":1}', /no XML/],
    ['<a>', /no XML/],
    ['<a/><b/>', /no XML/],
    ['<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', /a document type/],
    ['<a>&b;</a>', /no XML/],
    [Buffer.from([0x3c, 0xff, 0x3e]), /not UTF-8/],
    [`${'<a>'.repeat(99)}${'</a>'.repeat(99)}`, /deeper than/],
  ]
  for (const [sent, wanted] of xml_bodies) {
    test(`XML: ${String(sent).slice(0, 40)}`, () =>
      withHttp(async (server) => {
        const path = (await opened(server)).replace('json', 'xml')
        const { status, body } = await post(server, path, sent)
        const [task] = await tasksOf(server.engine, conv_id)
        if (!(wanted instanceof RegExp)) return assert.deepEqual(task?.data, wanted)
        assert.deepEqual([status, task], [400, undefined])
        const { request_proc, description } = JSON.parse(body)
        assert.equal(request_proc, 'format_error')
        assert.match(description, wanted)
      }))
  }

  test('that is closed, or guessed, is not found, whatever is sent to it', () =>
    withHttp(async (server) => {
      const never = `/api/1/json/public/${conv_id}/${hash}`
      assert.equal(told(await post(server, never, '{}')), 'not_found')
      const old = await opened(server)
      const path = await opened(server)
      assert.notEqual(old, path)
      const right = path.slice(-40)
      const guesses = [
        old,
        never,
        path.replace(conv_id, '404'),
        path.replace(conv_id, 'x'.repeat(4000)),
        path.replace(conv_id, '%31234'),
        path.replace(conv_id, '%e4'),
        path.replace(right, right.toUpperCase()),
        path.replace(right, `${right}0`),
        path.replace(right, right.slice(1)),
        path.replace('json', 'html'),
        path.replace('/1/', '/3/'),
        `${path}//`,
      ]
      const wrong = new Set<string>()
      for (const guess of guesses) {
        for (const body of ['{}', 'no json']) {
          const { status, headers, body: text } = await post(server, guess, body)
          wrong.add(JSON.stringify([status, headers['content-type'], text]))
        }
      }
      assert.equal(wrong.size, 1, 'one answer')
      assert.match([...wrong].join(), /^\[404,.*not_found/)
      assert.equal(told(await post(server, path, '{}')), 'ok')
      await server.engine.processes.webhook(conv_id, { address: 'off' })
      assert.equal(told(await post(server, path, '{}')), 'not_found')
      assert.equal((await server.engine.processes.webhook(conv_id)).address, null)
    }))

  test('takes only POST', () =>
    withHttp(async (server) => {
      const path = await opened(server)
      const answer = await exchange(server.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
      assert.deepEqual([answer.status, answer.headers.allow], [405, 'POST'])
    }))

  // biome-ignore format: a table
  const bodies: readonly (readonly [body: string | Buffer, told: string])[] = [
    ['{"amount":1}',                    'ok'],
    ['{"amount":1,"__proto__":{}}',     'ok'],
    ['',                                'format_error'],
    ['null',                            'format_error'],
    ['[]',                              'format_error'],
    ['"text"',                          'format_error'],
    ['{"amount":1} {}',                 'format_error'],
    ['{"amount":"\\ud800"}',            'format_error'],
    [Buffer.from('{"a":"\xff"}', 'latin1'), 'format_error'],
    [`{"a":${'['.repeat(60)}${']'.repeat(60)},"amount":1}`, 'ok'],
    [`{"a":${'['.repeat(61)}${']'.repeat(61)},"amount":1}`, 'format_error'],
    [`{"a":[${'1,'.repeat(100_000)}1]}`, 'format_error'],
    ['{}',                              "wrong_validate_params: Param: amount, Error: is required"],
    [`{"a":"${'x'.repeat(140_000)}"}`,  'task_size_overflow_limit: Your task size: 140008 bytes, Max available task size: 131072 bytes'],
  ]
  test('refuses what a signed create would, for the same reasons', () =>
    withHttp(async (server) => {
      const path = await opened(server)
      const { definition_text } = await server.engine.processes.show(conv_id)
      const params = [{ name: 'amount', type: 'number', flags: ['required', 'input'] }]
      await server.engine.processes.put({ ...JSON.parse(definition_text), params })
      for (const [body, wanted] of bodies) {
        assert.equal(told(await post(server, path, body)), wanted, String(body).slice(0, 60))
      }
      const paused = 'conveyor_is_not_active: conveyor is not active'
      await server.engine.processes.pause(conv_id)
      assert.equal(told(await post(server, path, '{}')), paused)
    }))

  test('answers in order where requests are pipelined, and bounds their bodies', () =>
    withHttp(
      async (server) => {
        const path = await opened(server)
        const client = await connectRaw(server.port)
        const bodies = ['{"n":1}', '7', '{"n":2}', '{']
        client.send(Buffer.concat(bodies.map((body) => bytesOf(path, body))))
        const seen = []
        for (const _body of bodies) seen.push(told(await client.answer()))
        assert.deepEqual(seen, ['ok', 'format_error', 'ok', 'format_error'])
        client.socket.destroy()
        assert.equal((await dataOf(server)).length, 2)
        assert.equal(told(await post(server, path, `"${'x'.repeat(2000)}"`)), 'body_too_large')
        const coded = await post(server, path, '{}', ['Content-Encoding: gzip'])
        assert.equal(told(coded), 'unsupported_encoding')
      },
      { limits: { body_bytes_max: 1000 } },
    ))

  test('pays by the address of its caller, who has no user', () =>
    withHttp(
      async (server) => {
        const path = await opened(server)
        const seen = []
        for (let n = 0; n < 4; n++) seen.push(told(await post(server, path, '{}')))
        assert.deepEqual(seen.slice(0, 2), ['ok', 'ok'])
        assert.ok(seen.includes('rate_limited'))
        assert.equal(told(await post(server, path.replace(/.{40}$/, hash), '{}')), 'not_found')
        assert.equal(
          JSON.parse((await server.send('{"ops":[]}')).body).request_proc,
          'format_error',
        )
      },
      { limits: { rate_ops_per_s: 2 } },
    ))

  test('may demand the credentials of a user', () =>
    withHttp(async (server) => {
      const { engine, secret } = server
      const path = await opened(server)
      const basic = (text: string): string[] => [
        `Authorization: Basic ${Buffer.from(text).toString('base64')}`,
      ]
      const other = await engine.users.add()
      const info = await engine.processes.webhook(conv_id, { user })
      assert.deepEqual([new URL(info.address as string).pathname, info.user], [path, user])
      // biome-ignore format: a table
      const rows: readonly (readonly [headers: readonly string[], told: string])[] = [
        [basic(`${user}:${secret}`),                        'ok'],
        [basic(`${user}:${secret}`).map((line) => line.replace('Basic', 'basic')), 'ok'],
        [[],                                                'bad_signature'],
        [basic(`${user}:${secret}x`),                       'bad_signature'],
        [basic(`${user}:`),                                 'bad_signature'],
        [basic(`${other.id}:${other.secret}`),              'bad_signature'],
        [[`Authorization: Bearer ${secret}`],               'bad_signature'],
        [['Authorization: Basic'],                          'bad_signature'],
        [['Authorization: Basic %%%'],                      'bad_signature'],
      ]
      for (const [headers, wanted] of rows) {
        assert.equal(told(await post(server, path, '{}', headers)), wanted, headers.join())
      }
      const { status, headers } = await post(server, path, '{}')
      assert.deepEqual([status, headers['www-authenticate']], [401, 'Basic realm="conveyor"'])
      const guess = path.replace(/.{40}$/, hash)
      assert.equal(
        told(await post(server, guess, '{}')),
        'not_found',
        'a guess is not asked for it',
      )
      const next = await opened(server)
      assert.equal(told(await post(server, next, '{}')), 'bad_signature', 'a new address keeps it')
      await engine.users.remove(user)
      const gone = await post(server, next, '{}', basic(`${user}:${secret}`))
      assert.equal(told(gone), 'bad_signature', 'the user is gone')
      const again = engine.processes.webhook(conv_id, { user })
      await assert.rejects(again, { code: 'user_not_found' })
    }))

  test('refuses while the server drains', async () => {
    const server = await openHttp()
    const path = await opened(server)
    const client = await connectRaw(server.port)
    client.send(bytesOf(path, '{}').subarray(0, -1))
    await arrived()
    const closed = server.http.drain()
    client.send('}')
    assert.equal(told(await client.answer()), 'ok', 'what is under way is answered')
    await closed
    client.socket.destroy()
    await server.close()
  })
})

// biome-ignore format: a table
const forms: readonly (readonly [body: string | Buffer, data: string])[] = [
  ['a=1&b=x+y',                    '{"a":"1","b":"x y"}'],
  ['a=1&a=2&b=3&a=',               '{"a":["1","2",""],"b":"3"}'],
  ['a',                            '{"a":""}'],
  ['a=b=c',                        '{"a":"b=c"}'],
  ['=x&&&a=1&',                    '{"":"x","a":"1"}'],
  ['',                             '{}'],
  ['%61=%D1%84&%5B%5D=%22%5C',     '{"a":"ф","[]":"\\"\\\\"}'],
  ['__proto__=1&__proto__=2',      '{"__proto__":["1","2"]}'],
  ['constructor=1&toString=2',     '{"constructor":"1","toString":"2"}'],
  ['a=%00%0a',                     '{"a":"\\u0000\\n"}'],
  ['a=ф',                          '{"a":"ф"}'],
  ['a=%',                          'format_error'],
  ['a=%4',                         'format_error'],
  ['a=%zz',                        'format_error'],
  ['%ff=1',                        'format_error'],
  ['a=%ed%a0%80',                  'format_error'],
  [Buffer.from('a=\xff', 'latin1'), 'format_error'],
  ['a&a&a&a&a&a&a&a&a&a&a',        'format_error'],
]
for (const [body, data] of forms) {
  test(`the form ${String(body)} is ${data}`, () => {
    let read: string
    try {
      read = docOfForm(Buffer.from(body), 10).text
    } catch (error) {
      if (!isFault(error)) throw error
      read = error.code
    }
    assert.equal(read, data)
  })
}
test('a form is read, or refused, in time linear in its length', () => {
  const bytes = 2 ** 20
  const bodies = [
    'a'.repeat(bytes),
    '&'.repeat(bytes),
    'a&'.repeat(bytes / 2),
    `a=${'+'.repeat(bytes)}`,
  ]
  for (const body of bodies) {
    try {
      docOfForm(Buffer.from(body), 100_000)
    } catch (error) {
      assert.ok(isFault(error))
    }
  }
})

/** A process whose node `wait` takes callbacks, and then waits again in `next`. */
function callbackProcess(obj_id: string | number, logic: object, wait = 'wait'): object {
  const node = (id: string, obj_type: number, ...logics: object[]): object => ({
    id, obj_type, title: id, condition: { logics, semaphors: [] }, options: '{"save_task":true}',
  }) // biome-ignore format: short
  const emit = {
    type: 'set_param',
    extra: { url: `{{node[${wait}].public_callback_corezoid}}` },
    extra_type: { url: 'string' },
  }
  const callback = { type: 'api_callback', ...logic }
  const nodes = [
    node('start', 1, emit, { type: 'go', to_node_id: wait }),
    node(wait, 0, callback, { type: 'go', to_node_id: 'next' }),
    node('next', 0, { type: 'api_callback' }, { type: 'go', to_node_id: 'end' }),
    node('end', 2),
  ]
  return { obj_type: 1, obj_id, title: 'Back', conv_type: 'process', scheme: { nodes } }
}

const plain = { obj_type: 1, obj_id: 7, title: 'Plain', conv_type: 'process' }
const start = (logics: object[]): object => ({ id: 'start', obj_type: 1, condition: { logics } })

interface Waiting {
  readonly server: TestHttp
  readonly obj_id: string
  /** As the task itself reads it. */
  readonly path: string
  where(): Promise<string | undefined>
}

async function withWaiting(logic: object, fn: (waiting: Waiting) => Promise<void>): Promise<void> {
  await withHttp(async (server) => {
    const { engine } = server
    await engine.processes.put(callbackProcess(7, logic))
    const { obj_id } = await engine.create({ conv_id: 7, ref: 'r', data: {} })
    const target = { conv_id: 7, obj_id: obj_id as string }
    const task = await engine.task(target)
    assert.ok(task)
    const { url } = task.data as { url: string }
    const where = async () => (await engine.task(target))?.node_id
    const path = new URL(url).pathname
    await fn({ server, obj_id: obj_id as string, path, where })
  })
}

describe('a callback address', () => {
  test('is read by its process, printed for operators, and merges the body into its task', () =>
    withWaiting({}, async ({ server, obj_id, path, where }) => {
      assert.match(path, /^\/api\/1\/json\/callback\/7\/wait\/[0-9a-f]{40}$/)
      const { address, callbacks } = await server.engine.processes.webhook(7)
      assert.deepEqual(
        [address, callbacks[0]],
        [null, { node_id: 'wait', address: `http://127.0.0.1:${server.port}${path}` }],
      )
      const { body } = await post(server, path, `{"obj_id":"${obj_id}","paid":true}`)
      const ops = `{"proc":"ok","obj":"task","ref":"r","obj_id":"${obj_id}"}`
      assert.equal(body, `{"request_proc":"ok","ops":${ops}}`)
      assert.equal(await where(), 'next')
      const task = await server.engine.task({ conv_id: 7, obj_id })
      assert.equal((task?.data as JsonObject | undefined)?.paid, true)
    }))

  const not_there = 'task_not_in_current_sync_callback_node'
  const no_callback = `${not_there}: ${not_there}`
  // biome-ignore format: a table
  const rows: readonly (readonly [logic: object, body: string, told: string, node: string])[] = [
    [{},                                '{"obj_id":"ID"}',                       'ok',             'next'],
    [{},                                '{"ref":"r"}',                           'ok',             'next'],
    [{},                                '{"obj_id":"ID","ref":"x"}',             'ok',             'next'],
    [{},                                '{"ref":"x"}',                           'not_found_task: not found task', 'wait'],
    [{},                                '{"obj_id":"5cf67011094bab1b9a00a31d"}', 'not_found_task: not found task', 'wait'],
    [{},                                '{"obj_id":"ELSEWHERE"}',                'not_found_task: not found task', 'wait'],
    [{},                                '{"obj_id":7}',                          'error: obj_id: Value is not valid. obj_id: 7', 'wait'],
    [{},                                '{"ref":{}}',                            'error: ref: Value is not valid. ref: an object', 'wait'],
    [{},                                '{}',                                    "error: ref: Key 'ref' is required", 'wait'],
    [{},                                '[]',                                    'format_error',   'wait'],
    [{},                                `{"ref":"r","a":"${'x'.repeat(131_072)}"}`, 'task_size_overflow_limit: Your task size: 131204 bytes, Max available task size: 131072 bytes', 'wait'],
    [{ obj_id_path: 'data.order[0].id' }, '{"data":{"order":[{"id":"ID"}]}}',    'ok',             'next'],
    [{ obj_id_path: 'order' },          '{"order":"r"}',                         'ok',             'next'],
    [{ obj_id_path: 'order[0].id' },    '{"obj_id":"ID"}',                       "error: order.0.id: Key 'order.0.id' is required", 'wait'],
    [{ obj_id_path: 'order' },          '{"order":{},"ref":"r"}',                'error: order: Value is not valid. order: an object', 'wait'],
    [{ obj_id_path: '__proto__.id' },   '{}',                                    "error: __proto__.id: Key '__proto__.id' is required", 'wait'],
    [{ obj_id_path: 'a..b' },           '{"ref":"r"}',                           'ok',             'next'],
    [{ obj_id_path: 7, is_sync: 7 },    '{"ref":"r"}',                           'ok',             'next'],
  ]
  for (const [logic, body, wanted, node] of rows) {
    test(`${JSON.stringify(logic)} ${body.slice(0, 50)}: ${wanted}`, () =>
      withWaiting(logic, async ({ server, obj_id, path, where }) => {
        const elsewhere = await server.engine.create({ conv_id, data: {} })
        const sent = body.replace('ID', obj_id).replace('ELSEWHERE', elsewhere.obj_id as string)
        const size = wanted.replace(/size: \d+/, 'size: N')
        const answer = await post(server, path, sent)
        assert.equal(told(answer).replace(/size: \d+/, 'size: N'), size)
        assert.equal(await where(), node)
      }))
  }

  for (const [logic, again] of [
    [{}, no_callback],
    [{ is_sync: true }, no_callback],
    [{ is_sync: 'false' }, 'ok'],
    [{ is_sync: false }, 'ok'],
  ] as const) {
    test(`with ${JSON.stringify(logic)} a task that waits elsewhere answers ${again}`, () =>
      withWaiting(logic, async ({ server, path, where }) => {
        const body = '{"ref":"r","late":1}'
        assert.equal(told(await post(server, path, body)), 'ok')
        assert.equal(told(await post(server, path, body)), again)
        assert.equal(await where(), again === 'ok' ? 'end' : 'next')
        const ended = await post(server, path, body)
        if (again === 'ok') assert.equal(told(ended), 'not_found_task: not found task')
      }))
  }

  test('that is guessed, or of another node or process, is not found', () =>
    withWaiting({}, async ({ server, path, where }) => {
      const guesses = [
        path.replace(/.{40}$/, hash),
        path.replace('/wait/', '/next/'),
        path.replace('/7/', `/${conv_id}/`),
        path.replace('/7/', '/404/'),
        path.replace('/wait/', '/w%61it/'),
        path.replace('json', 'nvp'),
        `${path}//`,
      ]
      for (const guess of guesses) {
        assert.equal(told(await post(server, guess, '{"ref":"r"}')), 'not_found', guess)
      }
      assert.equal(await where(), 'wait')
    }))

  test('of a node that a new definition dropped takes no callback any more', () =>
    withWaiting({}, async ({ server, path, where }) => {
      const moves = { wait: 'later' }
      await server.engine.processes.put(callbackProcess(7, {}, 'later'), { moves })
      assert.match(told(await post(server, path, '{"ref":"r"}')), /^task_not_in_current/)
      assert.equal(await where(), 'later')
      await server.engine.tasks.cancel({ conv_id: 7, ref: 'r' })
      await server.engine.processes.remove(7)
      assert.equal(told(await post(server, path, '{"ref":"r"}')), 'not_found')
    }))

  test('has one spelling where ids need escapes', () =>
    withHttp(async (server) => {
      const { engine } = server
      await engine.processes.put(callbackProcess('за/каз 1', {}, 'Wait ?'))
      await engine.create({ conv_id: 'за/каз 1', ref: 'r', data: {} })
      const task = await engine.task({ conv_id: 'за/каз 1', ref: 'r' })
      const { pathname } = new URL(String((task?.data as JsonObject | undefined)?.url))
      assert.match(pathname, /\/Wait%20%3F\//)
      assert.equal(
        told(await post(server, pathname.replace('%3F', '%3f'), '{"ref":"r"}')),
        'not_found',
      )
      assert.equal(told(await post(server, pathname, '{"ref":"r"}')), 'ok')
    }))

  test('of another process is a right to modify its tasks, and no name in the data gives one', () =>
    withHttp(async ({ engine }) => {
      const url = 'public_callback_corezoid'
      const extra = {
        named: `{{conv[7].node[wait].${url}}}`,
        given: `{{conv[{{conv}}].node[wait].${url}}}`,
        shared: `{{conv[{{mine}}].node[wait].${url}}}`,
        takes_none: `{{conv[7].node[start].${url}}}`,
        by_data: '{{conv[7].node[wait].{{name}}}}',
      }
      const types = Object.keys(extra).map((key) => [key, 'string'])
      const emit = { type: 'set_param', extra, extra_type: Object.fromEntries(types) }
      const logics = [emit, { type: 'api_callback' }]
      await engine.processes.put(callbackProcess(7, {}))
      await engine.processes.put({ ...plain, obj_id: 8, scheme: { nodes: [start(logics)] } })
      await engine.processes.share(8, user)
      const data = { conv: '9', mine: conv_id, name: url }
      await engine.processes.put(callbackProcess(9, {}))
      await engine.processes.share(9, user, ['create', 'show'])
      await engine.create({ conv_id: 8, ref: 'r', data }, { user })
      const read = (await engine.task({ conv_id: 8, ref: 'r' }))?.data as JsonObject
      const right = await engine.processes.webhook(7)
      const shared = await engine.processes.webhook(conv_id)
      assert.deepEqual(read, {
        ...data,
        named: right.callbacks[0]?.address,
        given: '',
        shared: shared.callbacks[0]?.address,
        takes_none: '',
        by_data: '',
      })
    }))

  test('begins with the public URL; without one, and of other nodes, it is missing', async () => {
    for (const [public_url, url] of [
      ['https://x.example/a/', /^https:\/\/x\.example\/a\/api\/1\/json\/callback\/7\/wait\//],
      [undefined, /^$/],
    ] as const) {
      await using engine = await openEngine(':memory:', { public_url })
      await engine.processes.put(callbackProcess(7, {}))
      await engine.create({ conv_id: 7, ref: 'r', data: {} })
      const task = await engine.task({ conv_id: 7, ref: 'r' })
      assert.match(String((task?.data as JsonObject)?.url ?? ''), url)
    }
    await using engine = await openEngine(':memory:', { public_url: 'https://x.example' })
    const http = await serveHttp(engine, { port: 0 })
    assert.equal(http.public_url, 'https://x.example')
    await http.drain()
    await assert.rejects(openEngine(':memory:', { public_url: 'x' }), RangeError)
  })
})

describe('a webhook of a definition', () => {
  const options: readonly (readonly [options: unknown, opens: boolean])[] = [
    ['{"direct_url":true}', true],
    [{ direct_url: true }, true],
    ['{"direct_url":false}', false],
    ['{"direct_url":"true"}', false],
    [undefined, false],
  ]
  const definition = (start: unknown, title = 'Hook'): object => {
    const raw = callbackProcess(7, {}) as { scheme: { nodes: JsonObject[] } }
    const [first, ...nodes] = raw.scheme.nodes
    return { ...raw, title, scheme: { nodes: [{ ...first, options: start }, ...nodes] } }
  }
  for (const [given, opens] of options) {
    test(`${JSON.stringify(given)} ${opens ? 'opens' : 'does not open'} it`, () =>
      withHttp(async ({ engine }) => {
        const put = await engine.processes.put(definition(given))
        assert.equal(put.webhook_opened === true, opens)
        assert.equal((await engine.processes.webhook(7)).address !== null, opens)
      }))
  }

  test('keeps its address over imports, and stays closed once it was closed', () =>
    withHttp(async ({ engine }) => {
      const put = async (start: unknown, title: string) => {
        const put = await engine.processes.put(definition(start, title))
        const { address } = await engine.processes.webhook(7)
        assert.equal(put.webhook_opened, 'ae'.includes(title) ? true : undefined, title)
        return address
      }
      const first = await put('{"direct_url":true}', 'a')
      assert.equal(await put('{"direct_url":true}', 'b'), first)
      assert.equal(await put('{}', 'c'), first)
      await engine.processes.webhook(7, { address: 'off' })
      await engine.processes.pause(7)
      assert.equal(await put('{}', 'd'), null)
      assert.notEqual(await put('{"direct_url":true}', 'e'), null)
      await engine.processes.webhook(7, { address: 'off' })
      assert.equal(await put('{"direct_url":true}', 'f'), null)
      await engine.processes.remove(7)
      assert.notEqual(await put('{"direct_url":true}', 'a'), first, 'a new process, a new address')
    }))
})

describe('the secret of addresses', () => {
  test('is sealed in the file; addresses outlive restarts and a new key', async () => {
    const harness = await fileHarness()
    try {
      const open = () => openEngine(harness.path, { public_url: 'https://x.example' })
      const engine = await open()
      await engine.processes.put(callbackProcess(7, {}))
      const before = await engine.processes.webhook(7, { address: 'new' })
      assert.equal((await engine.users.rekey()).secrets, 1)
      assert.deepEqual(await engine.users.list(), [])
      assert.deepEqual((await engine.check()).breaches, [])
      await engine.close()
      const bytes = await readFile(harness.path)
      assert.equal(bytes.indexOf((before.address as string).slice(-40)), -1)
      const again = await open()
      assert.deepEqual(await again.processes.webhook(7), before)
      await again.close()
      await rename(`${harness.path}.key`, `${harness.path}.away`)
      const locked = await open()
      await assert.rejects(locked.processes.webhook(7), { code: 'key_missing' })
      const http = await serveHttp(locked, { port: 0 })
      for (const address of [before.address, before.callbacks[0]?.address]) {
        const path = new URL(address as string).pathname
        const answer = await exchange(http.address.port, bytesOf(path, '{"ref":"r"}'))
        assert.equal(told(answer), 'store_failed')
      }
      await http.drain()
      await locked.create({ conv_id: 7, ref: 'r', data: {} })
      const task = await locked.task({ conv_id: 7, ref: 'r' })
      assert.equal((task?.data as JsonObject)?.url ?? '', '', 'a task goes on without it')
      await locked.close()
    } finally {
      await harness.remove()
    }
  })

  test('is not made where nothing needs it', async () => {
    const harness = await fileHarness()
    try {
      const engine = await openEngine(harness.path)
      await engine.processes.put({
        ...plain,
        scheme: { nodes: [start([{ type: 'api_callback' }])] },
      })
      await engine.close()
      await assert.rejects(readFile(`${harness.path}.key`), { code: 'ENOENT' })
    } finally {
      await harness.remove()
    }
  })
})
