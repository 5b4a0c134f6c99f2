/**
 * The signed API as a listener in servers that are not ours: node:http, HTTP/2, Express and
 * Fastify. Each row is a server with the handler in it and the path at which callers reach it.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2 } from 'node:http2'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import fastify from 'fastify'
import type { OpResult } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { createHandler, type HttpHandler, type HttpHandlerOptions } from '../src/http.ts'
import { connectRaw, exchange } from './support/http-raw.ts'
import { codeOf, conv_id, createBody, openHttp, type TestHttp } from './support/http-server.ts'
import { turns } from './support/store-trees.ts'

/** As much of Express as is used here; it has no types of its own. */
interface Express extends RequestListener {
  use(...listeners: unknown[]): void
  post(path: string, listener: unknown): void
}
const express = createRequire(import.meta.url)('express') as {
  (): Express
  Router(): Express
  json(): unknown
}

const public_url = 'https://shop.example/conveyor'
let http: TestHttp
const servers: Server[] = []

before(async () => {
  http = await openHttp()
})
after(async () => {
  for (const server of servers) server.close()
  for (const server of servers) server.closeAllConnections?.()
  await http.close()
})

async function listen(server: Server): Promise<number> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const handlerOf = (options: HttpHandlerOptions = {}): HttpHandler =>
  createHandler(http.engine, { public_url, ...options })

const own = (_request: unknown, response: { end(text: string): void }): void => response.end('own')

type Mount = (handler: HttpHandler) => Server | Promise<Server>

async function fastifyWith(handler: HttpHandler): Promise<Server> {
  const app = fastify()
  app.all('/conveyor/*', {
    onRequest: (request, reply) => {
      reply.hijack()
      handler(request.raw, reply.raw)
    },
    handler: () => {},
  })
  app.get('/own', (_request, reply) => reply.send('own'))
  await app.ready()
  return app.server
}

function expressWith(...listeners: unknown[]): Server {
  const app = express()
  app.use(...listeners)
  app.use(express.json())
  app.use(own)
  return createServer(app)
}

function routerWith(handler: HttpHandler): unknown {
  const router = express.Router()
  router.use('/conveyor', handler)
  return router
}

// biome-ignore format: a table
const mounts: readonly (readonly [string, string, HttpHandlerOptions, Mount])[] = [
  ['node:http',                        '',            {},                     (handler) => createServer(handler)],
  ['node:http, below a base',          '/conveyor',   { base: '/conveyor' },  (handler) => createServer(handler)],
  ['node:http, with others beside it', '',            {},                     (handler) => createServer((request, response) => handler(request, response, () => own(request, response)))],
  ['Express, at a path',               '/conveyor',   {},                     (handler) => expressWith('/conveyor', handler)],
  ['Express, below a base',            '/conveyor',   { base: '/conveyor' },  (handler) => expressWith(handler)],
  ['Express, at a path and with it as base', '/conveyor', { base: '/conveyor' }, (handler) => expressWith('/conveyor', handler)],
  ['Express, in a router',             '/a/conveyor', {},                     (handler) => expressWith('/a', routerWith(handler))],
  ['Fastify',                          '/conveyor',   { base: '/conveyor' },  fastifyWith],
]

/** The bytes of a POST to a path. */
const posted = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`

/** A signed request to a server in which the API is below `base`. */
function signed(base: string, body: string, sign: 'path' | 'hmac' = 'path'): string {
  const headers = ['Host: x', 'Content-Type: application/json']
  return http.post(body, { sign, headers }).toString().replace('POST /api', `POST ${base}/api`)
}

for (const [at, [name, base, options, mount]] of mounts.entries()) {
  test(`${name}: signed requests, a webhook, a callback, other paths`, async () => {
    const port = await listen(await mount(handlerOf(options)))
    const ref = `mount-${at}`
    for (const sign of ['path', 'hmac'] as const) {
      const answer = await exchange(port, signed(base, createBody(`${ref}-${sign}`), sign))
      assert.deepEqual([answer.status, codeOf(answer)], [200, 'ok'])
    }
    const wrong = signed(base, createBody(ref, {})).replace('"data":{}', '"data": 1')
    assert.equal(codeOf(await exchange(port, wrong)), 'bad_signature')

    const { address, callbacks } = await http.engine.processes.webhook(conv_id, { address: 'new' })
    assert.ok(address?.startsWith(`${public_url}/api/1/json/public/`), address ?? '')
    const to = (url: string | null | undefined): string =>
      base + (url ?? '').slice(public_url.length)
    const webhook = await exchange(port, posted(to(address), '{"a":1}'))
    const { obj_id } = JSON.parse(webhook.body).ops
    assert.deepEqual((await http.engine.task({ conv_id, obj_id }))?.data, { a: 1 })
    const callback = posted(to(callbacks[0]?.address), JSON.stringify({ obj_id, b: 2 }))
    assert.equal(JSON.parse((await exchange(port, callback)).body).ops.proc, 'ok')
    assert.equal((await http.engine.task({ conv_id, obj_id }))?.status, 'processed')

    const beside = await exchange(port, 'GET /own HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    assert.equal(beside.status, /, with others|Express|Fastify/.test(name) ? 200 : 404)
    const health = await exchange(port, `GET ${base}/api/1/json HTTP/1.1\r\nHost: x\r\n\r\n`)
    assert.deepEqual([health.status, health.headers.allow], [405, 'POST'])
  })
}

/** What the handler does on node:http, with options, and what it told of as a bug. */
async function mounted(
  options: HttpHandlerOptions = {},
  engine: Engine = http.engine,
): Promise<{ handler: HttpHandler; port: number; bugs: unknown[] }> {
  const bugs: unknown[] = []
  const handler = createHandler(engine, { public_url, onBug: (bug) => bugs.push(bug), ...options })
  return { handler, port: await listen(createServer(handler)), bugs }
}

describe('a body that a parser has taken', () => {
  const text = 'a body parser has read the request first: mount the handler in front of it'
  /** [the type of the body, whether express.json() reads it] */
  for (const [type, is_taken] of [
    ['application/json', true],
    ['application/octet-stream', false],
  ] as const) {
    test(`${type}: ${is_taken ? 'internal_error, with what to do' : 'is served'}`, async () => {
      const bugs: unknown[] = []
      const app = express()
      app.use(express.json())
      app.use(createHandler(http.engine, { onBug: (bug) => bugs.push(bug) }))
      const client = await connectRaw(await listen(createServer(app)))
      for (const ref of ['first', 'second, on the same connection']) {
        const headers = ['Host: x', `Content-Type: ${type}`]
        client.send(http.post(createBody(`${type} ${ref}`), { headers }))
        const answer = await client.answer()
        const wanted = is_taken ? [500, 'internal_error'] : [200, 'ok']
        assert.deepEqual([answer.status, codeOf(answer)], wanted)
        if (is_taken) assert.equal(JSON.parse(answer.body).description, text)
      }
      assert.deepEqual(bugs.map(String), is_taken ? [`Fault: ${text}`, `Fault: ${text}`] : [])
      client.socket.destroy()
    })
  }

  test('by a listener that has read a part of it', async () => {
    const handler = handlerOf()
    const server = createServer((request, response) => {
      request.once('data', () => {
        request.pause()
        handler(request, response)
      })
    })
    const answer = await exchange(await listen(server), http.post(createBody('part')))
    assert.equal(codeOf(answer), 'internal_error')
  })
})

describe('limits of a handler', () => {
  const large = createBody('large', { a: 'x'.repeat(600) })
  const head = (lines: string[]): string =>
    `POST /api/1/json HTTP/1.1\r\nHost: x\r\n${lines.join('\r\n')}\r\n\r\n`
  // biome-ignore format: a table
  const rows: readonly (readonly [string, HttpHandlerOptions['limits'], () => string | Buffer, number, string])[] = [
    ['a body over the limit',   { body_bytes_max: 500 },   () => http.post(large),                                   413, 'body_too_large'],
    ['a body that grows over',  { body_bytes_max: 500 },   () => `${head(['Transfer-Encoding: chunked'])}400\r\n${'x'.repeat(1024)}\r\n0\r\n\r\n`, 413, 'body_too_large'],
    ['a body that never ends',  { request_ms_max: 20 },    () => head(['Content-Length: 5']),                        408, 'request_timeout'],
    ['too many headers',        { header_count_max: 4 },   () => head(['A: 1', 'B: 1', 'C: 1', 'D: 1']),             431, 'bad_request'],
    ['too many ops',            { ops_max: 0 },            () => http.post(createBody('ops')),                       400, 'too_many_ops'],
    ['an encoding',             {},                        () => head(['Content-Encoding: gzip', 'Content-Length: 0']), 415, 'unsupported_encoding'],
    ['a path of nobody',        {},                        () => 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n',        404, 'not_found'],
  ]
  for (const [name, limits = {}, request, status, code] of rows) {
    test(`${name}: ${code}`, async () => {
      const { port, bugs } = await mounted({ limits })
      const answer = await exchange(port, request())
      assert.deepEqual([answer.status, codeOf(answer), bugs], [status, code, []])
    })
  }

  test('a body that is broken off gives back its room', async () => {
    const limits = { unverified_bytes_max: 700, body_bytes_max: 700, large_bodies_max: 1 }
    const { port } = await mounted({ limits: { ...limits, large_body_bytes: 300 } })
    const broken = await connectRaw(port)
    broken.send(http.post(large).subarray(0, -10))
    const answerOf = async (): Promise<string> => codeOf(await exchange(port, http.post(large)))
    while ((await answerOf()) !== 'overloaded');
    broken.socket.destroy()
    while ((await answerOf()) !== 'ok');
  })

  for (const options of [
    { base: 'x' },
    { sync: true, public_url: '' },
    { limits: { ops_max: -1 } },
  ]) {
    test(`createHandler throws for ${JSON.stringify(options)}`, () =>
      assert.throws(() => createHandler(http.engine, options as HttpHandlerOptions), RangeError))
  }
})

test('connections are kept; 100-continue and pipelined requests are answered in order', async () => {
  const { port } = await mounted()
  const client = await connectRaw(port)
  const body = createBody('continued')
  const expects = http.post(body, { headers: ['Host: x', 'Expect: 100-continue'] })
  client.send(expects.subarray(0, -body.length))
  assert.equal((await client.answer()).status, 100)
  client.send(body)
  assert.equal(codeOf(await client.answer()), 'ok')
  client.send(Buffer.concat([http.post(createBody('p')), http.post('[]'), http.post(body)]))
  const codes = [await client.answer(), await client.answer(), await client.answer()].map(codeOf)
  assert.deepEqual(codes, ['ok', 'format_error', 'ok'])
  client.socket.destroy()
})

test('a server that has answered by itself meanwhile is left alone', async () => {
  const bugs: unknown[] = []
  const done: OpResult = { type: 'modify', ref: 'held', obj: 'task', proc: 'ok' }
  let release = (): void => {}
  const submit = (): Promise<OpResult[]> =>
    new Promise((resolve) => {
      release = () => resolve([done])
      onSubmit()
    })
  let onSubmit = (): void => {}
  const handler = createHandler({ ...http.engine, submit } as Engine, {
    onBug: (bug) => bugs.push(bug),
  })
  const server = createServer((request, response) => {
    onSubmit = () => {
      response.writeHead(504, { 'Content-Length': 0 }).end()
      release()
    }
    handler(request, response)
  })
  const client = await connectRaw(await listen(server))
  for (let n = 0; n < 2; n++) {
    client.send(http.post(createBody('r')))
    assert.equal((await client.answer()).status, 504)
  }
  assert.deepEqual(bugs, [])
  client.socket.destroy()
})

describe('drain of a handler', () => {
  const done: OpResult = { type: 'modify', ref: 'held', obj: 'task', proc: 'ok' }

  test('answers what is under way, refuses what is new', async () => {
    let release = (): void => {}
    let onCalled = (): void => {}
    const called = new Promise<void>((resolve) => {
      onCalled = resolve
    })
    const submit = (): Promise<OpResult[]> => {
      onCalled()
      return new Promise((resolve) => {
        release = () => resolve([done])
      })
    }
    const { handler, port } = await mounted({}, { ...http.engine, submit } as Engine)
    const client = await connectRaw(port)
    client.send(http.post(createBody('r')))
    await called
    let is_drained = false
    const drained = handler.drain().then(() => {
      is_drained = true
    })
    const refused = await exchange(port, http.post(createBody('r')))
    assert.deepEqual([refused.status, codeOf(refused)], [503, 'shutting_down'])
    assert.equal(is_drained, false)
    release()
    const answer = await client.answer()
    assert.deepEqual([answer.status, answer.headers.connection], [200, 'close'])
    await drained
    await client.ended()
    assert.equal(handler.drain(), handler.drain())
  })

  test('does not wait for requests whose connection has closed, also behind another one', async () => {
    let calls = 0
    let onBoth = (): void => {}
    const both = new Promise<void>((resolve) => {
      onBoth = resolve
    })
    const submit = (): Promise<OpResult[]> => {
      if (++calls === 2) onBoth()
      return new Promise(() => {})
    }
    const limits = { drain_ms_max: 600_000 }
    const { handler, port } = await mounted({ limits }, { ...http.engine, submit } as Engine)
    const client = await connectRaw(port)
    client.send(Buffer.concat([http.post(createBody('r')), http.post(createBody('s'))]))
    await both
    client.socket.destroy()
    await handler.drain()
  })

  test('waits at most drain_ms_max', async () => {
    let onCalled = (): void => {}
    const called = new Promise<void>((resolve) => {
      onCalled = resolve
    })
    const submit = (): Promise<OpResult[]> => {
      onCalled()
      return new Promise(() => {})
    }
    const limits = { drain_ms_max: 10 }
    const { handler, port } = await mounted({ limits }, { ...http.engine, submit } as Engine)
    const client = await connectRaw(port)
    client.send(http.post(createBody('r')))
    await called
    await handler.drain()
    client.socket.destroy()
  })
})

test('the synchronous form: the answer of a process, at most as long as the client waits', async () => {
  const server = createServer((request, response) => handler(request, response))
  const port = await listen(server)
  const base = `http://127.0.0.1:${port}`
  const limits = { sync_waits_max: 1 }
  const handler = createHandler(http.engine, { sync: true, public_url: base, limits })
  /** The address in the task that a request has made. */
  const addressOf = async (ref: string): Promise<string> => {
    for (;;) {
      const task = await http.engine.task({ conv_id, ref })
      const { __callback_url: url } = (task?.data ?? {}) as { __callback_url?: string }
      if (url !== undefined) return url
      await turns(1)
    }
  }
  const post = async (url: string): Promise<number> =>
    (await fetch(url, { method: 'POST', body: '{"ok":1}' })).status
  const gone = await connectRaw(port)
  gone.send(http.post(createBody('gone')))
  const gone_url = await addressOf('gone')
  gone.socket.destroy()
  // Its wait is over, so there is one for the next.
  while ((await exchange(port, posted(gone_url.slice(base.length), '[]'))).status !== 404);
  const client = await connectRaw(port)
  client.send(http.post(createBody('stays')))
  assert.equal(await post(await addressOf('stays')), 200)
  const { body } = await client.answer()
  assert.equal(body, '{"request_proc":"ok","ops":[{"proc":"ok","data":{"ok":1}}]}')
  client.socket.destroy()
})

test('HTTP/2 of node: signed requests, refusals that keep the connection, a draining handler', async () => {
  const handler = handlerOf({ limits: { body_bytes_max: 1_000 } })
  const server = createHttp2(handler)
  const warnings: unknown[] = []
  const onWarning = (warning: unknown): void => void warnings.push(warning)
  process.on('warning', onWarning)
  const session = connectHttp2(`http://127.0.0.1:${await listen(server as unknown as Server)}`)
  const post = async (path: string, body: string): Promise<[unknown, string]> => {
    const stream = session.request({ ':method': 'POST', ':path': path })
    stream.end(body)
    const [headers] = await once(stream, 'response')
    let text = ''
    for await (const chunk of stream.setEncoding('utf8')) text += chunk
    return [headers[':status'], JSON.parse(text).request_proc]
  }
  const body = createBody('http2')
  assert.deepEqual(await post(http.path(body), body), [200, 'ok'])
  assert.deepEqual(await post('/api/1/json', body), [401, 'bad_signature'])
  const large = createBody('large', { a: 'x'.repeat(100_000) })
  assert.deepEqual(await post(http.path(large), large), [413, 'body_too_large'])
  assert.deepEqual(await post('/nowhere', body), [404, 'not_found'])
  await handler.drain()
  assert.deepEqual(await post(http.path(body), body), [503, 'shutting_down'])
  session.close()
  process.off('warning', onWarning)
  assert.deepEqual(warnings, [])
})
