/**
 * What connections may take of a server beside their answers: how many an address has, how many
 * requests wait on one, and how long one is kept on which nothing is read.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { nextTurn, pause, steadyClock } from '../src/core/clock.ts'
import { openEngine } from '../src/open.ts'
import { serveOperator } from '../src/operator.ts'
import { networkOf } from '../src/server/http/connection.ts'
import { rawSession } from './support/grpc-raw.ts'
import { openGrpc } from './support/grpc-server.ts'
import { connectRaw } from './support/http-raw.ts'
import { codeOf, createBody, openHttp } from './support/http-server.ts'

describe('an address', () => {
  /** [as node writes it, what it counts as] */
  const rows: readonly (readonly [string, string])[] = [
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:127.0.0.1', '127.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::9', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['2001:db8::2:3:4:5:6', '2001:db8:0:2'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['::1', '0:0:0:0'],
    ['::', '0:0:0:0'],
    ['', ''],
  ]
  for (const [address, network] of rows) {
    test(`${address || 'none'}: ${network}`, () => assert.equal(networkOf(address), network))
  }
})

const limits = { address_connections_max: 2, idle_ms_max: 60_000 }

function open(port: number, from: string): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from }, () => resolve(socket))
    socket.on('error', () => {})
  })
}

describe('connections of one address', () => {
  test('HTTP: one more is told so, others are served, and so is it once one has closed', async () => {
    const server = await openHttp({ limits })
    const [first, second] = [await connectRaw(server.port), await connectRaw(server.port)]
    const third = await connectRaw(server.port)
    third.send(server.post(createBody('a')))
    const refusal = await third.answer()
    assert.equal(codeOf(refusal), 'overloaded')
    assert.equal(refusal.headers.connection, 'close')
    await third.ended()
    const other = await open(server.port, '127.0.0.2')
    other.write(server.post(createBody('b')))
    assert.match(String((await once(other, 'data'))[0]), /^HTTP\/1\.1 200 /)
    const gone = once(second.socket, 'close')
    second.socket.destroy()
    await gone
    while (codeOf(await server.send(createBody('c'))) !== 'ok') await nextTurn()
    first.socket.destroy()
    other.destroy()
    await server.close()
  })

  test('gRPC: one more is closed, before its handshake, and told of', async () => {
    const server = await openGrpc({ limits })
    const port = Number(server.grpc.address.split(':')[1])
    const sessions = [await rawSession(server), await rawSession(server)]
    const third = await open(port, '127.0.0.1')
    third.resume()
    await once(third, 'close')
    const other = await open(port, '127.0.0.2')
    const [refusal, ...more] = server.told.filter(({ event }) => event === 'request_refused')
    assert.equal(refusal?.code, 'overloaded')
    assert.deepEqual(more, [])
    for (const session of sessions) session.destroy()
    other.destroy()
    await server.close()
    assert.deepEqual(server.bugs, [])
  })

  test('the operator’s listener: one more is closed', async () => {
    await using engine = await openEngine(':memory:')
    const server = await serveOperator(engine, { port: 0, limits })
    const { port } = server.address
    const kept = [await open(port, '127.0.0.1'), await open(port, '127.0.0.1')]
    const third = await open(port, '127.0.0.1')
    third.resume()
    await once(third, 'close')
    const other = await open(port, '127.0.0.2')
    other.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert.match(String((await once(other, 'data'))[0]), /^HTTP\/1\.1 200 /)
    for (const socket of [...kept, other]) socket.destroy()
    await server.drain()
  })
})

describe('requests sent ahead of the answers', () => {
  test('those beyond the bound are refused, after the answers to the others', async () => {
    const server = await openHttp({ limits: { pipelined_max: 3 } })
    const client = await connectRaw(server.port)
    const posts = ['a', 'b', 'c', 'd', 'e'].map((ref) => server.post(createBody(ref)))
    client.send(Buffer.concat(posts))
    const codes: string[] = []
    for (let n = 0; n < 4; n++) codes.push(codeOf(await client.answer()))
    assert.deepEqual(codes, ['ok', 'ok', 'ok', 'overloaded'])
    await client.ended()
    assert.equal(codeOf(await server.send(createBody('d'))), 'ok')
    await server.close()
  })

  test('of all connections together too, and one by one they are served', async () => {
    const server = await openHttp({ limits: { connections_max: 4 } })
    const [many, more] = [await connectRaw(server.port), await connectRaw(server.port)]
    const posts = Array.from({ length: 8 }, (_, n) => server.post(createBody(`${n}`)))
    many.send(Buffer.concat(posts))
    const codes = new Map<string, number>()
    for (let n = 0; n < 6; n++) {
      const code = codeOf(await many.answer())
      codes.set(code, (codes.get(code) ?? 0) + 1)
    }
    assert.deepEqual(Object.fromEntries(codes), { ok: 5, overloaded: 1 })
    await many.ended()
    for (const post of posts) {
      more.send(post)
      assert.equal(codeOf(await more.answer()), 'ok')
    }
    more.socket.destroy()
    await server.close()
  })

  test('their answers count until they are read', async () => {
    const bounds = { answers_bytes_max: 380_000, task_bytes_max: 16_000, pipelined_max: 100_000 }
    const server = await openHttp({ limits: bounds })
    await server.engine.create({ conv_id: '1234', ref: 'one', data: { s: 'x'.repeat(15_000) } })
    const show = { type: 'show', obj: 'task', conv_id: '1234', ref: 'one' }
    // A server reads few requests of 30 kB at a time, so the peer's all have room. One unread answer
    // then leaves no room for ten, and a kernel that takes some of them later changes nothing.
    const one = JSON.stringify({ ops: [show] }).padEnd(30_000)
    const ten = JSON.stringify({ ops: Array(10).fill(show) })
    assert.equal(codeOf(await server.send(ten)), 'ok')
    const peer = await connectRaw(server.port)
    peer.socket.pause()
    const block = Buffer.concat(Array(20).fill(server.post(one)))
    for (let unmoved = 0; unmoved < 20; ) {
      const waiting_bytes = peer.socket.writableLength
      peer.send(block)
      await pause(steadyClock, 10)
      const has_moved = peer.socket.writableLength < waiting_bytes + block.length
      unmoved = has_moved ? 0 : unmoved + 1
    }
    const codes: string[] = []
    while (codes.length < 50 && codes.at(-1) !== 'overloaded') {
      codes.push(codeOf(await server.send(ten)))
    }
    assert.equal(codes.at(-1), 'overloaded')
    peer.socket.destroy()
    while (codeOf(await server.send(ten)) !== 'ok') await nextTurn()
    await server.close()
  })
})

describe('the operator’s listener drops', () => {
  /** [whom, what he sends] */
  const rows: readonly (readonly [string, string])[] = [
    ['who sends nothing', ''],
    ['who does not read', 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(30)],
  ]
  for (const [whom, bytes] of rows) {
    test(whom, async () => {
      await using engine = await openEngine(':memory:')
      const bounds = { idle_ms_max: 150, header_ms_max: 60_000 }
      const server = await serveOperator(engine, { port: 0, limits: bounds })
      const socket = await open(server.address.port, '127.0.0.1')
      socket.pause()
      const closed = new Promise((resolve) => socket.once('close', resolve))
      // A paused client notices a reset only when it writes.
      const poke = setInterval(() => socket.write(bytes.slice(0, 1)), bytes === '' ? 1e9 : 20)
      socket.write(bytes)
      if (bytes === '') socket.resume()
      await closed
      clearInterval(poke)
      await server.drain()
    })
  }
})
