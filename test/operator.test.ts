/**
 * The operator's listener: what it listens on, whom it refuses, health, and the feed as server-sent
 * events: positions, what comes again after a break, and readers that do not read.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import https, { type RequestOptions } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { nextTurn } from '../src/core/clock.ts'
import type { Emit } from '../src/core/events.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { openEngine, type Readiness, rawJson } from '../src/index.ts'
import { type OperatorServer, serveOperator } from '../src/operator.ts'
import { open_requests_max } from '../src/server/operator/refused-connections.ts'
import {
  makeCa,
  makeClient,
  makeServer,
  type TestCertificate,
  writeFolder,
} from './support/grpc-certs.ts'
import { exchange } from './support/http-raw.ts'
import { conv_id, process_definition } from './support/http-server.ts'

const recorder =
  (told: object[]): Emit =>
  (event, fields) =>
    void told.push({ event, ...fields })

let engine: Engine
let server: OperatorServer
/** What the listener of all tests has told. */
const told: object[] = []

before(async () => {
  engine = await openEngine(':memory:')
  await engine.processes.put(process_definition)
  const seen = { ...servedEngine(engine), emit: recorder(told) }
  server = await serveOperator(seen, { port: 0 })
})
after(async () => {
  await server.drain()
  await engine.close()
})

interface Event {
  readonly id?: string
  readonly event?: string
  readonly data?: string
}

/** Opens a feed, which has begun then. */
async function open(
  path: string,
  headers: Record<string, string> = {},
): Promise<AsyncGenerator<Event>> {
  const response = await fetch(server.url + path, { headers })
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  return eventsOf(response)
}

/** The events one by one; comments and the time of retries are none. */
async function* eventsOf(response: Response): AsyncGenerator<Event> {
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    const whole = text.split('\n\n')
    text = whole.pop() as string
    for (const block of whole) {
      const lines = block.split('\n').filter((line) => !/^(:|retry: )/.test(line))
      const event: Record<string, string> = {}
      for (const line of lines) {
        const [, name = '', value = ''] = /^(\w+): (.*)$/.exec(line) ?? []
        event[name] = value
      }
      if (lines.length > 0) yield event
    }
  }
}

async function next(feed: AsyncGenerator<Event>): Promise<Event & { readonly change: unknown }> {
  const { value } = (await feed.next()) as { value: Event }
  return { ...value, change: JSON.parse(value.data ?? 'null') }
}

async function create(ref: string, data: unknown = {}): Promise<string> {
  return (await engine.create({ conv_id, ref, data })).obj_id as string
}

describe('what it listens on', () => {
  for (const host of ['0.0.0.0', '::', '192.168.1.1', 'example.com', '']) {
    test(`not on ${JSON.stringify(host)}`, () =>
      assert.rejects(serveOperator(engine, { host, port: 0 }), (error: Error) => {
        assert.ok(error instanceof RangeError)
        assert.match(
          error.message,
          /is no loopback address: .* without a token it takes 127\.0\.0\.1, ::1 or localhost$/,
        )
        return true
      }))
  }
  for (const host of ['127.0.0.1', '127.0.0.2', 'localhost']) {
    test(`on ${host}`, async () => {
      const other = await serveOperator(engine, { host, port: 0 })
      assert.equal((await fetch(`${other.url}/healthz`)).status, 200)
      await other.drain()
    })
  }
})

describe('whom it answers', () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [string, string, string[], number, string])[] = [
    ['GET',  '/healthz', ['Host: 127.0.0.1:8081'],                                   200, 'true'],
    ['GET',  '/healthz', ['Host: localhost'],                                        200, 'true'],
    ['GET',  '/healthz', ['Host: [::1]:8081', 'Sec-Fetch-Site: none'],               200, 'true'],
    ['GET',  '/healthz', ['Host: 127.0.0.1', 'Sec-Fetch-Site: same-origin'],         200, 'true'],
    ['GET',  '/healthz', ['Host: evil.example:8081'],                                403, 'bad_request'],
    ['GET',  '/changes', ['Host: 127.0.0.1.evil.example'],                           403, 'bad_request'],
    ['GET',  '/changes', ['Host: localhost.evil.example'],                           403, 'bad_request'],
    ['GET',  '/changes', ['Host: 127.0.0.1', 'Origin: http://127.0.0.1:8081'],       403, 'bad_request'],
    ['GET',  '/changes', ['Host: 127.0.0.1', 'Origin: null'],                        403, 'bad_request'],
    ['GET',  '/changes', ['Host: 127.0.0.1', 'Sec-Fetch-Site: cross-site'],          403, 'bad_request'],
    ['GET',  '/changes', ['Host: 127.0.0.1', 'Sec-Fetch-Site: same-site'],           403, 'bad_request'],
    ['POST', '/changes', ['Host: 127.0.0.1', 'Content-Length: 0'],                   405, 'method_not_allowed'],
    ['GET',  '/x',       ['Host: 127.0.0.1'],                                        404, 'not_found'],
    ['GET',  '//console/', ['Host: 127.0.0.1'],                                      404, 'not_found'],
    ['GET',  '/console/', ['Host: evil.example:8081'],                               403, 'bad_request'],
    ['GET',  '//changes', ['Host: 127.0.0.1'],                                       404, 'not_found'],
    ['GET',  '//',       ['Host: 127.0.0.1'],                                        404, 'not_found'],
    ['GET',  '/healthz/../metrics', ['Host: 127.0.0.1'],                             404, 'not_found'],
    ['GET',  '/healthz/%2e%2e/metrics', ['Host: 127.0.0.1'],                         404, 'not_found'],
    ['GET',  '//x/metrics', ['Host: 127.0.0.1'],                                     404, 'not_found'],
    ['GET',  'http://x/metrics', ['Host: 127.0.0.1'],                                404, 'not_found'],
    ['GET',  '/metrics', [],                                                         403, 'bad_request'],
    ['GET',  '/metrics', ['Host:'],                                                  403, 'bad_request'],
    ['GET',  '/metrics', ['Host: '],                                                 403, 'bad_request'],
    ['GET',  '/console/', ['Host: '],                                                403, 'bad_request'],
    ['GET',  '/metrics', ['Host: :8081'],                                            403, 'bad_request'],
    ['GET',  '/metrics', ['Host: 127.0.0.1:x'],                                      403, 'bad_request'],
    ['GET',  '/metrics', ['Host: 127.0.0.1:1'],                                      200, 'metrics'],
    ['GET',  '/metrics', ['Host: localhost.'],                                       403, 'bad_request'],
    ['GET',  '/metrics', ['Host: localhost.:8081'],                                  403, 'bad_request'],
    ['GET',  '/metrics', ['Host: LOCALHOST'],                                        200, 'metrics'],
    ['GET',  '/metrics', ['Host: user@localhost'],                                   403, 'bad_request'],
    ['GET',  '/metrics', ['Host: 127.0.0.1', 'Host: evil.example'],                  403, 'bad_request'],
    ['GET',  '/metrics', ['Host: 127.0.0.1', 'Host: '],                              403, 'bad_request'],
    ['GET',  '/metrics', ['Host: ', 'Host: 127.0.0.1'],                              403, 'bad_request'],
    ['GET',  '/console/', ['Host: 127.0.0.1', 'Host: 127.0.0.1'],                    403, 'bad_request'],
    ['GET',  '/metrics HTTP/1.0\r\nX: x', [],                                        403, 'bad_request'],
    ['GET',  '/metrics HTTP/1.0\r\nX: x', ['Host: '],                                403, 'bad_request'],
    ['GET',  '/metrics HTTP/1.0\r\nX: x', ['Host: localhost'],                       200, 'metrics'],
    ['GET',  '/metrics', ['Host: 127.0.0.1', 'Expect: all'],                         200, 'metrics'],
    ['CONNECT', 'x:1',   ['Host: 127.0.0.1'],                                        404, 'not_found'],
    ['GE T', '/metrics', ['Host: 127.0.0.1'],                                        400, 'bad_request'],
    ['GET',  '/metrics', ['Host: 127.0.0.1', `X: ${'x'.repeat(65_536)}`],            431, 'bad_request'],
    ['GET',  '/metrics', ['Host: 127.0.0.1', 'Content-Length: x'],                   400, 'bad_request'],
    ['GET',  '/changes?to=1',       ['Host: 127.0.0.1'],                             400, 'bad_request'],
    ['GET',  '/changes?data=yes',   ['Host: 127.0.0.1'],                             400, 'bad_request'],
    ['GET',  '/changes?from=x',     ['Host: 127.0.0.1'],                             400, 'not_possible'],
    ['GET',  '/changes',            ['Host: 127.0.0.1', 'Last-Event-ID: x'],         400, 'not_possible'],
    ['GET',  '/changes?conv_id=77', ['Host: 127.0.0.1'],                             404, 'conv_not_found'],
  ]
  for (const [method, path, headers, status, answer] of rows) {
    test(`${method} ${path} with ${headers.join(', ').slice(0, 80)}: ${status}`, async () => {
      const bytes = `${method} ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`
      told.length = 0
      const given = await exchange(server.address.port, bytes)
      const is_text = given.body.startsWith('# HELP')
      const { ok, error = String(ok) } = is_text ? { error: 'metrics' } : JSON.parse(given.body)
      assert.deepEqual([given.status, error], [status, answer])
      const refusal = { event: 'request_refused', server: 'operator', code: error }
      const line = { ...refusal, address: '127.0.0.1' }
      assert.deepEqual(told, status === 200 ? [] : [line])
      assert.equal(given.headers['access-control-allow-origin'], undefined)
      assert.equal(given.headers['cache-control'], 'no-store')
    })
  }

  test('a connection on which too many ask and nobody reads ends, and holds little', async () => {
    const socket = connect(server.address.port, '127.0.0.1').resume()
    await once(socket, 'connect')
    told.length = 0
    const { requests } = servedEngine(engine).statistics()
    const scrape = 'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
    socket.on('error', () => {}).write(scrape.repeat(1_000))
    await once(socket, 'close')
    const refusal = { event: 'request_refused', server: 'operator', code: 'overloaded' }
    assert.deepEqual(told, [{ ...refusal, address: '127.0.0.1' }])
    const counted = servedEngine(engine).statistics().requests.operator
    assert.equal((counted?.overloaded ?? 0) - (requests.operator?.overloaded ?? 0), 1)
    assert.ok((counted?.ok ?? 0) - (requests.operator?.ok ?? 0) <= open_requests_max)
  })

  test('HEAD /changes has the head of a feed alone', async () => {
    const answer = await fetch(`${server.url}/changes`, { method: 'HEAD' })
    assert.deepEqual([answer.status, await answer.text()], [200, ''])
  })
})

describe('who may read', () => {
  const token = 'a token of 27 characters :)'.replaceAll(' ', '_')
  let ca: TestCertificate
  let tls: { readonly folder: string }
  before(async () => {
    ca = await makeCa()
    tls = { folder: writeFolder(ca, await makeServer(ca)) }
  })
  after(() => rmSync(tls.folder, { recursive: true }))

  /** The status and body of a GET; undefined where the connection is refused. */
  function get(url: string, options: RequestOptions = {}): Promise<[number, string]> {
    return new Promise((resolve, reject) => {
      const { request } = url.startsWith('https') ? https : http
      const sent = request(
        url,
        { agent: false, servername: 'localhost', ca: ca.cert, ...options },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk) => chunks.push(chunk))
          response.on('end', () =>
            resolve([response.statusCode ?? 0, Buffer.concat(chunks).toString()]),
          )
        },
      )
      sent.on('error', reject).end()
    })
  }
  const bearer = (given: string) => ({ headers: { authorization: given } })

  for (const [bad, says] of [
    ['short', /16 to 1024 characters/],
    ['x'.repeat(1_025), /16 to 1024 characters/],
    ['with a space in the token', /none a space/],
  ] as const) {
    test(`not by the token ${bad.slice(0, 40)}`, () =>
      assert.rejects(serveOperator(engine, { port: 0, token: bad }), says))
  }

  for (const host of ['127.0.0.1', '0.0.0.0']) {
    for (const over of ['http', 'https'] as const) {
      test(`with a token on ${host} over ${over}`, async () => {
        const told: object[] = []
        const served = { ...servedEngine(engine), emit: recorder(told) }
        const files = over === 'https' ? { tls } : {}
        // With a token no authority is needed.
        if (over === 'https') rmSync(join(tls.folder, 'ca.crt'))
        const own = await serveOperator(served, { port: 0, host, token, ...files })
        const url = `${over}://127.0.0.1:${own.address.port}`
        assert.equal(own.url, `${over}://${host}:${own.address.port}`)
        told.length = 0
        const rows: [string, RequestOptions, number][] = [
          ['/healthz', {}, 200],
          ['/readyz', {}, 200],
          ['/metrics', {}, 401],
          ['/changes', {}, 401],
          ['/nothing', {}, 401],
          ['/nothing', bearer(`Bearer ${token}`), 404],
          ['/metrics', bearer(`Bearer ${token}`), 200],
          ['/metrics', bearer(`bearer  ${token}`), 200],
          ['/metrics', bearer(`Basic ${token}`), 401],
          ['/metrics', bearer(`Bearer ${token}x`), 401],
          ['/metrics', bearer('Bearer x'), 401],
          ['/metrics', { headers: { authorization: `Bearer ${token}`, host: 'any.example' } }, 200],
          ['/metrics', { headers: { authorization: `Bearer ${token}`, origin: 'http://x' } }, 403],
        ]
        for (const [path, options, status] of rows) {
          const [given, body] = await get(url + path, options)
          assert.equal(given, status, `${path}: ${body}`)
          const code = { 401: 'bad_signature', 403: 'bad_request', 404: 'not_found' }[status]
          const refusal = {
            event: 'request_refused',
            server: 'operator',
            code,
            address: '127.0.0.1',
          }
          assert.deepEqual(told.splice(0), status === 200 ? [] : [refusal])
        }
        assert.deepEqual(Object.keys(JSON.parse((await get(`${url}/readyz`))[1])), [
          'ok',
          'version',
          'uptime_s',
        ])
        const { checks } = JSON.parse((await get(`${url}/readyz`, bearer(`Bearer ${token}`)))[1])
        assert.deepEqual(checks.commit, { ok: true })
        await own.drain()
        if (over === 'https') writeFileSync(join(tls.folder, 'ca.crt'), ca.cert)
      })
    }
  }

  test('over TLS: certificates of the authority that act as no user', async () => {
    await engine.users.add({ id: 77 })
    await engine.users.bind(77, 'uri:user')
    await engine.users.unbind('uri:refused')
    const own = await serveOperator(engine, { port: 0, host: '0.0.0.0', tls })
    const url = `https://127.0.0.1:${own.address.port}`
    const named = (value: string) => makeClient(ca, { san: [{ type: 'url', value }] })
    const rows: [string, TestCertificate | undefined, number, RegExp][] = [
      ['unbound', await named('operator'), 200, /^# HELP/],
      ['none', undefined, 401, /no client certificate: send one of the authority/],
      ['of a user', await named('user'), 403, /acts as a user/],
      ['refused', await named('refused'), 403, /certificate is refused/],
      [
        'of another authority',
        await makeClient(await makeCa('x')),
        401,
        /refused: unknown authority/,
      ],
      ['expired', await makeClient(ca, { from_days: -3, to_days: -1 }), 401, /refused: expired/],
      ['of a server', await makeClient(ca, { usage: ['serverAuth'] }), 401, /not for clients/],
    ]
    for (const [says, client, status, body] of rows) {
      const options = client === undefined ? {} : { cert: client.cert, key: client.key }
      const given = await get(`${url}/metrics`, options)
      assert.equal(given[0], status, says)
      assert.match(given[1], body)
      const ready = JSON.parse((await get(`${url}/readyz`, options))[1])
      assert.deepEqual([ready.ok, 'checks' in ready], [true, status === 200], says)
    }
    await own.drain()
  })

  test('new certificate files are used', async () => {
    const folder = writeFolder(ca, await makeServer(ca))
    const options = { port: 0, tls: { folder }, token, limits: { tls_reload_ms: 10 } }
    const own = await serveOperator(engine, options)
    const next = await makeCa('next')
    await assert.rejects(get(`${own.url}/healthz`, { ca: next.cert }))
    writeFolder(next, await makeServer(next), undefined, folder)
    const isNext = () =>
      get(`${own.url}/healthz`, { ca: next.cert }).then(
        () => true,
        () => false,
      )
    while (!(await isNext()));
    await own.drain()
    rmSync(folder, { recursive: true })
  })
})

describe('health', () => {
  test('tells why it is not ready, and stays alive', async () => {
    const checks = {
      ...(await engine.ready()).checks,
      key: { ok: false, reason: 'the key file /a/b.key is missing' },
    }
    const not_ready: Readiness = { ok: false, version: '1', uptime_s: 2, checks }
    const served = { ...servedEngine(engine), ready: async () => not_ready }
    const own = await serveOperator(served, { port: 0 })
    const ready = await fetch(`${own.url}/readyz`)
    assert.deepEqual([ready.status, await ready.json()], [503, not_ready])
    const alive = await fetch(`${own.url}/healthz`)
    const { ok, version, uptime_s } = (await alive.json()) as Readiness
    assert.deepEqual([alive.status, ok, version, typeof uptime_s], [200, true, '0.1.0', 'number'])
    assert.equal((await fetch(`${own.url}/healthz`, { method: 'HEAD' })).status, 200)
    await own.drain()
  })
})

describe('the feed', () => {
  test('has each change once, and goes on after the last one that was read', async () => {
    const feed = await open('/changes')
    const obj_id = await create('a')
    const { id, change } = await next(feed)
    const { position, at_ms, ...members } = change as Record<string, unknown>
    assert.equal(position, id)
    assert.equal(typeof at_ms, 'number')
    const of_a = { conv_id, obj_id, ref: 'a', status: 'delayed', node_id: 'wait' }
    assert.deepEqual(members, of_a)
    await feed.return(undefined)
    await create('b')
    await create('c')
    for (const [path, headers] of [
      [`/changes?from=${id}`, {}],
      ['/changes?from=start', { 'Last-Event-ID': id as string }],
    ] as const) {
      const again = await open(path, headers)
      const refs = [(await next(again)).change, (await next(again)).change]
      assert.deepEqual(
        refs.map((one) => (one as { ref: string }).ref),
        ['b', 'c'],
      )
      await again.return(undefined)
    }
  })

  test('of one process, with the data of tasks as it is stored', async () => {
    await engine.processes.put({ ...process_definition, obj_id: 55 })
    await create('not this one')
    await engine.create({
      conv_id: 55,
      ref: 7,
      data: rawJson('{"n":1.10,\n"big":12345678901234567890}'),
    })
    const feed = await open('/changes?from=start&conv_id=55&data=1')
    const { data = '' } = await next(feed)
    assert.ok(/"data":\{"n":1\.10, ?"big":12345678901234567890\}\}\}$/.test(data), data)
    const { task } = JSON.parse(data)
    assert.deepEqual([task.ref, task.ref_is_number, task.user_id], ['7', true, null])
    assert.ok(!('history' in task) && !('data_text' in task))
    await feed.return(undefined)
  })

  test('tells a reader whose position has left the window, at the start and later', async () => {
    const small = await openEngine(':memory:', { limits: { changes_bytes_max: 2_000 } })
    await small.processes.put(process_definition)
    const own = await serveOperator(small, { port: 0 })
    const fill = async (): Promise<void> => {
      for (let n = 0; n < 60; n++) await small.create({ conv_id, data: {} })
    }
    await small.create({ conv_id, data: {} })
    const first = await small.changes({ from: 'start' }).next()
    await fill()
    const from = String(first.value?.position)
    // The oldest are removed in the background: until then the position is as good as any.
    const isKept = async (): Promise<boolean> => {
      const reader = small.changes({ from })
      const has_begun = await reader.next().then(
        () => true,
        () => false,
      )
      await reader.return?.()
      return has_begun
    }
    while (await isKept()) await nextTurn()
    const response = await fetch(`${own.url}/changes?from=${from}`)
    const text = await response.text()
    assert.match(
      text,
      /^retry: 1000\n\nevent: gone\ndata: \{"error":"changes_gone","description":".*"\}\n\n$/,
    )
    await own.drain()
    await small.close()
  })

  test('ends with the listener and with the engine', async () => {
    const ending = await openEngine(':memory:')
    const own = await serveOperator(ending, { port: 0 })
    const one = await fetch(`${own.url}/changes`)
    await own.drain()
    assert.equal(await one.text(), 'retry: 1000\n\n')
    const other = await serveOperator(ending, { port: 0 })
    const two = await fetch(`${other.url}/changes`)
    await ending.close()
    assert.equal(await two.text(), 'retry: 1000\n\n')
    assert.equal((await fetch(`${other.url}/healthz`)).status, 200)
    const ready = await fetch(`${other.url}/readyz`)
    const { ok, checks } = (await ready.json()) as Readiness
    assert.deepEqual(
      [ready.status, ok, checks.open],
      [503, false, { ok: false, reason: 'it shuts down' }],
    )
    await other.drain()
  })
})

describe('readers that do not read', () => {
  test('are ended after reader_stalled_ms_max', async () => {
    const limits = { reader_stalled_ms_max: 200, readers_max: 1 }
    const own = await serveOperator(engine, { port: 0, limits })
    const data = { text: 'x'.repeat(100_000) }
    const create = { type: 'create', obj: 'task', conv_id, data }
    await engine.apply(Array.from({ length: 100 }, () => create))
    const socket = connect(own.address.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET /changes?from=start&data=1 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    let read_bytes = (await once(socket, 'data'))[0].length
    socket.pause()
    // Until then nobody else may read.
    const status = async (): Promise<number> =>
      (await fetch(`${own.url}/changes`, { method: 'HEAD' })).status
    while ((await status()) !== 200);
    socket.on('data', (chunk) => {
      read_bytes += chunk.length
    })
    await Promise.all([once(socket, 'close'), socket.resume()])
    assert.ok(read_bytes < 100 * data.text.length, `${read_bytes} bytes came`)
    await own.drain()
  })

  test('leave nothing where requests behind them on their connection were not answered', async () => {
    const limits = { readers_max: 2, drain_ms_max: 600_000 }
    const own = await serveOperator(engine, { port: 0, limits })
    const socket = connect(own.address.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET /changes HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(2))
    const status = async (): Promise<number> =>
      (await fetch(`${own.url}/changes`, { method: 'HEAD' })).status
    while ((await status()) !== 503);
    socket.destroy()
    while ((await status()) !== 200);
    await own.drain()
  })

  test('are told from those that wait by comments', async () => {
    const own = await serveOperator(engine, { port: 0, limits: { reader_beat_ms: 5 } })
    const response = await fetch(`${own.url}/changes`)
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      if (text.endsWith(':\n\n:\n\n')) break
    }
    await own.drain()
  })

  test('are bounded in number', async () => {
    const own = await serveOperator(engine, { port: 0, limits: { readers_max: 1 } })
    const one = await fetch(`${own.url}/changes`)
    const other = await fetch(`${own.url}/changes`)
    assert.deepEqual(
      [other.status, ((await other.json()) as { error: string }).error],
      [503, 'overloaded'],
    )
    assert.equal((await fetch(`${own.url}/healthz`)).status, 200)
    await one.body?.cancel()
    while ((await fetch(`${own.url}/changes`, { method: 'HEAD' })).status !== 200);
    await own.drain()
  })
})
