/**
 * The synchronous form (wire 1.12): a request that is answered once its tasks are, from what is
 * posted to the address in their data or from their end, and what bounds its waits.
 */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Task } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { type HttpOptions, serveHttp } from '../src/http.ts'
import { openEngine } from '../src/open.ts'
import { fakeClock } from './support/fake-clock.ts'
import { type Answer, connectRaw, exchange, type RawClient } from './support/http-raw.ts'
import {
  codeOf,
  conv_id,
  definition,
  node,
  openHttp,
  type Signing,
  type TestHttp,
  user,
} from './support/http-server.ts'
import { go } from './support/processes.ts'
import { tasksOf } from './support/tasks-of.ts'

const set = { type: 'set_param', extra: { n: '{{n}}' }, extra_type: { n: 'number' } }
const api = { type: 'api', method: 'POST', url: '{{__callback_url}}', extra: { got: '{{n}}' } }
const [keeps, drops, fails, calls] = [2001, 2002, 2003, 2004] as const
const end = node('end', 2, [])
const dropping_end = { ...end, options: { save_task: false } }
const definitions = [
  definition(keeps, [node('start', 1, [set, go('end')]), end]),
  definition(drops, [node('start', 1, [set, go('end')]), dropping_end]),
  definition(fails, [node('start', 1, [set, go('end')]), end]),
  definition(calls, [
    node('start', 1, [go('call')]),
    node('call', 0, [api, go('wait')]),
    node('wait', 0, [{ type: 'api_callback' }, go('end')]),
    dropping_end,
  ]),
]

const timed_out = '{"proc":"error","description":"Timeout for create task"}'

interface Sync extends TestHttp {
  readonly clock: ReturnType<typeof fakeClock>
  /** The task that waits, the newest one. */
  waiting(): Promise<Task>
  /** The path of the address in the data of the task that waits. */
  address(): Promise<string>
  /** Posts an answer to an address. */
  answer(path: string, body: string): Promise<Answer>
}

/** A synchronous server with its clock moved by hand; `fn` gets it, and then nothing is left. */
async function withSync(
  fn: (server: Sync) => Promise<void>,
  options: HttpOptions = {},
): Promise<void> {
  const clock = fakeClock(Date.now())
  const limits = { window_ms: 0, ...options.limits }
  const bugs: unknown[] = []
  const onBug = (bug: unknown) => bugs.push(bug)
  const opened = await openHttp({ sync: true, ...options, limits, onBug }, { clock })
  const { engine, port } = opened
  for (const one of definitions) {
    const { conv_id } = await engine.processes.put(one)
    await engine.processes.share(conv_id, user)
  }
  const server: Sync = {
    ...opened,
    clock,
    waiting: () => newestTask(engine),
    async address() {
      return new URL(addressIn(await server.waiting())).pathname
    },
    answer: (path, body) => exchange(port, postOf(path, body)),
  }
  try {
    await fn(server)
    assert.equal(clock.nextWake_ms(), undefined, 'no timer is left')
    assert.deepEqual((await engine.check()).breaches, [])
    assert.deepEqual(bugs, [])
  } finally {
    await opened.close()
  }
}

/** The newest task of process 1234, once there is one. */
async function newestTask(engine: Engine): Promise<Task> {
  for (;;) {
    const task = (await tasksOf(engine, conv_id)).at(-1)
    if (task !== undefined) return task
    await setImmediate()
  }
}

function addressIn({ data }: Task): string {
  const { __callback_url: url = '' } = data as Record<string, string>
  return url
}

const postOf = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

const create = (conv: number | string, data: object = {}, ref?: string): object => ({
  ...{ type: 'create', obj: 'task', conv_id: conv, data },
  ...(ref === undefined ? {} : { ref }),
})

const bodyOf = (ops: object | object[], timeout?: unknown): string =>
  JSON.stringify({ ...(timeout === undefined ? {} : { timeout }), ops })

/** Sends a request whose answer is still to come. */
async function begin(server: TestHttp, body: string, how: Signing = {}): Promise<RawClient> {
  const client = await connectRaw(server.port)
  client.send(server.post(body, how))
  return client
}

async function bodyFrom(client: RawClient): Promise<string> {
  const { body } = await client.answer()
  client.socket.destroy()
  return body
}

const whole = (...ops: string[]): string => `{"request_proc":"ok","ops":[${ops.join(',')}]}`

/** The answer without the address, which is another each time. */
const masked = (body: string): string => body.replace(/,"__callback_url":"[^"]*"/, '')

describe('the synchronous form', () => {
  for (const sign of ['path', 'hmac'] as const) {
    test(`answers with what is posted, to a body signed in ${sign}`, () =>
      withSync(async (server) => {
        const client = await begin(server, bodyOf(create(conv_id, { n: 1 })), { sign })
        const path = await server.address()
        assert.match(path, /^\/api\/sync\/[0-9a-f]{64}$/)
        const answered = await server.answer(path, ' {"b": 1.10, "a":{"б":[]}} ')
        assert.equal(answered.status, 200)
        assert.equal(answered.body, '{"request_proc":"ok"}')
        const wanted = whole('{"proc":"ok","data":{"b":1.10,"a":{"б":[]}}}')
        assert.equal(await bodyFrom(client), wanted)
        assert.equal((await server.waiting()).status, 'delayed', 'the task goes on')
      }))
  }

  /** [what, op, the answer at its place without the address] */
  const ends: [string, object, string][] = [
    ['an end that keeps the task', create(keeps, { n: 7 }), '{"proc":"ok","data":{"n":7}}'],
    ['an end that does not', create(drops, { n: '7' }), '{"proc":"ok","data":{"n":7}}'],
    [
      'a failed task',
      create(fails, { n: 'x' }),
      '{"proc":"error","description":"set_param_wrong_convert_param"}',
    ],
    [
      'a refused create',
      create(9, {}, 'r'),
      '{"ref":"r","obj":"task","proc":"access_denied","description":"user: 13000, conv_id: 9"}',
    ],
    [
      'another op',
      { ...create(conv_id, {}, 'r'), type: 'modify', id: 'x' },
      '{"id":"x","ref":"r","obj":"task","proc":"error","description":"bad type","key":"type"}',
    ],
    [
      'a malformed op',
      { type: 'create', obj: 'task', conv_id, ref: 7 },
      `{"ref":7,"obj":"task","proc":"error","description":"Key 'data' is required","key":"data"}`,
    ],
  ]
  for (const [what, op, wanted] of ends) {
    test(`answers from ${what}`, () =>
      withSync(async (server) => {
        const { status, body } = await server.send(bodyOf(op))
        assert.equal(status, 200)
        assert.equal(masked(body), whole(wanted))
      }))
  }

  test('has the answers of several ops in their order, each from where it comes', () =>
    withSync(async (server) => {
      const ops = [create(conv_id, { n: 1 }), create(keeps, { n: 2 }), create(9), create(drops)]
      const client = await begin(server, bodyOf(ops), { version: 2 })
      await server.answer(await server.address(), '{"posted":true}')
      const refused = JSON.parse(await bodyFrom(client)).ops
      assert.deepEqual(refused[0], { proc: 'ok', data: { posted: true } })
      assert.equal(refused[1].data.n, 2)
      assert.deepEqual([refused[2].id, refused[2].proc], ['', 'access_denied'])
      assert.equal(refused[3].description, 'set_param_wrong_convert_param')
    }))

  test('pipelined requests are answered in their order', () =>
    withSync(async (server) => {
      const client = await begin(server, bodyOf(create(conv_id, { n: 1 })))
      client.send(server.post(bodyOf(create(keeps, { n: 2 }))))
      await server.answer(await server.address(), '{}')
      assert.equal((await client.answer()).body, whole('{"proc":"ok","data":{}}'))
      assert.equal(masked(await bodyFrom(client)), whole('{"proc":"ok","data":{"n":2}}'))
    }))

  test('tells that the task was canceled', () =>
    withSync(async (server) => {
      const client = await begin(server, bodyOf(create(conv_id)))
      const { obj_id } = await server.waiting()
      await server.engine.tasks.cancel({ conv_id, obj_id })
      const wanted = whole('{"proc":"error","description":"canceled"}')
      assert.equal(await bodyFrom(client), wanted)
    }))

  test('an address of this process may be called although it is not public', async () => {
    const server = await openHttp({ sync: true })
    await server.engine.processes.put(definitions[3])
    await server.engine.processes.share(calls, user)
    const { body } = await server.send(bodyOf(create(calls, { n: 5 })))
    assert.equal(body, whole('{"proc":"ok","data":{"got":5}}'))
    const other = `${server.http.url}/healthz`
    await server.engine.processes.put(
      definition(2005, [node('start', 1, [{ ...api, url: other }, go('end')]), end]),
    )
    await server.engine.processes.share(2005, user)
    const refused = await server.send(bodyOf(create(2005, { n: 5 })))
    assert.notEqual(JSON.parse(refused.body).ops[0].proc, 'ok', 'only the addresses')
    await server.close()
  })

  test('the other listener of the engine takes the answers too, at the public URL', async () => {
    const { engine, close, ...signer } = await openHttp()
    const public_url = 'https://x.example/y'
    const sync = await serveHttp(engine, { port: 0, sync: true, public_url })
    const { port } = sync.address
    const client = await connectRaw(port)
    client.send(signer.post(bodyOf(create(conv_id))))
    const task = await newestTask(engine)
    const address = addressIn(task)
    assert.ok(address.startsWith(`${public_url}/api/sync/`))
    const path = address.slice(public_url.length)
    assert.equal((await exchange(signer.port, postOf(path, '{}'))).status, 200)
    assert.equal(await bodyFrom(client), whole('{"proc":"ok","data":{}}'))
    await sync.drain()
    await close()
  })
})

test('addresses begin with the public URL of the engine, where the server has none', async () => {
  const public_url = 'https://x.example'
  const engine = await openEngine(':memory:', { public_url })
  const http = await serveHttp(engine, { port: 0, sync: true })
  assert.equal(http.public_url, public_url)
  await http.drain()
  await engine.close()
})

describe('the time-out', () => {
  /** [timeout, seconds until the answer] */
  const served: [string, unknown, number][] = [
    ['none', undefined, 60],
    ['1', 1, 1],
    ['60', 60, 60],
    ['a fraction', 1.5, 1.5],
  ]
  for (const [what, timeout, seconds] of served) {
    test(`${what}: after ${seconds} s`, () =>
      withSync(async (server) => {
        const client = await begin(server, bodyOf(create(conv_id), timeout))
        const path = await server.address()
        const began_ms = server.clock.now_ms()
        assert.equal(server.clock.nextWake_ms(), began_ms + seconds * 1000)
        server.clock.advance(seconds * 1000)
        assert.equal(await bodyFrom(client), whole(timed_out))
        assert.equal(codeOf(await server.answer(path, '{}')), 'not_found')
        assert.equal((await server.waiting()).status, 'delayed', 'the task goes on')
      }))
  }

  test('leaves the answers that have come', () =>
    withSync(async (server) => {
      const ops = [create(keeps, { n: 1 }), create(conv_id)]
      const client = await begin(server, bodyOf(ops, 2))
      await server.address()
      server.clock.advance(2000)
      const wanted = whole('{"proc":"ok","data":{"n":1}}', timed_out)
      assert.equal(masked(await bodyFrom(client)), wanted)
    }))

  test('as a number of any spelling', () =>
    withSync(async (server) => {
      const ops = JSON.stringify([create(keeps, { n: 1 })])
      for (const timeout of ['30.0', '6e1', '1.0e0']) {
        const { body } = await server.send(`{"ops":${ops},"timeout":${timeout}}`)
        assert.equal(JSON.parse(body).ops[0].proc, 'ok', timeout)
      }
    }))

  for (const timeout of [0, 0.99, 60.01, -1, 1e300, '30', '', null, true, [30], { s: 30 }]) {
    test(`${JSON.stringify(timeout)} is refused, and nothing is made`, () =>
      withSync(async (server) => {
        const answer = await server.send(bodyOf(create(conv_id), timeout))
        assert.equal(answer.status, 400)
        const { description } = JSON.parse(answer.body)
        assert.equal(codeOf(answer), 'format_error')
        assert.equal(description, "'timeout' is a number of seconds from 1 to 60")
        assert.deepEqual(await tasksOf(server.engine, conv_id), [])
      }))
  }
})

describe('the address', () => {
  const token = 'a'.repeat(64)
  const gone = ['a guess', `/api/sync/${token}`] as const
  const paths: (readonly [string, string])[] = [
    gone,
    ['a short one', `/api/sync/${token.slice(1)}`],
    ['in upper case', `/api/sync/${token.toUpperCase()}`],
    ['none', '/api/sync/'],
  ]
  for (const [what, path] of paths) {
    test(`${what}: not_found, before the body`, () =>
      withSync(async (server) => {
        const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n`
        assert.equal(codeOf(await exchange(server.port, head)), 'not_found')
      }))
  }

  test('is good for one answer', () =>
    withSync(async (server) => {
      const client = await begin(server, bodyOf(create(conv_id)))
      const path = await server.address()
      const late = await connectRaw(server.port)
      late.send(postOf(path, '{"n":2}').slice(0, -1))
      await server.answer(path, '{"n":1}')
      assert.equal(await bodyFrom(client), whole('{"proc":"ok","data":{"n":1}}'))
      late.send('}')
      assert.equal(codeOf(await late.answer()), 'not_found', 'one whose body was under way')
      assert.equal(codeOf(await server.answer(path, '{"n":3}')), 'not_found')
      late.socket.destroy()
    }))

  const wrong = [
    '',
    '[]',
    '1',
    'null',
    '"x"',
    '{"a":',
    '{} {}',
    'a=b',
    '\ufeff{}',
    '{"a":"\\ud800"}',
  ]
  test('takes an object; anything else leaves it as it is', () =>
    withSync(
      async (server) => {
        const client = await begin(server, bodyOf(create(conv_id)))
        const path = await server.address()
        const deep = `{"a":${'['.repeat(70)}${']'.repeat(70)}}`
        for (const body of [...wrong, deep]) {
          const answer = await server.answer(path, body)
          assert.equal(codeOf(answer), 'format_error', `${body}: ${answer.body}`)
        }
        const large = await server.answer(path, `{"a":"${'x'.repeat(2000)}"}`)
        assert.equal(codeOf(large), 'body_too_large')
        const get = await exchange(server.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
        assert.equal(codeOf(get), 'method_not_allowed')
        assert.equal((await server.answer(`${path}?a=b`, '{"__proto__":1}')).status, 200)
        assert.equal(await bodyFrom(client), whole('{"proc":"ok","data":{"__proto__":1}}'))
      },
      { limits: { body_bytes_max: 1000 } },
    ))

  test('takes the place of one that the caller sends', () =>
    withSync(async (server) => {
      const client = await begin(server, bodyOf(create(conv_id, { __callback_url: 'x', n: 1 })))
      await server.answer(await server.address(), '{}')
      assert.equal(await bodyFrom(client), whole('{"proc":"ok","data":{}}'))
    }))
})

describe('the same create again', () => {
  const body = bodyOf(create(conv_id, { n: 1 }, 'order-1'))

  test('waits for the same task: both get the answer', () =>
    withSync(async (server) => {
      const clients = [await begin(server, body)]
      const path = await server.address()
      clients.push(await begin(server, body))
      // Its request is served once one behind it is.
      await server.send(bodyOf(create(keeps, { n: 1 })))
      assert.equal((await server.answer(path, '{"a":1}')).status, 200)
      for (const client of clients) {
        assert.equal(await bodyFrom(client), whole('{"proc":"ok","data":{"a":1}}'))
      }
      assert.equal((await tasksOf(server.engine, conv_id)).length, 1)
    }))

  test('twice in a request', () =>
    withSync(async (server) => {
      const op = create(conv_id, { n: 1 }, 'order-1')
      const client = await begin(server, bodyOf([op, op]))
      await server.answer(await server.address(), '{}')
      const answer = '{"proc":"ok","data":{}}'
      assert.equal(await bodyFrom(client), whole(answer, answer))
    }))

  test('after the first client has gone: gets the answer to the first address', () =>
    withSync(async (server) => {
      const first = await begin(server, body)
      const path = await server.address()
      first.socket.destroy()
      while ((await server.answer(path, 'no object')).status !== 404) await setImmediate()
      const again = await begin(server, body)
      while ((await server.answer(path, '{"a":1}')).status !== 200) await setImmediate()
      assert.equal(await bodyFrom(again), whole('{"proc":"ok","data":{"a":1}}'))
    }))

  test('of a task that has failed: is answered at once', () =>
    withSync(async (server) => {
      const failing = bodyOf(create(fails, { n: 'x' }, 'order-1'))
      const first = await server.send(failing)
      assert.match(first.body, /set_param_wrong_convert_param/)
      assert.equal((await server.send(failing)).body, first.body)
    }))

  test('with other data: the ref is taken', () =>
    withSync(async (server) => {
      const first = await begin(server, body)
      const path = await server.address()
      const other = await server.send(bodyOf(create(conv_id, { n: 2 }, 'order-1')))
      assert.equal(codeOf(other), 'not_unical_ref')
      await server.answer(path, '{}')
      await bodyFrom(first)
    }))

  test('without waiting, and the other way round: one task', async () => {
    const server = await openHttp()
    const sync = await serveHttp(server.engine, { port: 0, sync: true })
    const client = await connectRaw(sync.address.port)
    client.send(server.post(body))
    while ((await tasksOf(server.engine, conv_id)).length === 0) await setImmediate()
    assert.equal(codeOf(await server.send(body)), 'ok')
    const plain = bodyOf(create(conv_id, { n: 1 }, 'order-2'))
    assert.equal(codeOf(await server.send(plain)), 'ok')
    const waiting = await connectRaw(sync.address.port)
    waiting.send(server.post(plain))
    // Its request is served once one behind it is.
    await exchange(sync.address.port, server.post(bodyOf(create(9))))
    await server.engine.modify({ conv_id, ref: 'order-2', data: { m: 2 } })
    assert.equal(await bodyFrom(waiting), whole('{"proc":"ok","data":{"n":1,"m":2}}'))
    client.socket.destroy()
    await sync.drain()
    await server.close()
  })
})

describe('the bounds of waits', () => {
  test('a client that goes away takes its waits and its address along', () =>
    withSync(
      async (server) => {
        for (const leave of ['destroy', 'end'] as const) {
          const client = await begin(server, bodyOf(create(conv_id)))
          const path = await server.address()
          client.socket[leave]()
          while ((await server.answer(path, 'no object')).status !== 404) await setImmediate()
          assert.equal((await server.waiting()).status, 'delayed', 'the task goes on')
        }
      },
      { limits: { sync_waits_max: 1 } },
    ))

  test('over sync_waits_max: overloaded, and nothing is made', () =>
    withSync(
      async (server) => {
        const client = await begin(server, bodyOf([create(conv_id), create(conv_id)]))
        const path = await server.address()
        const two = bodyOf([create(conv_id), create(conv_id)])
        const refused = await server.send(two)
        assert.equal(refused.status, 503)
        assert.equal(codeOf(refused), 'overloaded')
        await server.answer(path, '{}')
        assert.equal((await tasksOf(server.engine, conv_id)).length, 2)
        server.clock.advance(60_000)
        await bodyFrom(client)
        const next = await begin(server, two)
        while ((await tasksOf(server.engine, conv_id)).length < 4) await setImmediate()
        server.clock.advance(60_000)
        await bodyFrom(next)
      },
      { limits: { sync_waits_max: 3 } },
    ))

  test('a refused request leaves no wait behind', () =>
    withSync(
      async (server) => {
        const ops = Array(4).fill(create(conv_id))
        for (let n = 0; n < 3; n++) {
          assert.equal(codeOf(await server.send(bodyOf(ops))), 'overloaded')
        }
        const kept = await server.send(bodyOf([create(keeps, { n: 1 }), create(9), create(9)]))
        assert.equal(codeOf(kept), 'ok')
      },
      { limits: { sync_waits_max: 4, queue_ops_max: 3 } },
    ))

  test('answers beyond answer_bytes_max are told, and the others stand', () =>
    withSync(
      async (server) => {
        const text = 'x'.repeat(1000)
        const ops = [
          create(keeps, { n: 1, text }),
          create(keeps, { n: 2, text }),
          create(keeps, { n: 3 }),
        ]
        const { body } = await server.send(bodyOf(ops))
        const [first, second, third] = JSON.parse(body).ops
        assert.equal(first.data.n, 1)
        const description = 'Answer size is over 2000 bytes'
        assert.deepEqual(second, { proc: 'answer_too_large', description })
        assert.equal(third.data.n, 3)
      },
      { limits: { answer_bytes_max: 2000 } },
    ))

  test('answers that nobody reads count, and go with their client', () =>
    withSync(
      async (server) => {
        const many = (ops: number): string =>
          bodyOf(Array(ops).fill(create(keeps, { n: 1, text: 'x'.repeat(100_000) })))
        // More than the system takes for a client that does not read.
        const idle = await begin(server, many(80))
        idle.socket.pause()
        const full = /answer_too_large/
        while (!full.test((await server.send(many(5))).body)) await setImmediate()
        assert.match((await server.send(many(5))).body, full, 'it stays so')
        idle.socket.destroy()
        while (full.test((await server.send(many(5))).body)) await setImmediate()
      },
      { limits: { answers_bytes_max: 16_800_000 } },
    ))

  test('ten thousand wait in bounded memory, and drain answers them all', async () => {
    const server = await openHttp({ sync: true })
    const many = bodyOf(Array(1000).fill(create(conv_id)))
    const before_bytes = process.memoryUsage().heapUsed
    const clients: RawClient[] = []
    for (let n = 1; n <= 10; n++) {
      clients.push(await begin(server, many))
      while ((await server.engine.processes.list())[0]?.tasks !== n * 1000) await setImmediate()
    }
    const bytes = process.memoryUsage().heapUsed - before_bytes
    assert.ok(bytes < 60_000_000, `${bytes} bytes`)
    assert.equal(codeOf(await server.send(bodyOf(create(conv_id)))), 'overloaded')
    const drained = server.http.drain()
    for (const client of clients) {
      const answer = await client.answer()
      assert.equal(answer.headers.connection, 'close')
      const { ops } = JSON.parse(answer.body)
      assert.equal(ops.length, 1000)
      assert.deepEqual(ops[999], { proc: 'error', description: 'shutting_down' })
      client.socket.destroy()
    }
    await drained
    await server.engine.close()
  })
})
