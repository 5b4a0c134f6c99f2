/**
 * The request forms of clients in use (wire 1.1): each row is a request byte by byte, and the data
 * that it must store. All of them work because the signature covers the raw bytes.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { connectRaw, exchange } from './support/http-raw.ts'
import { codeOf, openHttp, type Signing, type TestHttp } from './support/http-server.ts'

const op = '"type":"create","obj":"task","conv_id":1234'

// biome-ignore format: one line a row: habit, body, the data as stored
const bodies: [string, string, string][] = [
  ['escaped slashes', `{"ops":[{${op},"data":{"u":"http:\\/\\/x\\/"}}]}`, '{"u":"http://x/"}'],
  ['\\u escapes', `{"ops":[{${op},"data":{"n":"\\u041a\\u0438\\u0457\\u0432 \\ud83d\\ude00"}}]}`, '{"n":"Київ 😀"}'],
  ['plain UTF-8', `{"ops":[{${op},"data":{"n":"Київ 😀"}}]}`, '{"n":"Київ 😀"}'],
  ['sorted keys', '{"ops":[{"conv_id":"1234","data":{"a":1},"obj":"task","ref":null,"type":"create"}]}', '{"a":1}'],
  ['", " separators', `{"ops": [{"type": "create", "obj": "task", "conv_id": 1234, "data": {"a": 1, "b": "x"}}]}`, '{"a":1,"b":"x"}'],
  ['newlines and tabs', `\r\n{\n\t"ops": [\n\t\t{${op},\n"data":\t{}\r\n}\n\t]\n}\n`, '{}'],
  ['10.0', `{"ops":[{${op},"data":{"a":10.0,"b":1.10,"c":1e400}}]}`, '{"a":10.0,"b":1.10,"c":1e400}'],
  ['a long number', `{"ops":[{${op},"data":{"a":12345678901234567890}}]}`, '{"a":12345678901234567890}'],
  ['an empty map as an array', `{"ops":[{${op},"data":[]}]}`, '{}'],
  ['ref null', `{"ops":[{${op},"ref":null,"data":{}}]}`, '{}'],
  ['a single op', `{"ops":{${op},"data":{"a":1}}}`, '{"a":1}'],
  ['members nobody knows', `{"ops":[{${op},"action":"user","company_id":null,"data":{}}],"v":2}`, '{}'],
]

// biome-ignore format: one line a row
const headers: [string, readonly string[]][] = [
  ['application/json', ['Host: x', 'Content-Type: application/json; charset=utf-8']],
  ['octet-stream', ['Host: x', 'Content-Type: application/octet-stream']],
  ['urlencoded', ['Host: x', 'Content-Type: application/x-www-form-urlencoded']],
  ['a broken type', ['Host: x', 'Content-Type: ;;;']],
  ['no type', ['Host: x']],
  ['identity', ['Host: x', 'Content-Encoding: Identity']],
  ['an offer to upgrade', ['Host: x', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']],
  ['another expectation', ['Host: x', 'Expect: 200-ok']],
]

const signings: [string, Signing][] = [
  ['version 2', { version: 2 }],
  ['a fraction of a second', { timestamp: `${Math.floor(Date.now() / 1000)}.123456` }],
]

describe('requests of clients in use', () => {
  let server: TestHttp
  before(async () => {
    server = await openHttp()
  })
  after(() => server.close())

  const stored = async (obj_id: string): Promise<string | undefined> =>
    (await server.engine.task({ conv_id: 1234, obj_id }))?.data_text

  for (const [says, body, data] of bodies) {
    test(says, async () => {
      const answer = await server.send(body)
      assert.equal(codeOf(answer), 'ok', answer.body)
      const [result] = JSON.parse(answer.body).ops
      assert.equal(await stored(result.obj_id), data)
    })
  }

  const body = `{"ops":[{${op},"data":{}}]}`
  for (const [says, lines] of headers) {
    test(`header: ${says}`, async () => {
      assert.equal(codeOf(await server.send(body, { headers: lines })), 'ok')
    })
  }
  for (const [says, how] of signings) {
    test(says, async () => assert.equal(codeOf(await server.send(body, how)), 'ok'))
  }

  test('an upper-case signature', async () => {
    const path = server.path(body).replace(/[0-9a-f]{40}$/, (hex) => hex.toUpperCase())
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`
    assert.equal(codeOf(await exchange(server.port, head + body)), 'ok')
  })

  test('a query is ignored', async () => {
    const head = `POST ${server.path(body)}?a=1 HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`
    assert.equal(codeOf(await exchange(server.port, head + body)), 'ok')
  })

  test('HTTP/1.0 ends the connection after the answer', async () => {
    const client = await connectRaw(server.port)
    client.send(
      `POST ${server.path(body)} HTTP/1.0\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    const answer = await client.answer()
    assert.equal(codeOf(answer), 'ok')
    assert.equal(answer.headers.connection, 'close')
    assert.equal(answer.headers['keep-alive'], undefined)
    await client.ended()
  })

  test('HTTP/1.0 with keep-alive is served twice', async () => {
    const client = await connectRaw(server.port)
    const lines = `Connection: Keep-Alive\r\nContent-Length: ${body.length}`
    for (let at = 0; at < 2; at++) {
      client.send(`POST ${server.path(body)} HTTP/1.0\r\n${lines}\r\n\r\n${body}`)
      const answer = await client.answer()
      assert.equal(codeOf(answer), 'ok')
      assert.equal(answer.headers.connection, 'keep-alive')
      assert.equal(answer.headers['keep-alive'], 'timeout=64')
    }
    client.socket.destroy()
  })

  test('chunks, one byte each, with extensions and trailers', async () => {
    const chunks = [...Buffer.from(body)].map((byte) => `1;a=b\r\n${String.fromCharCode(byte)}\r\n`)
    const head = `POST ${server.path(body)} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`
    const answer = await exchange(server.port, `${head}${chunks.join('')}0\r\nX-Sum: 1\r\n\r\n`)
    assert.equal(codeOf(answer), 'ok')
  })

  test('Expect: 100-continue is answered with 100', async () => {
    const client = await connectRaw(server.port)
    const lines = `Expect: 100-continue\r\nContent-Length: ${body.length}`
    client.send(`POST ${server.path(body)} HTTP/1.1\r\nHost: x\r\n${lines}\r\n\r\n`)
    assert.equal((await client.answer()).status, 100)
    client.send(body)
    assert.equal(codeOf(await client.answer()), 'ok')
    client.socket.destroy()
  })

  test('Expect: 100-continue is refused before the body', async () => {
    const client = await connectRaw(server.port)
    client.send(
      'POST /api/3 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n',
    )
    const answer = await client.answer()
    assert.equal(codeOf(answer), 'not_found')
    assert.equal(answer.headers.connection, 'close')
    await client.ended()
  })

  test('the answers of both versions, to the byte', async () => {
    const create =
      '{"ops":[{"type":"create","obj":"task","conv_id":1234,"ref":"130605ref1","data":{}}]}'
    const modify = create.replace('create', 'modify')
    const created = await server.send(create)
    const { obj_id } = JSON.parse(created.body).ops[0]
    assert.match(obj_id, /^[0-9a-f]{24}$/)
    const one = `{"ref":"130605ref1","obj":"task","obj_id":"${obj_id}","proc":"ok"}`
    assert.equal(created.body, `{"request_proc":"ok","ops":[${one}]}`)
    const two = `{"id":"","proc":"ok","obj":"task","ref":"130605ref1","obj_id":"${obj_id}"}`
    assert.equal(
      (await server.send(create, { version: 2 })).body,
      `{"request_proc":"ok","ops":[${two}]}`,
    )
    const done = '{"ref":"130605ref1","proc":"ok"}'
    assert.equal((await server.send(modify)).body, `{"request_proc":"ok","ops":[${done}]}`)
  })
})
