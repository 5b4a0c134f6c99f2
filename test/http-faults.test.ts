/**
 * Every whole-request fault of the table (wire 1.4), provoked over a socket: its status, headers and
 * body, and which of two is answered where both apply. After each row a good request is answered.
 */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { fault, type WholeFaultCode, wholeFaults } from '../src/core/faults.ts'
import type { ServedEngine } from '../src/engine/served-engine.ts'
import type { HttpOptions } from '../src/http.ts'
import { type Answer, exchange } from './support/http-raw.ts'
import { codeOf, createBody, openHttp, type TestHttp } from './support/http-server.ts'
import { refusalsOf, withEvents } from './support/told-events.ts'

type Send = (server: TestHttp) => string | Uint8Array
interface More {
  /** If it differs from the table's. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly closes?: true
  readonly description?: string | RegExp
  readonly options?: HttpOptions
  readonly over?: Partial<ServedEngine>
  readonly bodiless?: true
  /** Of the path's own form, so that there is none with headers. */
  readonly is_of_path?: true
  /** The calls of `onBug`. */
  readonly bugs?: number
}
type Row = readonly [says: string, code: WholeFaultCode, send: Send, more?: More]

const body = createBody('r')
const old = '1370442000'
const gzip = ['Content-Encoding: gzip']
/** A head whose body is never complete, so only an early answer is possible. */
const headOnly = (server: TestHttp, length: number, ...lines: string[]): string =>
  `POST ${server.path('x')} HTTP/1.1\r\nHost: x\r\n${[...lines, `Content-Length: ${length}`].join('\r\n')}\r\n\r\n`
const health = (code: WholeFaultCode): Partial<ServedEngine> => ({ health: () => code })
const submit = (thrown: unknown): Partial<ServedEngine> => ({
  submit: () => Promise.reject(thrown),
})
const posted: Send = (server) => server.post(body)
const retry = { 'retry-after': '1' }
const drain = { 'retry-after': '5' }

const rows: readonly Row[] = [
  ['no HTTP', 'bad_request', () => 'hello\r\n\r\n', { closes: true }],
  [
    'headers over the limit',
    'bad_request',
    (server) => server.post(body, { headers: [`X: ${'x'.repeat(9000)}`] }),
    { status: 431, closes: true },
  ],
  [
    'too many headers',
    'bad_request',
    (server) => server.post(body, { headers: Array(64).fill('A: b') }),
    { status: 431, closes: true },
  ],
  [
    'HTTP/2',
    'bad_request',
    () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    { closes: true, description: 'this is HTTP/2, and this port speaks HTTP/1.1' },
  ],
  [
    'TLS',
    'bad_request',
    () => Buffer.from('16030100c8010000c40303', 'hex'),
    { closes: true, description: 'this is TLS, and this port speaks plain HTTP' },
  ],
  [
    'milliseconds, by GET, while the engine closes',
    'bad_request',
    (server) =>
      `GET ${server.path('', { timestamp: '1370442000000' })} HTTP/1.1\r\nHost: x\r\n\r\n`,
    {
      is_of_path: true,
      description: 'timestamp: Unix seconds; this looks like milliseconds: "1370442000000"',
      over: health('shutting_down'),
    },
  ],
  [
    'a name for a user, before its body',
    'bad_request',
    (server) => headOnly(server, 99_999).replace(/json.13000/, 'json/joe'),
    {
      is_of_path: true,
      closes: true,
      description: 'user: the number of a user, such as 13000; this looks like a name: "joe"',
    },
  ],
  [
    'another path, before its body',
    'not_found',
    () => 'POST /api/3/json HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n',
    { closes: true },
  ],
  ['the root', 'not_found', () => 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  [
    'GET',
    'method_not_allowed',
    (server) => `GET ${server.path('')} HTTP/1.1\r\nHost: x\r\n\r\n`,
    {
      description: 'only POST: what is signed is the body of the request',
      headers: { allow: 'POST' },
    },
  ],
  [
    'GET, to be signed in headers',
    'method_not_allowed',
    () => 'GET /api/1/json HTTP/1.1\r\nHost: x\r\n\r\n',
    { headers: { allow: 'POST' } },
  ],
  [
    'HEAD',
    'method_not_allowed',
    (server) => `HEAD ${server.path('')} HTTP/1.1\r\nHost: x\r\n\r\n`,
    { headers: { allow: 'POST' }, bodiless: true },
  ],
  [
    'POST to health',
    'method_not_allowed',
    () => 'POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n',
    { headers: { allow: 'GET, HEAD' } },
  ],
  [
    'the engine closes',
    'shutting_down',
    (server) => headOnly(server, 100, ...gzip),
    { headers: drain, closes: true, over: health('shutting_down') },
  ],
  [
    'the engine closed meanwhile',
    'shutting_down',
    posted,
    { headers: drain, closes: true, over: submit(fault('shutting_down')) },
  ],
  [
    'the store has failed, before the body',
    'store_failed',
    (server) => headOnly(server, 100, ...gzip),
    { over: health('store_failed') },
  ],
  [
    'the commit failed',
    'store_failed',
    posted,
    { over: submit(fault('store_failed', 'disk gone')), description: 'disk gone' },
  ],
  [
    'the key file is missing',
    'store_failed',
    posted,
    {
      over: {
        users: {
          secrets: () => {
            throw fault('store_failed', '/data/key is missing', { outside: 'no key' })
          },
        } as unknown as ServedEngine['users'],
      },
      description: 'no key',
    },
  ],
  [
    'a full queue, before the body',
    'overloaded',
    (server) => headOnly(server, 100, ...gzip),
    { headers: retry, over: health('overloaded') },
  ],
  ['a full queue', 'overloaded', posted, { headers: retry, over: submit(fault('overloaded')) }],
  ['no space', 'no_space', posted, { over: submit(fault('no_space')) }],
  [
    'gzip, before the body and its size',
    'unsupported_encoding',
    (server) => headOnly(server, 1e9, ...gzip),
    { closes: true },
  ],
  [
    'a length over the limit, before the body',
    'body_too_large',
    (server) => headOnly(server, 1001),
    {
      closes: true,
      description: 'the body is over 1000 bytes',
      options: { limits: { body_bytes_max: 1000 } },
    },
  ],
  [
    'a length no double holds',
    'body_too_large',
    (server) =>
      `POST ${server.path('x')} HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n`,
    { closes: true },
  ],
  [
    'chunks over the limit',
    'body_too_large',
    (server) =>
      `POST ${server.path('x')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n` +
      `3e8\r\n${'x'.repeat(1000)}\r\n1\r\nx`,
    { closes: true, options: { limits: { body_bytes_max: 1000 } } },
  ],
  [
    'a body that does not come',
    'request_timeout',
    (server) => `${headOnly(server, 2)}x`,
    { closes: true, options: { limits: { request_ms_max: 60 } } },
  ],
  [
    'a wrong secret, and an old time, and no JSON',
    'bad_signature',
    (server) => server.post('x', { secret: 'y', timestamp: old }),
    { description: 'unknown user or wrong signature' },
  ],
  [
    'an unknown user is answered alike',
    'bad_signature',
    (server) => server.post('x', { user: '13001', timestamp: old }),
    { description: 'unknown user or wrong signature' },
  ],
  [
    'no signature in the headers, and no JSON',
    'bad_signature',
    (server) =>
      `POST ${server.path('', { sign: 'hmac' })} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx`,
    {
      description:
        /^X-API-Login: .*; this header is missing\. X-API-Timestamp: .* missing\. X-API-Sig/,
    },
  ],
  [
    'an unknown user in the headers is answered alike',
    'bad_signature',
    (server) => server.post('x', { sign: 'hmac', user: '13001', timestamp: old }),
    { description: 'unknown user or wrong signature' },
  ],
  [
    'no signature in the headers, and a length over the limit',
    'body_too_large',
    () => 'POST /api/1/json HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n',
    { closes: true },
  ],
  [
    'an old time in the headers, and no JSON',
    'stale_timestamp',
    (server) => server.post('x', { sign: 'hmac', timestamp: old }),
  ],
  [
    'an old time, and no JSON',
    'stale_timestamp',
    (server) => server.post('x', { timestamp: old }),
    {
      description:
        /^timestamp outside the window: \d+(\.\d+)? s behind the server's time, 1\d{9}(\.\d+)?; the window is 300 s$/,
    },
  ],
  [
    'a time to come',
    'stale_timestamp',
    (server) => server.post(body, { timestamp: '9999999999.5' }),
    { description: / s ahead of the server's time, / },
  ],
  [
    'the rate of the engine',
    'rate_limited',
    posted,
    { headers: retry, over: submit(fault('rate_limited')) },
  ],
  ['no JSON', 'format_error', (server) => server.post('{"ops":')],
  ['no body', 'format_error', (server) => server.post('')],
  ['no ops', 'format_error', (server) => server.post('{}')],
  [
    'too many ops',
    'too_many_ops',
    (server) => server.post('{"ops":[1,2]}'),
    { options: { limits: { ops_max: 1 } } },
  ],
  [
    'applied before, and its answer is not repeated',
    'repeated_request',
    posted,
    { over: submit(fault('repeated_request')) },
  ],
  [
    'a key of another request',
    'request_key_reused',
    posted,
    { over: submit(fault('request_key_reused')) },
  ],
  [
    'a bug keeps its text',
    'internal_error',
    posted,
    { description: 'internal error', bugs: 1, over: submit(new Error('secret words')) },
  ],
  [
    'a bug the engine has seen keeps its text',
    'internal_error',
    posted,
    { description: 'internal error', over: submit(fault('internal_error', 'secret words')) },
  ],
  [
    'a fault that is no answer to a request is a bug',
    'internal_error',
    posted,
    { description: 'internal error', bugs: 1, over: submit(fault('user_exists')) },
  ],
]

/** The server whose requests are signed so where nothing else is said. */
function signing(server: TestHttp, sign: 'path' | 'hmac'): TestHttp {
  return {
    ...server,
    path: (body, how) => server.path(body, { sign, ...how }),
    post: (body, how) => server.post(body, { sign, ...how }),
  }
}

describe('whole-request faults', () => {
  const forms = rows.flatMap(([says, code, send, more = {}]) =>
    (['path', 'hmac'] as const)
      .filter((sign) => sign === 'path' || more.is_of_path !== true)
      .map((sign) => ({ says, code, send, more, sign })),
  )
  for (const { says, code, send, more, sign } of forms) {
    test(`${code}: ${says}, by ${sign}`, async () => {
      const bugs: unknown[] = []
      const options: HttpOptions = { ...more.options, onBug: (bug) => bugs.push(bug) }
      const server = await openHttp(options, more.over)
      try {
        const [answer, events] = await withEvents(() =>
          exchange(server.port, send(signing(server, sign)), more.bodiless),
        )
        check(code, more, answer)
        assert.equal(bugs.length, more.bugs ?? 0)
        // A bug is logged in its own line, once.
        assert.deepEqual(refusalsOf(events), code === 'internal_error' ? [] : [code])
        assert.equal(events.filter(({ event }) => event === 'bug').length, more.bugs ?? 0)
        assert.ok(!JSON.stringify(events).includes(server.secret))
        if (more.over === undefined) assert.equal(codeOf(await server.send(createBody('s'))), 'ok')
      } finally {
        await server.close()
      }
    })
  }

  test('each row of the table is provoked', () => {
    const provoked = new Set<string>(rows.map(([, code]) => code))
    for (const code of Object.keys(wholeFaults)) assert.ok(provoked.has(code), code)
  })

  function check(code: WholeFaultCode, row: More, answer: Answer): void {
    assert.equal(answer.status, row.status ?? wholeFaults[code].http)
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
    const closes = row.closes ? 'close' : 'keep-alive'
    assert.equal(answer.headers.connection, closes)
    assert.equal(answer.headers['keep-alive'] === undefined, row.closes === true)
    for (const [name, value] of Object.entries(row.headers ?? {})) {
      assert.equal(answer.headers[name], value)
    }
    if (row.bodiless) return
    const said = JSON.parse(answer.body)
    assert.deepEqual(Object.keys(said), ['request_proc', 'ops', 'description'])
    assert.equal(said.request_proc, code)
    assert.deepEqual(said.ops, [])
    const { description: wanted } = row
    if (wanted instanceof RegExp) assert.match(said.description, wanted)
    else if (wanted !== undefined) assert.equal(said.description, wanted)
    assert.equal(Number(answer.headers['content-length']), Buffer.byteLength(answer.body))
  }
})

describe('window', async () => {
  let now_ms = 1_700_000_000_000
  const clock = { now_ms: () => now_ms, wake_at: () => () => {} }
  const server = await openHttp({}, { clock })
  const open = await openHttp({ limits: { window_ms: 0 } }, { clock })
  after(() => Promise.all([server.close(), open.close()]))

  const windows: [string, number, string][] = [
    ['1699999700', 0, 'ok'],
    ['1700000300', 0, 'ok'],
    ['1699999700', 1, 'stale_timestamp'],
    ['1700000300.001', 0, 'stale_timestamp'],
    ['1700000300.001', 1, 'ok'],
    ['1699999699.999', 0, 'stale_timestamp'],
    ['1', 0, 'stale_timestamp'],
  ]
  for (const [timestamp, later_ms, code] of windows) {
    test(`${timestamp} at 1700000000 s and ${later_ms} ms: ${code}`, async () => {
      now_ms = 1_700_000_000_000 + later_ms
      for (const sign of ['path', 'hmac'] as const) {
        assert.equal(codeOf(await server.send(body, { sign, timestamp })), code, sign)
        assert.equal(codeOf(await open.send(body, { sign, timestamp })), 'ok', 'without a window')
      }
    })
  }
})

describe('rate', () => {
  test('counts ops, and answers the time to wait', async () => {
    const server = await openHttp({ limits: { rate_ops_per_s: 2 } })
    const op = JSON.stringify(JSON.parse(body).ops[0])
    const eight = `{"ops":[${Array(8).fill(op).join()}]}`
    assert.equal(codeOf(await server.send(eight)), 'ok')
    const answer = await server.send('no JSON')
    assert.equal(answer.status, 429)
    assert.equal(answer.headers['retry-after'], '3')
    assert.equal(codeOf(answer), 'rate_limited')
    assert.equal(codeOf(await server.send(body, { secret: 'x' })), 'bad_signature')
    await server.close()
  })
})

describe('health', () => {
  test('is not ok while every signed request fails for want of the key', async () => {
    const state = { problem: 'the key file /a/b.key is missing', warning: undefined, id: undefined }
    const server = await openHttp({}, { keyState: () => state })
    const answer = await exchange(server.port, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.deepEqual([answer.status, answer.body], [503, '{"request_proc":"store_failed"}'])
    await server.close()
  })

  const states: ['ok' | WholeFaultCode, number][] = [
    ['ok', 200],
    ['store_failed', 503],
    ['no_space', 503],
    ['shutting_down', 503],
  ]
  for (const [code, status] of states) {
    test(code, async () => {
      const server = await openHttp({}, { health: () => code })
      const answer = await exchange(server.port, 'GET /healthz?probe HTTP/1.1\r\nHost: x\r\n\r\n')
      assert.equal(answer.status, status)
      assert.equal(answer.body, `{"request_proc":"${code}"}`)
      const head = await exchange(server.port, 'HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n', true)
      assert.equal(head.status, status)
      await server.close()
    })
  }
})
