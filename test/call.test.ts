/** The call executor against real servers: what it sends, accepts and refuses. */
import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { issueClient, issueServer, newAuthority } from '../src/certs/issue.ts'
import { signatureOf } from '../src/codec/signature.ts'
import { systemChance } from '../src/core/clock.ts'
import { type Limits, limitsWith } from '../src/core/limits.ts'
import { type CallExecutorOptions, newCallExecutor } from '../src/executors/call.ts'
import type { CallRequest, JobOutcome } from '../src/process/logic.ts'
import { answerJson, type CallServer, callServer } from './support/call-server.ts'
import { fakeClock } from './support/fake-clock.ts'

const key = '65f0aabbccddeeff00112233-1-0'

interface Given extends Omit<Partial<CallExecutorOptions>, 'limits'> {
  readonly limits?: Partial<Limits>
}

function executorOf({ limits, ...more }: Given = {}) {
  const clock = fakeClock()
  return newCallExecutor({ clock, allow_hosts: [], ...more, limits: limitsWith(limits) })
}

function requestOf(url: string, more: Partial<CallRequest> = {}): CallRequest {
  const { method = 'POST', headers = [], body = '{}' } = more
  const retry = { attempts_max: 1, backoff_ms: 1 }
  const none = { threads_max: 0, sign: undefined, cert_pem: undefined, retry }
  return { url, method, headers, body, ...none, ...more }
}

/** One call by a new executor. */
async function call(request: CallRequest, given: Given = {}): Promise<JobOutcome> {
  const executor = executorOf(given)
  try {
    return await executor.run(request, { key, signal: new AbortController().signal })
  } finally {
    await executor.close()
  }
}

/** Calls a new server that answers with `answer`. */
async function callTo(
  answer: Parameters<typeof callServer>[0],
  more: Partial<CallRequest> = {},
  given: Given = {},
): Promise<{ outcome: JobOutcome; server: CallServer }> {
  const server = await callServer(answer)
  try {
    const outcome = await call(requestOf(`${server.url}/x?a=1`, more), {
      allow_hosts: [server.host],
      ...given,
    })
    return { outcome, server }
  } finally {
    await server.close()
  }
}

/** `done`, `bad` with the description of an api_bad_answer, or what else it is. */
function failureOf(outcome: JobOutcome): string {
  if (outcome.outcome === 'done') return 'done'
  const { error_type, tag, description } = outcome
  if (tag !== 'api_bad_answer') return `${error_type} ${tag}`
  return error_type === 'software' ? `bad ${description.split(':')[0]}` : 'no pair of the table'
}

test('sends the ordered request and the default headers', async () => {
  const headers = [
    ['content-type', 'application/json'],
    ['x-own', 'caf\xe9'],
  ] as const
  const { outcome, server } = await callTo(answerJson('{"b":1.10}'), {
    headers,
    body: '{"a":"ж"}',
  })
  assert.equal(outcome.outcome, 'done')
  assert.equal(outcome.outcome === 'done' && outcome.text, '{"b":1.10}')
  assert.equal(outcome.outcome === 'done' && outcome.status, 200)
  const [asked] = server.asked
  assert.equal(asked?.method, 'POST')
  assert.equal(asked?.path, '/x?a=1')
  assert.equal(asked?.body, '{"a":"ж"}')
  const expected = {
    host: server.host,
    'content-type': 'application/json',
    'content-length': '10',
    'x-own': 'caf\xe9',
    'idempotency-key': key,
    'accept-encoding': 'identity',
    'user-agent': 'conveyor/0.1.0',
  }
  for (const [name, value] of Object.entries(expected)) {
    assert.equal(asked?.headers[name], value, name)
  }
})

test('signs at the time of sending, over the body as sent', async () => {
  const clock = fakeClock()
  const sign = { conv_id: '1234', secret: 's3cret' }
  const { server } = await callTo(answerJson(), { sign, body: '{"ops":[]}' }, { clock })
  const time = String(clock.now_ms() / 1000)
  const signature = signatureOf(time, 's3cret', '{"ops":[]}')
  assert.equal(
    server.asked[0]?.path,
    `/x?a=1&conv_signature=${signature}&conv_time=${time}&conv_id=1234`,
  )
})

test('credentials of the URL become a header', async () => {
  const server = await callServer(answerJson())
  const url = `http://us%40er:pa%3Ass@${server.host}/`
  const outcome = await call(requestOf(url), { allow_hosts: [server.host] })
  await server.close()
  assert.equal(outcome.outcome, 'done')
  const basic = Buffer.from('us@er:pa:ss').toString('base64')
  assert.equal(server.asked[0]?.headers.authorization, `Basic ${basic}`)
})

type Answerer = Parameters<typeof callServer>[0]
const status = (code: number, headers: Record<string, string> = {}, body = ''): Answerer => {
  return (_asked, _request, response) => response.writeHead(code, headers).end(body)
}

const answers: [what: string, answer: Answerer, expected: string][] = [
  ['201', status(201, {}, '{}'), 'done'],
  ['404', status(404, {}, 'no'), 'done'],
  ['a redirect without a location', status(302), 'done'],
  ['304', status(304), 'done'],
  ['HTML', status(200, { 'content-type': 'text/html' }, '<html>'), 'done'],
  ['408', status(408), 'done'],
  ['429', status(429, { 'retry-after': '7' }), 'done'],
  ['500', status(500), 'done'],
  ['503', status(503), 'done'],
  [
    'gzip, which was not asked for',
    (_asked, _request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{}')),
    'bad HTTP 200',
  ],
  [
    'a failure in gzip',
    (_asked, _request, response) =>
      response.writeHead(502, { 'content-encoding': 'gzip' }).end(gzipSync('x')),
    'done',
  ],
  ['a failure that is too large', status(500, {}, '0'.repeat(1001)), 'done'],
  [
    'a failure that says it is too large',
    status(500, { 'content-length': '1001' }, '0'.repeat(1001)),
    'done',
  ],
  [
    'a failure that is cut off',
    (_asked, request, response) => {
      response.writeHead(500, { 'content-length': '100' }).write('x')
      setImmediate(() => request.socket.destroy())
    },
    'done',
  ],
  [
    'not UTF-8',
    (_asked, _request, response) => response.end(Buffer.from([0x7b, 0xff, 0x7d])),
    'software api_no_valid_json',
  ],
  [
    'a body that says it is too large',
    status(200, { 'content-length': '1001' }, '0'.repeat(1001)),
    'software api_task_size_overflow_limit',
  ],
  [
    'an endless stream',
    (_asked, _request, response) => {
      const more = (): void => {
        while (response.write('x'.repeat(100)));
      }
      response.on('drain', more)
      more()
    },
    'software api_task_size_overflow_limit',
  ],
  ['a huge header', status(200, { 'x-huge': 'h'.repeat(20_000) }), 'bad no HTTP as it should be'],
  [
    'a reset before the answer',
    (_a, request) => request.socket.resetAndDestroy(),
    'bad failed_connect',
  ],
  [
    'an end in the middle of the body',
    (_asked, request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{"a":')
      setImmediate(() => request.socket.destroy())
    },
    'bad failed_connect',
  ],
  ['no HTTP', (_a, request) => request.socket.end('SSH-2.0-x\r\n'), 'bad no HTTP as it should be'],
  ['a foreign scheme', status(302, { location: 'file:///etc/passwd' }), 'bad a redirect'],
]

for (const [what, answer, expected] of answers) {
  test(`answers ${what}: ${expected}`, async () => {
    const { outcome } = await callTo(answer, {}, { limits: { call_bytes_max: 1_000 } })
    assert.equal(failureOf(outcome), expected, JSON.stringify(outcome))
  })
}

test('a response of exactly the size limit is accepted', async () => {
  const { outcome } = await callTo(answerJson('"123456"'), {}, { limits: { call_bytes_max: 8 } })
  assert.equal(failureOf(outcome), 'done')
})

test('a port without a server fails as a connection', async () => {
  const server = await callServer(answerJson())
  await server.close()
  const outcome = await call(requestOf(server.url), { allow_hosts: [server.host] })
  assert.equal(failureOf(outcome), 'bad failed_connect')
})

/** Servers that never finish a response; the fake clock ends the call. */
const hangs: [what: string, onSocket: (socket: Socket) => void][] = [
  ['says nothing', () => {}],
  ['stops within the headers', (socket) => socket.write('HTTP/1.1 200 OK\r\nx-a: ')],
  [
    'stops within the body',
    (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'),
  ],
  ['says to wait for ever', (socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n')],
]

for (const [what, onSocket] of hangs) {
  for (const scheme of ['http', 'https'] as const) {
    if (scheme === 'https' && what !== 'says nothing') continue
    test(`a server that ${what} (${scheme}) times out`, async () => {
      const clock = fakeClock()
      let reached = (): void => {}
      const connected = new Promise<void>((resolve) => {
        reached = resolve
      })
      const sockets = new Set<Socket>()
      const server = createServer((socket) => {
        sockets.add(socket.on('error', () => {}))
        socket.once('data', () => {
          onSocket(socket)
          setTimeout(reached, 20)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as { port: number }
      const host = `127.0.0.1:${port}`
      const running = call(requestOf(`${scheme}://${host}/`), { clock, allow_hosts: [host] })
      await connected
      clock.advance(59_999)
      assert.equal(
        await Promise.race([running, new Promise((r) => setTimeout(r, 20, 'runs'))]),
        'runs',
      )
      clock.advance(1)
      assert.equal(failureOf(await running), 'bad timeout')
      assert.equal(clock.nextWake_ms(), undefined)
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    })
  }
}

test('the time limit covers the whole of a slow response', async () => {
  const clock = fakeClock()
  const server = await callServer((_asked, _request, response) => {
    response.writeHead(200)
    const timer = setInterval(() => {
      response.write('x')
      clock.advance(10_000)
    }, 5)
    response.on('close', () => clearInterval(timer))
  })
  const outcome = await call(requestOf(server.url), { clock, allow_hosts: [server.host] })
  await server.close()
  assert.equal(failureOf(outcome), 'bad timeout')
})

test('a name lookup that never ends times out', async () => {
  const clock = fakeClock()
  const running = call(requestOf('http://slow.example/'), {
    clock,
    lookup: () => new Promise(() => {}),
  })
  await new Promise((resolve) => setImmediate(resolve))
  clock.advance(60_000)
  assert.equal(failureOf(await running), 'bad timeout')
})

const refused: [url: string, addresses: string[]][] = [
  ['http://127.0.0.1:PORT/', []],
  ['http://2130706433:PORT/', []],
  ['http://[::ffff:127.0.0.1]:PORT/', []],
  ['http://localhost:PORT/', ['127.0.0.1']],
  ['http://evil.example:PORT/', ['127.0.0.1']],
  ['http://evil.example:PORT/', ['::1', '::ffff:127.0.0.1', '10.0.0.1']],
  ['http://169.254.169.254/latest/meta-data/', []],
]

for (const [url, addresses] of refused) {
  test(`${url} at ${addresses.join(' ')} is refused`, async () => {
    const server = await callServer(answerJson())
    const outcome = await call(requestOf(url.replace('PORT', String(server.port))), {
      lookup: async () => addresses,
      allow_hosts: [`other.example:${server.port}`, '127.0.0.1:1'],
    })
    await server.close()
    const host = new URL(url.replace('PORT', String(server.port))).hostname
    assert.equal(failureOf(outcome), `bad ${host.split(':')[0]}`)
    assert.equal(server.asked.length, 0)
  })
}

test('URLs of our own are reached, and no others of their host', async () => {
  const server = await callServer(answerJson())
  const own_urls = new Set<string>()
  const executor = executorOf({ own_urls })
  const signal = new AbortController().signal
  const run = async (path: string) =>
    failureOf(await executor.run(requestOf(`${server.url}${path}`), { key, signal }))
  assert.equal(await run('/own/x'), 'bad 127.0.0.1')
  own_urls.add(`${server.url}/own/`)
  assert.equal(await run('/own/x?y=1'), 'done')
  for (const path of ['/', '/own', '/ownx', '/own/../x', '/own/%2e%2e/x', '/x/own/', '//own/']) {
    assert.equal(await run(path), 'bad 127.0.0.1', path)
  }
  assert.deepEqual(
    server.asked.map(({ path }) => path),
    ['/own/x?y=1'],
  )
  await executor.close()
  await server.close()
})

test('an attempt looks the address up once and connects to it', async () => {
  const server = await callServer(answerJson())
  const hosts: string[] = []
  const lookup = async (hostname: string) => {
    hosts.push(hostname)
    return hosts.length === 1 ? ['127.0.0.1'] : ['10.0.0.1']
  }
  const url = `http://name.example:${server.port}/`
  const outcome = await call(requestOf(url), {
    lookup,
    allow_hosts: [`name.example:${server.port}`],
  })
  await server.close()
  assert.equal(failureOf(outcome), 'done')
  assert.deepEqual(hosts, ['name.example'])
  assert.equal(server.asked[0]?.headers.host, `name.example:${server.port}`)
})

test('a name without an address may have one later', async () => {
  for (const lookup of [
    async () => [],
    async () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' })),
  ]) {
    const outcome = await call(requestOf('http://none.example/'), { lookup })
    assert.equal(failureOf(outcome), 'bad failed_connect')
  }
})

test('proxies of the environment are ignored', async () => {
  const proxy = await callServer(answerJson('"proxy"'))
  const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'NODE_USE_ENV_PROXY']
  for (const name of names) process.env[name] = name.startsWith('NODE') ? '1' : proxy.url
  try {
    const { outcome } = await callTo(answerJson('"server"'))
    assert.equal(outcome.outcome === 'done' && outcome.text, '"server"')
    assert.equal(proxy.asked.length, 0)
  } finally {
    for (const name of names) delete process.env[name]
    await proxy.close()
  }
})

const redirects: [status: number, method: string, then: string, keeps_body: boolean][] = [
  [301, 'POST', 'GET', false],
  [302, 'POST', 'GET', false],
  [303, 'PUT', 'GET', false],
  [307, 'POST', 'POST', true],
  [308, 'PUT', 'PUT', true],
  [302, 'GET', 'GET', false],
  [302, 'HEAD', 'HEAD', false],
]

const headers = [
  ['authorization', 'Bearer s3cret'],
  ['content-type', 'application/json'],
] as const

for (const [code, method, then, keeps_body] of redirects) {
  test(`${code} after ${method} on the same origin is followed by ${then}`, async () => {
    const body = method === 'GET' || method === 'HEAD' ? undefined : '{"a":1}'
    const { outcome, server } = await callTo(
      (asked, _request, response) => {
        if (asked.path === '/y') response.end('{}')
        else response.writeHead(code, { location: '/y' }).end()
      },
      { method, body, headers },
    )
    assert.equal(failureOf(outcome), 'done')
    const [, second] = server.asked
    assert.equal(second?.method, then)
    assert.equal(second?.path, '/y')
    assert.equal(second?.body, keeps_body ? '{"a":1}' : '')
    assert.equal(second?.headers.authorization, 'Bearer s3cret')
    assert.equal(second?.headers['idempotency-key'], key)
    if (body !== undefined) {
      assert.equal(second?.headers['content-type'], keeps_body ? 'application/json' : undefined)
    }
  })

  test(`${code} after ${method} to another origin drops headers and body`, async () => {
    const other = await callServer(answerJson('"other"'))
    const first = await callServer((_asked, _request, response) =>
      response.writeHead(code, { location: `http://u:p@${other.host}/z` }).end(),
    )
    const body = method === 'GET' || method === 'HEAD' ? undefined : '{"a":1}'
    const outcome = await call(requestOf(first.url, { method, body, headers }), {
      allow_hosts: [first.host, other.host],
    })
    await Promise.all([first.close(), other.close()])
    assert.equal(failureOf(outcome), 'done')
    const [second] = other.asked
    assert.equal(second?.method, method === 'HEAD' ? 'HEAD' : 'GET')
    assert.equal(second?.body, '')
    assert.deepEqual(Object.keys(second?.headers ?? {}).sort(), [
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
    ])
  })
}

test('headers and body dropped at another origin do not come back', async () => {
  let back = ''
  const other = await callServer((_asked, _request, response) =>
    response.writeHead(307, { location: back }).end(),
  )
  const first = await callServer((asked, _request, response) => {
    if (asked.path === '/back') response.end('{}')
    else response.writeHead(307, { location: other.url }).end()
  })
  back = `${first.url}/back`
  const outcome = await call(requestOf(first.url, { headers, body: '{"a":1}' }), {
    allow_hosts: [first.host, other.host],
  })
  await Promise.all([first.close(), other.close()])
  assert.equal(failureOf(outcome), 'done')
  const [, last] = first.asked
  assert.deepEqual([last?.method, last?.body, last?.headers.authorization], ['GET', '', undefined])
})

for (const inward of [
  'http://127.0.0.1:PORT/',
  'http://inward.example:PORT/',
  '//0x7f000001:PORT/',
]) {
  test(`a redirect inward to ${inward} is refused`, async () => {
    const inner = await callServer(answerJson())
    const location = inward.replace('PORT', String(inner.port))
    const { outcome } = await callTo(
      status(307, { location }),
      {},
      { lookup: async () => ['127.0.0.1'] },
    )
    await inner.close()
    assert.match(failureOf(outcome), /^bad (127\.0\.0\.1|inward\.example)$/)
    assert.equal(inner.asked.length, 0)
  })
}

test('three redirects are followed and a fourth is not', async () => {
  for (const [count, expected, requests] of [
    [3, 'done', 4],
    [4, 'bad more than 3 redirects', 4],
    [1_000, 'bad more than 3 redirects', 4],
  ] as const) {
    let left = count
    const { outcome, server } = await callTo((_asked, _request, response) => {
      if (left-- === 0) response.end('{}')
      else response.writeHead(302, { location: '/x' }).end()
    })
    assert.equal(failureOf(outcome), expected)
    assert.equal(server.asked.length, requests)
  }
})

const term = { now_ms: Date.now(), days: 30, chance: systemChance }

test('a client certificate is presented, on connections of its own', async () => {
  const authority = await newAuthority(term)
  const { key: server_key, certificate: cert } = await issueServer(authority, ['127.0.0.1'], term)
  const clients = await Promise.all(
    ['one', 'two'].map((name) => issueClient(authority, name, term)),
  )
  const names: unknown[] = []
  const sockets = new Set<unknown>()
  const server = await callServer(
    (_asked, request, response) => {
      names.push((request.socket as TLSSocket).getPeerCertificate().subject?.CN)
      sockets.add(request.socket)
      response.end('{}')
    },
    { secure: { key: server_key, cert, ca: authority.certificate, requestCert: true } },
  )
  const executor = executorOf({ allow_hosts: [server.host], ca: authority.certificate })
  const signal = new AbortController().signal
  const pems = clients.map(({ key: private_key, certificate }) => private_key + certificate)
  const rows: [cert_pem: string | undefined, expected: string][] = [
    [pems[0], 'done'],
    [undefined, 'bad failed_connect'],
    [pems[1], 'done'],
    [pems[0], 'done'],
    [undefined, 'bad failed_connect'],
    [clients[0]?.certificate, 'hardware api_bind_error'],
    [`${clients[0]?.key}${clients[1]?.certificate}`, 'hardware api_bind_error'],
  ]
  for (const [cert_pem, expected] of rows) {
    const outcome = await executor.run(requestOf(server.url, { cert_pem }), { key, signal })
    assert.match(failureOf(outcome), new RegExp(expected), JSON.stringify(outcome))
    assert.ok(!JSON.stringify(outcome).includes('PRIVATE'))
  }
  assert.deepEqual(names, ['one', 'two', 'one'])
  assert.equal(sockets.size, 2)
  await executor.close()
  await server.close()
})

test('certificates are verified, whatever the environment says', async () => {
  const authority = await newAuthority(term)
  const foreign = await newAuthority(term)
  const good = await issueServer(authority, ['name.example', '127.0.0.1'], term)
  const other = await issueServer(authority, ['other.example'], term)
  const rows = [
    ['of an authority that is known', good, authority, 'name.example', 'done'],
    ['for the address itself', good, authority, '127.0.0.1', 'done'],
    ['of another name', other, authority, 'name.example', 'bad the certificate is not accepted'],
    [
      'of an unknown authority',
      good,
      foreign,
      'name.example',
      'bad the certificate is not accepted',
    ],
    [
      'of an authority the system does not know',
      good,
      undefined,
      'name.example',
      'bad the certificate is not accepted',
    ],
  ] as const
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  try {
    for (const [what, { key: private_key, certificate: cert }, ca, name, expected] of rows) {
      const server = await callServer(answerJson(), { secure: { key: private_key, cert } })
      const outcome = await call(requestOf(`https://${name}:${server.port}/`), {
        ...(ca && { ca: ca.certificate }),
        lookup: async () => ['127.0.0.1'],
        allow_hosts: [`${name}:${server.port}`],
      })
      await server.close()
      assert.equal(failureOf(outcome), expected, what)
      assert.equal(server.asked.length, expected === 'done' ? 1 : 0, what)
    }
  } finally {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
  }
})

test('no description contains a secret', async () => {
  const server = await callServer(status(500, {}, 's3cret'))
  const url = `http://u:s3cret@${server.host}/s3cret?k=s3cret`
  const sign = { conv_id: '1', secret: 's3cret' }
  const headers = [['x-s3cret', 's3cret']] as const
  for (const [text, hosts] of [
    [url, [server.host]],
    [url, []],
    ['s3cret', []],
    ['s3cret://x', []],
  ] as const) {
    const outcome = await call(requestOf(text, { sign, headers }), { allow_hosts: hosts })
    if (text === 's3cret://x') continue
    assert.ok(!JSON.stringify(outcome).includes('s3cret'), JSON.stringify(outcome))
  }
  await server.close()
})

test('connections are reused, and closed with the executor', async () => {
  const sockets = new Set<unknown>()
  const server = await callServer((_asked, request, response) => {
    sockets.add(request.socket)
    response.end('{}')
  })
  const executor = executorOf({ allow_hosts: [server.host] })
  const signal = new AbortController().signal
  for (let n = 0; n < 5; n++) {
    assert.equal(failureOf(await executor.run(requestOf(server.url), { key, signal })), 'done')
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(sockets.size, 1)
  await executor.close()
  const [socket] = sockets as Set<Socket>
  if (!socket?.destroyed) await new Promise((resolve) => socket?.once('close', resolve))
  await server.close()
})

test('an idle connection that the server closed is no failure of a GET', async () => {
  const server = await callServer((_asked, request, response) => {
    response.end('{}')
    // Closes without announcing it in the response.
    response.on('finish', () => setImmediate(() => request.socket.resetAndDestroy()))
  })
  const executor = executorOf({ allow_hosts: [server.host] })
  const signal = new AbortController().signal
  const get = requestOf(server.url, { method: 'GET', body: undefined })
  for (let n = 0; n < 20; n++) {
    assert.equal(failureOf(await executor.run(get, { key, signal })), 'done', `${n}`)
  }
  await executor.close()
  await server.close()
})

test('what a server has seen on a kept connection is not sent again', async () => {
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    let left = 1
    const server = await callServer((_asked, request, response) => {
      if (left-- > 0) response.end('{}')
      else request.socket.resetAndDestroy()
    })
    const executor = executorOf({ allow_hosts: [server.host] })
    const signal = new AbortController().signal
    const request = requestOf(server.url, { method })
    assert.equal(failureOf(await executor.run(request, { key, signal })), 'done')
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(failureOf(await executor.run(request, { key, signal })), 'bad failed_connect')
    assert.equal(server.asked.length, 2, method)
    await executor.close()
    await server.close()
  }
})

const typed = (type: string, body: string | Buffer): Answerer => {
  return (_asked, _request, response) => response.writeHead(200, { 'content-type': type }).end(body)
}
const soap = '<?xml version="1.0"?><s:a x="1"><i y="2">t &amp; &#65;</i><i/><n>1.10</n></s:a>'
const deep = (levels: number): string => '<a>'.repeat(levels) + '</a>'.repeat(levels)

const bodies: [what: string, answer: Answerer, text: string][] = [
  ...['application/xml', 'text/xml; charset=utf-8', 'application/soap+xml', 'SOAP/XML'].map(
    (type): [string, Answerer, string] => [
      type,
      typed(type, soap),
      '{"s:a":{"@x":"1","i":[{"@y":"2","#value":"t & A"},""],"n":"1.10"}}',
    ],
  ),
  ['white space', typed('text/xml', ' \r\n'), ''],
  ['XML by another name', typed('text/html', '<a/>'), '<a/>'],
  ['JSON by the name of XML', typed('text/xml', '{"a":1}'), '{"a":1}'],
  ['broken XML', typed('text/xml', '<a><b></a>'), '<a><b></a>'],
  ['XML with an unknown entity', typed('text/xml', '<a>&x;</a>'), '<a>&x;</a>'],
  [
    'XML with a document type',
    typed('text/xml', '<!DOCTYPE a [<!ENTITY x "y">]><a/>'),
    '<!DOCTYPE a [<!ENTITY x "y">]><a/>',
  ],
  ['60 levels of XML', typed('text/xml', deep(60)), `${'{"a":'.repeat(60)}""${'}'.repeat(60)}`],
  ['128 levels of XML', typed('text/xml', deep(128)), deep(128)],
  ['an image', typed('image/png', Buffer.from([0xff, 0, 0xd8])), '/wDY'],
]

for (const [what, answer, text] of bodies) {
  test(`a body of ${what}`, async () => {
    const { outcome } = await callTo(answer)
    assert.equal(outcome.outcome === 'done' && outcome.text, text)
  })
}

test('an answer is measured, also that of a failure', async () => {
  for (const [code, given] of [
    [200, '{"a":1}'],
    [500, 'no'],
  ] as const) {
    const { outcome } = await callTo(status(code, {}, given), { body: '{"a":"ж"}' })
    const { exec_ms = -1, ...figures } = outcome.figures ?? {}
    assert.ok(exec_ms > 0 && exec_ms < 60_000)
    assert.deepEqual(figures, { request_bytes: 10, status: code, response_bytes: given.length })
  }
  const server = await callServer(answerJson())
  await server.close()
  const unanswered = await call(requestOf(server.url), { allow_hosts: [server.host] })
  assert.equal(unanswered.figures, undefined)
})

test('closing aborts running calls', async () => {
  const server = await callServer(() => {})
  const executor = executorOf({ allow_hosts: [server.host] })
  const running = executor.run(requestOf(server.url), { key, signal: new AbortController().signal })
  while (server.asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
  await executor.close()
  assert.equal(failureOf(await running), 'hardware api_fatal_error')
  await server.close()
})
