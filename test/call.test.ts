/** The call executor against real servers: what it sends, accepts and refuses. */
import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { signatureOf } from '../src/codec/signature.ts'
import {
  type Answerer,
  call,
  call_key,
  callTo,
  failureOf,
  requestOf,
  status,
} from './support/call-executor.ts'
import { answerJson, callServer } from './support/call-server.ts'
import { fakeClock } from './support/fake-clock.ts'

test('sends the ordered request and the default headers', async () => {
  const headers = [
    ['content-type', 'application/json'],
    ['x-own', 'caf\xe9'],
  ] as const
  const { outcome, server } = await callTo(answerJson('{"b":1.10}'), { headers, body: '{"a":"ж"}' })
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
    'idempotency-key': call_key,
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

test('no description contains a secret', async () => {
  await using server = await callServer(status(500, {}, 's3cret'))
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
