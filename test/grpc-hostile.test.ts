/**
 * Hostile peers with a good certificate: they get the stated status, and the server survives.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:http2'
import { connect as connectPlain } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep_ms } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { loadSchema } from '../src/server/grpc/schema.ts'
import { createOp } from './support/grpc-client.ts'
import { framed, rawHead, rawSession } from './support/grpc-raw.ts'
import { openGrpc, type TestGrpc } from './support/grpc-server.ts'
import { codePath, node_flags } from './support/package-folder.ts'
import { tasksOf } from './support/tasks-of.ts'

const conv_id = '1234'
const { service } = loadSchema()

/**
 * Checks that the server still serves and reported no bug, and closes it. On a busy machine short
 * limits may cut off a good peer too, who then comes again.
 */
async function endWell(server: TestGrpc): Promise<void> {
  let status = ''
  for (let tries = 0; tries < 20 && status !== 'OK'; tries++) {
    status = await server.connect().statusOf('CreateTask', { conv_id })
  }
  assert.equal(status, 'OK')
  await server.close()
  assert.deepEqual(server.bugs, [])
}

describe('hostile peers', () => {
  test('a drain that waits for a call of a connection that is not read ends, and keeps its program alive', () => {
    const module = JSON.stringify(codePath('test/support/hostile/frames'))
    const script = `const { hostile_frames } = await import(${module})
      const runner = await hostile_frames.open()
      const row = hostile_frames.rows.find(([says]) => says === 'a reset of three bytes')
      await runner.answerTo(row[2], 0, row[1])
      await runner.close()
      console.log('closed')`
    const args = [...node_flags, '--input-type=module', '-e', script]
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined }
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
    assert.match(stdout, /^closed$/m, stderr)
  })

  test('the peer gets the bounds of the connection', async () => {
    const server = await openGrpc({ limits: { grpc_streams_max: 7 } })
    const session = await rawSession(server)
    assert.equal(session.remoteSettings.maxConcurrentStreams, 7)
    session.destroy()
    await endWell(server)
  })

  test('a message over the limit is RESOURCE_EXHAUSTED, compressed or not', async () => {
    const server = await openGrpc({ limits: { body_bytes_max: 10_000 } })
    const ops = [createOp('r', { x: 'x'.repeat(20_000) })]
    for (const encoding of [0, 2]) {
      const client = server.connect(undefined, { 'grpc.default_compression_algorithm': encoding })
      assert.equal(await client.statusOf('ApplyOps', { ops }), 'RESOURCE_EXHAUSTED')
      const stream = client.stream()
      stream.on('error', () => {})
      stream.resume()
      stream.write({ ops })
      const code = await new Promise<number>((resolve) =>
        stream.on('status', (ended) => resolve(ended.code)),
      )
      assert.equal(code, status.RESOURCE_EXHAUSTED)
    }
    assert.deepEqual(await tasksOf(server.engine, conv_id), [])
    await endWell(server)
  })

  /** [what, how many, bytes each] */
  const metadata_rows = [
    ['one long value', 1, 20_000],
    ['many values', 100, 1],
  ] as const
  for (const [name, count, bytes] of metadata_rows) {
    test(`metadata over the limit: ${name}`, async () => {
      const server = await openGrpc()
      const client = server.connect()
      const metadata = new Metadata()
      for (let n = 0; n < count; n++) metadata.set(`x-${n}`, 'x'.repeat(bytes))
      const error = await client
        .call('CreateTask', { conv_id }, metadata)
        .then(() => undefined)
        .catch((thrown: ServiceError) => thrown)
      assert.equal(error?.code, status.RESOURCE_EXHAUSTED)
      assert.match(error.details, /^bad_request: /)
      assert.deepEqual(await tasksOf(server.engine, conv_id), [])
      assert.equal(await client.statusOf('CreateTask', { conv_id }), 'OK')
      await endWell(server)
    })
  }

  test('a call reset within its message applies nothing', async () => {
    const server = await openGrpc()
    const session = await rawSession(server)
    const message = framed(service.CreateTask.requestSerialize({ conv_id, ref: 'half' }))
    for (const length of [0, 3, 5, message.length - 1, message.length]) {
      const stream = session.request(rawHead(service.CreateTask.path))
      stream.on('error', () => {})
      stream.write(message.subarray(0, length))
      await sleep_ms(10)
      stream.close(constants.NGHTTP2_CANCEL)
      await once(stream, 'close')
    }
    assert.deepEqual(await tasksOf(server.engine, conv_id), [])
    session.destroy()
    await endWell(server)
  })

  const brief = { limits: { request_ms_max: 60 } }
  /** [what, options of the server, bytes held back, the status that comes while the call is open] */
  const early_rows = [
    ['a caller without rights', { strict: true }, 1, status.PERMISSION_DENIED],
    ['a message that never ends', brief, 1, status.DEADLINE_EXCEEDED],
    ['a call that never ends behind its message', brief, 0, status.DEADLINE_EXCEEDED],
  ] as const
  for (const [name, options, held_back, expected] of early_rows) {
    test(`answered before its end arrives: ${name}`, async () => {
      const server = await openGrpc(options)
      const session = await rawSession(server)
      const stream = session.request(rawHead(service.CreateTask.path))
      stream.on('error', () => {})
      stream.resume()
      const message = framed(service.CreateTask.requestSerialize({ conv_id, ref: 'half' }))
      stream.write(message.subarray(0, message.length - held_back))
      const code = await new Promise<number>((resolve) => {
        for (const event of ['response', 'trailers'] as const) {
          stream.on(event, (headers: Record<string, unknown>) => {
            const received = headers['grpc-status']
            if (received !== undefined) resolve(Number(received))
          })
        }
      })
      assert.equal(code, expected)
      session.destroy()
      assert.deepEqual(await tasksOf(server.engine, conv_id), [])
      await server.close()
      assert.deepEqual(server.bugs, [])
    })
  }

  for (const count of [0, 2]) {
    test(`a call of one message that sends ${count}`, async () => {
      const server = await openGrpc()
      const session = await rawSession(server)
      const stream = session.request(rawHead(service.CreateTask.path))
      stream.resume()
      for (let n = 0; n < count; n++) {
        stream.write(framed(service.CreateTask.requestSerialize({ conv_id, ref: `r${n}` })))
      }
      stream.end()
      const [headers] = await once(stream, 'response')
      assert.equal(Number(headers['grpc-status']), status.UNIMPLEMENTED)
      session.destroy()
      assert.deepEqual(await tasksOf(server.engine, conv_id), [])
      await endWell(server)
    })
  }

  test('rapid resets end the connection', async () => {
    const server = await openGrpc()
    const session = await rawSession(server)
    const isOver = (): boolean => session.destroyed || session.closed
    let resets = 0
    while (!isOver() && resets < 5_000) {
      const streams = Array.from({ length: 50 }, () =>
        session.request(rawHead(service.CreateTask.path)).on('error', () => {}),
      )
      // The head must be sent before the reset, or it is never sent.
      await new Promise<void>((resolve) => {
        if (!session.ping(() => resolve())) resolve()
      })
      for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
      resets += streams.length
    }
    const ended = isOver()
    session.destroy()
    assert.ok(ended, `${resets} resets and still there`)
    assert.deepEqual(await tasksOf(server.engine, conv_id), [])
    await endWell(server)
  })

  test('bytes that are no HTTP/2, with and without TLS', async () => {
    const server = await openGrpc()
    const port = Number(server.grpc.address.split(':')[1])
    const { cert, key } = server.client
    const sockets = [
      connectPlain(port),
      connectTls({ port, ca: server.ca.cert, cert, key, ALPNProtocols: ['h2'] }),
    ]
    for (const socket of sockets) {
      socket.on('error', () => {})
      socket.resume()
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100))
      await once(socket, 'close')
    }
    await endWell(server)
  })

  test('a handshake that does not arrive times out', async () => {
    const server = await openGrpc({ limits: { header_ms_max: 200 } })
    const socket = connectPlain(Number(server.grpc.address.split(':')[1]))
    socket.on('error', () => {})
    socket.resume()
    await once(socket, 'close')
    await endWell(server)
  })

  test('connections are bounded', async () => {
    const server = await openGrpc({ limits: { connections_max: 2 } })
    const sessions = [await rawSession(server), await rawSession(server)]
    assert.equal(await server.connect().statusOf('CreateTask', { conv_id }), 'UNAVAILABLE')
    for (const session of sessions) session.destroy()
    await endWell(server)
  })

  test('a peer that does not answer pings is cut off', async () => {
    const server = await openGrpc({ limits: { grpc_ping_ms: 50, header_ms_max: 300 } })
    const { cert, key } = server.client
    const port = Number(server.grpc.address.split(':')[1])
    const socket = connectTls({ port, ca: server.ca.cert, cert, key, ALPNProtocols: ['h2'] })
    socket.on('error', () => {})
    socket.resume()
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1')
    await once(socket, 'close')
    await endWell(server)
  })

  test('an idle connection and an old one are ended', async () => {
    for (const limits of [{ grpc_idle_ms_max: 300 }, { grpc_age_ms_max: 300 }]) {
      const server = await openGrpc({ limits })
      const session = await rawSession(server)
      await once(session, 'close')
      await endWell(server)
    }
  })
})
