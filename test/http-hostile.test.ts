/**
 * Hostile and broken HTTP: each row gets the stated answer or a closed connection, and the next good
 * request is answered. Nothing crashes the server, gets two answers for one request, or is read as
 * two requests where a proxy read one.
 */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import type { OpResult } from '../src/core/model.ts'
import { arrived, connectRaw, type RawClient } from './support/http-raw.ts'
import { codeOf, createBody, openHttp, type TestHttp } from './support/http-server.ts'

const limits = {
  header_ms_max: 700,
  request_ms_max: 1_000,
  idle_ms_max: 1_400,
  body_bytes_max: 200_000,
  unverified_bytes_max: 300_000,
  large_body_bytes: 10_000,
  large_bodies_max: 2,
  connections_max: 40,
}
const body = createBody('r')

describe('hostile HTTP', () => {
  let server: TestHttp
  const bugs: unknown[] = []
  before(async () => {
    server = await openHttp({ limits, onBug: (bug) => bugs.push(bug) })
  })
  after(() => server.close())
  afterEach(async () => {
    assert.equal(codeOf(await server.send(body)), 'ok')
    assert.deepEqual(bugs, [])
  })

  let sign: 'path' | 'hmac' = 'path'
  const post = (lines: string, rest = ''): string => {
    const signed = sign === 'path' ? '' : `${server.signLines(body).join('\r\n')}\r\n`
    return `POST ${server.path(body, { sign })} HTTP/1.1\r\nHost: x\r\n${signed}${lines}\r\n\r\n${rest}`
  }
  const unsigned = (lines: string, rest = ''): string =>
    `POST /api/1/json HTTP/1.1\r\nHost: x\r\n${lines}\r\n\r\n${rest}`
  const length = `Content-Length: ${body.length}`
  const chunked = 'Transfer-Encoding: chunked'

  /** [what is sent, its bytes, the code of the one answer]; then the connection must end. */
  const refused: [string, () => string | Uint8Array, string][] = [
    ['garbage', () => Buffer.alloc(300, 0xff), 'bad_request'],
    ['a TLS hello', () => Buffer.from('16030100c8010000c40303', 'hex'), 'bad_request'],
    ['an HTTP/2 preface', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'bad_request'],
    ['HTTP/2.0 on the line', () => 'GET / HTTP/2.0\r\n\r\n', 'bad_request'],
    ['an unknown method', () => 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n', 'bad_request'],
    ['a space in the path', () => 'POST /a b HTTP/1.1\r\nHost: x\r\n\r\n', 'bad_request'],
    ['a header without a colon', () => post('X'), 'bad_request'],
    ['a folded header', () => post('X: x\r\n y: z\r\n: '), 'bad_request'],
    ['a NUL in a header', () => post('X: a\0b'), 'bad_request'],
    ['a bare carriage return', () => post('X: a\rY: b'), 'bad_request'],
    ['a megabyte of header', () => post(`X: ${'x'.repeat(1 << 20)}`), 'bad_request'],
    ['a megabyte of path', () => `POST /${'x'.repeat(1 << 20)}`, 'bad_request'],
    ['no Host', () => post(length, body).replace('Host: x\r\n', ''), 'bad_request'],
    ['two Hosts', () => post(`Host: y\r\n${length}`, body), 'bad_request'],
    ['a length twice', () => post(`${length}\r\n${length}`, body), 'bad_request'],
    ['two lengths', () => post(`${length}\r\nContent-Length: 1`, body), 'bad_request'],
    ['lengths in a list', () => post('Content-Length: 5, 5', body), 'bad_request'],
    ['a negative length', () => post('Content-Length: -1', body), 'bad_request'],
    ['a length in hex', () => post('Content-Length: 0x10', body), 'bad_request'],
    [
      'a coding besides chunks',
      () => post('Transfer-Encoding: gzip, chunked', '0\r\n\r\n'),
      'bad_request',
    ],
    ['a length and chunks', () => post(`${length}\r\n${chunked}`, '0\r\n\r\n'), 'bad_request'],
    ['chunks and a length', () => post(`${chunked}\r\n${length}`, '0\r\n\r\n'), 'bad_request'],
    [
      'a coding behind chunked',
      () => post('Transfer-Encoding: chunked, x', '0\r\n\r\n'),
      'bad_request',
    ],
    ['another coding alone', () => post('Transfer-Encoding: gzip', '0\r\n\r\n'), 'bad_request'],
    ['chunked, misspelt', () => post('Transfer-Encoding: xchunked', '0\r\n\r\n'), 'bad_request'],
    ['chunks in HTTP/1.0', () => post(chunked, '0\r\n\r\n').replace('1.1', '1.0'), 'bad_request'],
    ['a chunk size in letters', () => post(chunked, 'zz\r\n\r\n'), 'bad_request'],
    ['a chunk longer than it says', () => post(chunked, '1\r\nabc\r\n0\r\n\r\n'), 'bad_request'],
    ['a chunk size over 64 bits', () => post(chunked, `${'f'.repeat(17)}\r\na`), 'bad_request'],
    ['an endless chunk extension', () => post(chunked, `1;${'x'.repeat(20_000)}`), 'bad_request'],
    [
      'a body that goes on long after its refusal',
      () => post('Content-Length: 99999999', 'x'.repeat(6_000_000)),
      'body_too_large',
    ],
    [
      'garbage that goes on long after its refusal',
      () => post(chunked, `zz\r\n${'x'.repeat(6_000_000)}`),
      'bad_request',
    ],
    [
      'a chunk over the limit',
      () => post(chunked, `fffff\r\n${'x'.repeat(250_000)}`),
      'body_too_large',
    ],
    [
      'a body over the limit',
      () => post('Content-Length: 999999', 'x'.repeat(250_000)),
      'body_too_large',
    ],
    ['CONNECT', () => 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', 'not_found'],
    ['slow headers', () => 'POST / HTTP/1.1\r\nHost: x\r\n', 'request_timeout'],
    ['a slow body', () => post('Content-Length: 50', '{'), 'request_timeout'],
    [
      'a slow body, to be signed in headers',
      () => unsigned('Content-Length: 5', '{'),
      'request_timeout',
    ],
    ['a folded signature', () => unsigned('X-API-Signature: ab\r\n cd'), 'bad_request'],
    ['a NUL in a signature', () => unsigned('X-API-Signature: a\0b'), 'bad_request'],
    [
      'a signature of a megabyte',
      () => unsigned(`X-API-Signature: ${'a'.repeat(1 << 20)}`),
      'bad_request',
    ],
    [
      'chunks over the limit, unsigned',
      () => unsigned(chunked, `fffff\r\n${'x'.repeat(250_000)}`),
      'body_too_large',
    ],
    ['a slow chunk', () => post(chunked, '5\r\n{'), 'request_timeout'],
    [
      'a length too long',
      () => post(`Content-Length: ${body.length + 1}`, body),
      'request_timeout',
    ],
  ]
  const forms = refused.flatMap(([says, bytes, code]) =>
    (/\bpost\(/.test(String(bytes)) ? (['path', 'hmac'] as const) : (['path'] as const)).map(
      (form) => ({ says, bytes, code, form }),
    ),
  )
  for (const { says, bytes, code, form } of forms) {
    test(`${says}, by ${form}: ${code}`, async () => {
      sign = form
      const client = await connectRaw(server.port)
      // As clients that read only after writing everything.
      client.socket.pause()
      await new Promise((resolve) => client.socket.write(bytes(), resolve))
      client.socket.resume()
      const answer = await client.answer()
      assert.equal(codeOf(answer), code, answer.body)
      assert.equal(answer.headers.connection, 'close')
      assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
      await client.ended()
    })
  }

  test('a length too short: one refusal, then the rest is no HTTP', async () => {
    sign = 'path'
    const client = await connectRaw(server.port)
    client.send(post(`Content-Length: ${body.length - 1}`, body))
    assert.equal(codeOf(await client.answer()), 'bad_signature')
    assert.equal(codeOf(await client.answer()), 'bad_request')
    await client.ended()
  })

  test('pipelined requests are answered in order', async () => {
    const client = await connectRaw(server.port)
    const refs = ['a', 'b', 'c', 'd', 'e']
    const slow = createBody('slow', { text: 'x'.repeat(20_000) })
    const posts = refs.flatMap((ref) => [server.post(slow), server.post(createBody(ref))])
    client.send(Buffer.concat(posts))
    for (const ref of refs) {
      assert.match((await client.answer()).body, /"ref":"slow"/)
      assert.match((await client.answer()).body, new RegExp(`"ref":"${ref}"`))
    }
    client.socket.destroy()
  })

  test('garbage behind pipelined requests waits for their answers', async () => {
    const client = await connectRaw(server.port)
    client.send(
      Buffer.concat([
        server.post(createBody('f')),
        server.post(createBody('g')),
        Buffer.from('\0\0'),
      ]),
    )
    assert.match((await client.answer()).body, /"ref":"f"/)
    assert.match((await client.answer()).body, /"ref":"g"/)
    assert.equal(codeOf(await client.answer()), 'bad_request')
    await client.ended()
  })

  test('a refusal that closes is the last answer, also with pipelined requests', async () => {
    const client = await connectRaw(server.port)
    const bad = 'GET / HTTP/2.0\r\n\r\n'
    client.send(Buffer.concat([server.post(createBody('h')), Buffer.from(bad), server.post(body)]))
    assert.match((await client.answer()).body, /"ref":"h"/)
    assert.equal(codeOf(await client.answer()), 'bad_request')
    await client.ended()
  })

  test('after a refused short body the connection is usable', async () => {
    const client = await connectRaw(server.port)
    client.send(
      `POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nGET / HT${server.post(body).toString()}`,
    )
    assert.equal(codeOf(await client.answer()), 'not_found')
    assert.equal(codeOf(await client.answer()), 'ok')
    client.socket.destroy()
  })

  test('a client that shuts its side after the request gets its answer', async () => {
    const client = await connectRaw(server.port)
    client.socket.end(server.post(body))
    assert.equal(codeOf(await client.answer()), 'ok')
    await client.ended()
  })

  test('a client that shuts its side long before the answer gets it', async () => {
    const submit = async (): Promise<OpResult[]> => {
      await arrived()
      return [{ type: 'modify', ref: 'late', obj: 'task', proc: 'ok' }]
    }
    const slow = await openHttp({}, { submit })
    const client = await connectRaw(slow.port)
    client.socket.end(slow.post(body))
    assert.match((await client.answer()).body, /"ref":"late"/)
    await client.ended()
    await slow.close()
  })

  test('a client that shuts its side within a body', async () => {
    const client = await connectRaw(server.port)
    client.socket.end(post('Content-Length: 50', '{'))
    assert.equal(codeOf(await client.answer()), 'bad_request')
    await client.ended()
  })

  const silent: [string, (client: RawClient) => void][] = [
    ['nothing sent', () => {}],
    ['a side shut with nothing sent', (client) => client.socket.end()],
    ['a connection left idle', (client) => client.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')],
  ]
  for (const [says, act] of silent) {
    test(`${says}: closed without an answer`, async () => {
      const client = await connectRaw(server.port)
      act(client)
      if (says.includes('idle')) assert.equal((await client.answer()).status, 200)
      await client.ended()
    })
  }

  test('resets at every stage of a request', async () => {
    const cuts = [1, 30, 120, server.post(body).length - 1, server.post(body).length]
    for (const cut of cuts) {
      for (let at = 0; at < 5; at++) {
        const client = await connectRaw(server.port)
        client.send(server.post(body).subarray(0, cut))
        await new Promise((resolve) => setImmediate(resolve))
        client.socket.resetAndDestroy()
      }
    }
  })

  test('large unverified bodies of one address are bounded, and their slots are freed', async () => {
    const large = post('Content-Length: 20000', '{')
    const clients = [await connectRaw(server.port), await connectRaw(server.port)]
    for (const client of clients) client.send(large)
    await arrived()
    const third = await connectRaw(server.port)
    third.send(large)
    const answer = await third.answer()
    assert.equal(codeOf(answer), 'overloaded')
    assert.equal(answer.headers['retry-after'], '1')
    await third.ended()
    const growing = await connectRaw(server.port)
    growing.send(post(chunked, `4e20\r\n${'x'.repeat(15_000)}`))
    assert.equal(codeOf(await growing.answer()), 'overloaded', 'one that turns out large')
    await growing.ended()
    for (const client of clients) client.socket.resetAndDestroy()
    await arrived()
    const good = createBody('large', { text: 'x'.repeat(20_000) })
    assert.equal(codeOf(await server.send(good)), 'ok')
  })

  test('connections over the bound get an answer that says so, the others are served', async () => {
    const clients: RawClient[] = []
    for (let at = 0; at < limits.connections_max; at++) clients.push(await connectRaw(server.port))
    const excess = await connectRaw(server.port)
    excess.send(server.post(body))
    const answer = await excess.answer()
    assert.equal(codeOf(answer), 'overloaded')
    assert.equal(answer.headers.connection, 'close')
    await excess.ended()
    const first = clients[0] as RawClient
    first.send(server.post(body))
    assert.equal(codeOf(await first.answer()), 'ok')
    for (const { socket } of clients) socket.destroy()
    await arrived()
  })

  test('a client that sends requests and never reads is cut off', async () => {
    const { socket } = await connectRaw(server.port)
    socket.pause()
    const many = Buffer.from('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100_000))
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    socket.write(many)
    // A paused client notices a reset only when it writes.
    const poke = setInterval(() => socket.write('G'), 20)
    await closed
    clearInterval(poke)
  })

  test('the server survives a thousand connections at once', async () => {
    const clients = await Promise.all(Array.from({ length: 1_000 }, () => connectRaw(server.port)))
    for (const { socket } of clients) socket.resetAndDestroy()
    await arrived()
  })
})
