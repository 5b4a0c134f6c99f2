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

interface Row {
  readonly says: string
  readonly code: WholeFaultCode
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
  send(server: TestHttp): string | Uint8Array
}

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
const retry = { 'retry-after': '1' }
const drain = { 'retry-after': '5' }

const rows: Row[] = [
  { says: 'no HTTP', code: 'bad_request', closes: true, send: () => 'hello\r\n\r\n' },
  {
    says: 'headers over the limit',
    code: 'bad_request',
    status: 431,
    closes: true,
    send: (server) => server.post(body, { headers: [`X: ${'x'.repeat(9000)}`] }),
  },
  {
    says: 'too many headers',
    code: 'bad_request',
    status: 431,
    closes: true,
    send: (server) => server.post(body, { headers: Array(64).fill('A: b') }),
  },
  {
    says: 'HTTP/2',
    code: 'bad_request',
    closes: true,
    description: 'this is HTTP/2, and this port speaks HTTP/1.1',
    send: () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  },
  {
    says: 'TLS',
    code: 'bad_request',
    closes: true,
    description: 'this is TLS, and this port speaks plain HTTP',
    send: () => Buffer.from('16030100c8010000c40303', 'hex'),
  },
  {
    says: 'milliseconds, by GET, while the engine closes',
    is_of_path: true,
    code: 'bad_request',
    description: 'timestamp: Unix seconds; this looks like milliseconds: "1370442000000"',
    over: health('shutting_down'),
    send: (server) =>
      `GET ${server.path('', { timestamp: '1370442000000' })} HTTP/1.1\r\nHost: x\r\n\r\n`,
  },
  {
    says: 'a name for a user, before its body',
    is_of_path: true,
    code: 'bad_request',
    closes: true,
    description: 'user: the number of a user, such as 13000; this looks like a name: "joe"',
    send: (server) => headOnly(server, 99_999).replace(/json.13000/, 'json/joe'),
  },
  {
    says: 'another path, before its body',
    code: 'not_found',
    closes: true,
    send: () => 'POST /api/3/json HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n',
  },
  { says: 'the root', code: 'not_found', send: () => 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' },
  {
    says: 'GET',
    code: 'method_not_allowed',
    description: 'only POST: what is signed is the body of the request',
    headers: { allow: 'POST' },
    send: (server) => `GET ${server.path('')} HTTP/1.1\r\nHost: x\r\n\r\n`,
  },
  {
    says: 'GET, to be signed in headers',
    code: 'method_not_allowed',
    headers: { allow: 'POST' },
    send: () => 'GET /api/1/json HTTP/1.1\r\nHost: x\r\n\r\n',
  },
  {
    says: 'HEAD',
    code: 'method_not_allowed',
    headers: { allow: 'POST' },
    bodiless: true,
    send: (server) => `HEAD ${server.path('')} HTTP/1.1\r\nHost: x\r\n\r\n`,
  },
  {
    says: 'POST to health',
    code: 'method_not_allowed',
    headers: { allow: 'GET, HEAD' },
    send: () => 'POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n',
  },
  {
    says: 'the engine closes',
    code: 'shutting_down',
    headers: drain,
    closes: true,
    over: health('shutting_down'),
    send: (server) => headOnly(server, 100, ...gzip),
  },
  {
    says: 'the engine closed meanwhile',
    code: 'shutting_down',
    headers: drain,
    closes: true,
    over: submit(fault('shutting_down')),
    send: (server) => server.post(body),
  },
  {
    says: 'the store has failed, before the body',
    code: 'store_failed',
    over: health('store_failed'),
    send: (server) => headOnly(server, 100, ...gzip),
  },
  {
    says: 'the commit failed',
    code: 'store_failed',
    over: submit(fault('store_failed', 'disk gone')),
    description: 'disk gone',
    send: (server) => server.post(body),
  },
  {
    says: 'the key file is missing',
    code: 'store_failed',
    over: {
      users: {
        secrets: () => {
          throw fault('store_failed', '/data/key is missing', { outside: 'no key' })
        },
      } as unknown as ServedEngine['users'],
    },
    description: 'no key',
    send: (server) => server.post(body),
  },
  {
    says: 'a full queue, before the body',
    code: 'overloaded',
    headers: retry,
    over: health('overloaded'),
    send: (server) => headOnly(server, 100, ...gzip),
  },
  {
    says: 'a full queue',
    code: 'overloaded',
    headers: retry,
    over: submit(fault('overloaded')),
    send: (server) => server.post(body),
  },
  {
    says: 'no space',
    code: 'no_space',
    over: submit(fault('no_space')),
    send: (server) => server.post(body),
  },
  {
    says: 'gzip, before the body and its size',
    code: 'unsupported_encoding',
    closes: true,
    send: (server) => headOnly(server, 1e9, ...gzip),
  },
  {
    says: 'a length over the limit, before the body',
    code: 'body_too_large',
    closes: true,
    description: 'the body is over 1000 bytes',
    options: { limits: { body_bytes_max: 1000 } },
    send: (server) => headOnly(server, 1001),
  },
  {
    says: 'a length no double holds',
    code: 'body_too_large',
    closes: true,
    send: (server) =>
      `POST ${server.path('x')} HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n`,
  },
  {
    says: 'chunks over the limit',
    code: 'body_too_large',
    closes: true,
    options: { limits: { body_bytes_max: 1000 } },
    send: (server) =>
      `POST ${server.path('x')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n` +
      `3e8\r\n${'x'.repeat(1000)}\r\n1\r\nx`,
  },
  {
    says: 'a body that does not come',
    code: 'request_timeout',
    closes: true,
    options: { limits: { request_ms_max: 60 } },
    send: (server) => `${headOnly(server, 2)}x`,
  },
  {
    says: 'a wrong secret, and an old time, and no JSON',
    code: 'bad_signature',
    description: 'unknown user or wrong signature',
    send: (server) => server.post('x', { secret: 'y', timestamp: old }),
  },
  {
    says: 'an unknown user is answered alike',
    code: 'bad_signature',
    description: 'unknown user or wrong signature',
    send: (server) => server.post('x', { user: '13001', timestamp: old }),
  },
  {
    says: 'no signature in the headers, and no JSON',
    code: 'bad_signature',
    description:
      /^X-API-Login: .*; this header is missing\. X-API-Timestamp: .* missing\. X-API-Sig/,
    send: (server) =>
      `POST ${server.path('', { sign: 'hmac' })} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx`,
  },
  {
    says: 'an unknown user in the headers is answered alike',
    code: 'bad_signature',
    description: 'unknown user or wrong signature',
    send: (server) => server.post('x', { sign: 'hmac', user: '13001', timestamp: old }),
  },
  {
    says: 'no signature in the headers, and a length over the limit',
    code: 'body_too_large',
    closes: true,
    send: () => 'POST /api/1/json HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n',
  },
  {
    says: 'an old time in the headers, and no JSON',
    code: 'stale_timestamp',
    send: (server) => server.post('x', { sign: 'hmac', timestamp: old }),
  },
  {
    says: 'an old time, and no JSON',
    code: 'stale_timestamp',
    description:
      /^timestamp outside the window: \d+(\.\d+)? s behind the server's time, 1\d{9}(\.\d+)?; the window is 300 s$/,
    send: (server) => server.post('x', { timestamp: old }),
  },
  {
    says: 'a time to come',
    code: 'stale_timestamp',
    description: / s ahead of the server's time, /,
    send: (server) => server.post(body, { timestamp: '9999999999.5' }),
  },
  {
    says: 'the rate of the engine',
    code: 'rate_limited',
    headers: retry,
    over: submit(fault('rate_limited')),
    send: (server) => server.post(body),
  },
  { says: 'no JSON', code: 'format_error', send: (server) => server.post('{"ops":') },
  { says: 'no body', code: 'format_error', send: (server) => server.post('') },
  { says: 'no ops', code: 'format_error', send: (server) => server.post('{}') },
  {
    says: 'too many ops',
    code: 'too_many_ops',
    options: { limits: { ops_max: 1 } },
    send: (server) => server.post('{"ops":[1,2]}'),
  },
  {
    says: 'applied before, and its answer is not repeated',
    code: 'repeated_request',
    over: submit(fault('repeated_request')),
    send: (server) => server.post(body),
  },
  {
    says: 'a key of another request',
    code: 'request_key_reused',
    over: submit(fault('request_key_reused')),
    send: (server) => server.post(body),
  },
  {
    says: 'a bug keeps its text',
    code: 'internal_error',
    description: 'internal error',
    bugs: 1,
    over: submit(new Error('secret words')),
    send: (server) => server.post(body),
  },
  {
    says: 'a bug the engine has seen keeps its text',
    code: 'internal_error',
    description: 'internal error',
    over: submit(fault('internal_error', 'secret words')),
    send: (server) => server.post(body),
  },
  {
    says: 'a fault that is no answer to a request is a bug',
    code: 'internal_error',
    description: 'internal error',
    bugs: 1,
    over: submit(fault('user_exists')),
    send: (server) => server.post(body),
  },
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
  const forms = rows.flatMap((row) =>
    (['path', 'hmac'] as const)
      .filter((sign) => sign === 'path' || row.is_of_path !== true)
      .map((sign) => ({ row, sign })),
  )
  for (const { row, sign } of forms) {
    test(`${row.code}: ${row.says}, by ${sign}`, async () => {
      const bugs: unknown[] = []
      const options: HttpOptions = { ...row.options, onBug: (bug) => bugs.push(bug) }
      const server = await openHttp(options, row.over)
      try {
        const [answer, events] = await withEvents(() =>
          exchange(server.port, row.send(signing(server, sign)), row.bodiless),
        )
        check(row, answer)
        assert.equal(bugs.length, row.bugs ?? 0)
        // Of a bug its own line is told, once.
        assert.deepEqual(refusalsOf(events), row.code === 'internal_error' ? [] : [row.code])
        assert.equal(events.filter(({ event }) => event === 'bug').length, row.bugs ?? 0)
        assert.ok(!JSON.stringify(events).includes(server.secret))
        if (row.over === undefined) assert.equal(codeOf(await server.send(createBody('s'))), 'ok')
      } finally {
        await server.close()
      }
    })
  }

  test('each row of the table is provoked', () => {
    const provoked = new Set<string>(rows.map((row) => row.code))
    for (const code of Object.keys(wholeFaults)) assert.ok(provoked.has(code), code)
  })

  function check(row: Row, answer: Answer): void {
    assert.equal(answer.status, row.status ?? wholeFaults[row.code].http)
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
    assert.equal(said.request_proc, row.code)
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
