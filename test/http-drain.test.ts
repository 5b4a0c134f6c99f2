/**
 * Drain and start of the HTTP server: requests under way are answered, new ones are refused.
 */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import type { OpResult } from '../src/core/model.ts'
import { serveHttp } from '../src/http.ts'
import { by_title } from './support/handler-harness.ts'
import { arrived, connectRaw } from './support/http-raw.ts'
import { codeOf, createBody, openHttp, type TestHttp } from './support/http-server.ts'

const body = createBody('r')

/** A server whose engine answers when `release` is called. */
async function heldServer(
  drain_ms_max: number,
): Promise<{ server: TestHttp; release: () => void; called: Promise<void> }> {
  let release = (): void => {}
  let onCalled = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const called = new Promise<void>((resolve) => {
    onCalled = resolve
  })
  const done: OpResult = { type: 'modify', ref: 'held', obj: 'task', proc: 'ok' }
  const submit = async (): Promise<OpResult[]> => {
    onCalled()
    await held
    return [done]
  }
  const server = await openHttp({ limits: { drain_ms_max } }, { submit })
  return { server, release, called }
}

/** What comes until the other side has ended. */
async function textOf(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('utf8').on('data', (part) => {
    text += part
  })
  await once(socket, 'end')
  socket.end()
  return text
}

describe('drain', () => {
  test('answers what is under way, refuses what is new, frees the port', async () => {
    const { server, release, called } = await heldServer(60_000)
    const idle = await connectRaw(server.port)
    idle.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.equal((await idle.answer()).status, 200)
    const client = await connectRaw(server.port)
    client.send(server.post(body))
    await called

    const drained = server.http.drain()
    await idle.ended()
    const late = await connectRaw(server.port)
    late.send(server.post(body))
    const refused = await late.answer()
    assert.equal(codeOf(refused), 'shutting_down')
    assert.equal(refused.status, 503)
    assert.equal(refused.headers['retry-after'], '5')
    assert.equal(refused.headers.connection, 'close')
    await late.ended()
    const probe = await connectRaw(server.port)
    probe.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.equal((await probe.answer()).body, '{"request_proc":"shutting_down"}')
    await probe.ended()

    release()
    const answer = await client.answer()
    assert.equal(answer.body, '{"request_proc":"ok","ops":[{"ref":"held","proc":"ok"}]}')
    assert.equal(answer.headers.connection, 'close')
    await client.ended()
    await drained
    const again = await serveHttp(server.engine, { port: server.port })
    await again.drain()
    await server.engine.close()
  })

  test('what was sent before is answered, on connections that are kept and on new ones', async () => {
    const server = await openHttp()
    const kept = await connectRaw(server.port)
    kept.send(server.post(body))
    assert.equal(codeOf(await kept.answer()), 'ok')
    const sockets = Array.from({ length: 20 }, () =>
      connect({ host: '127.0.0.1', port: server.port }),
    )
    const answers = sockets.map((socket, n) => {
      socket.write(server.post(createBody(`new ${n}`)))
      return textOf(socket)
    })
    // The kernel has taken them all, and this process has accepted some of them.
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    kept.send(server.post(createBody('kept')))
    const drained = server.http.drain()
    assert.match(codeOf(await kept.answer()), /^(ok|shutting_down)$/)
    for (const text of await Promise.all(answers)) {
      assert.match(text, /"request_proc":"(ok|shutting_down)"/)
    }
    await drained
    await server.engine.close()
  })

  test('an answer that its reader has only begun to read is not cut', async () => {
    const bytes = 12_000_000
    const shown: OpResult = { type: 'show', ref: 'x'.repeat(bytes), obj: 'task', proc: 'ok' }
    const server = await openHttp(
      { limits: { drain_ms_max: 60_000 } },
      { submit: async () => [shown] },
    )
    const socket = connect({ host: '127.0.0.1', port: server.port })
    socket.write(server.post(body))
    await once(socket, 'readable')
    const drained = server.http.drain()
    // Long enough for a drain that looks at none of this.
    await arrived()
    assert.ok((await textOf(socket)).length > bytes)
    await drained
    await server.engine.close()
  })

  test('a request pipelined behind one under way is refused in order', async () => {
    const { server, release, called } = await heldServer(60_000)
    const client = await connectRaw(server.port)
    client.send(server.post(body))
    await called
    const drained = server.http.drain()
    client.send(server.post(body))
    await arrived()
    release()
    assert.equal(codeOf(await client.answer()), 'ok')
    assert.equal(codeOf(await client.answer()), 'shutting_down')
    await client.ended()
    await drained
    await server.engine.close()
  })

  test('waits at most drain_ms_max', async () => {
    const { server, called } = await heldServer(30)
    const client = await connectRaw(server.port)
    client.send(server.post(body))
    await called
    await server.http.drain()
    await client.ended()
    await server.engine.close()
  })

  test('silent connections and incomplete requests do not delay it', async () => {
    const server = await openHttp({ limits: { drain_ms_max: 60_000 } })
    const clients = [await connectRaw(server.port), await connectRaw(server.port)]
    clients[1]?.send('POST / HTTP/1.1\r\nHost:')
    await arrived()
    await server.close()
    for (const client of clients) await client.ended()
  })

  test('an engine that closes refuses requests while its handlers finish, not their own calls', async () => {
    const server = await openHttp()
    const { engine } = server
    let answer: (given: object) => void = () => {}
    const called = new Promise<void>((resolve) => {
      engine.handle('Charge', () => {
        resolve()
        return new Promise((end) => {
          answer = end
        })
      })
    })
    await engine.processes.put(by_title)
    await engine.create({ conv_id: 1, data: {} })
    await called
    const closed = engine.close()
    const refused = await server.send(body)
    assert.deepEqual([codeOf(refused), refused.status], ['shutting_down', 503])
    assert.equal((await engine.create({ conv_id: 1, data: {} })).proc, 'ok')
    answer({})
    await closed
    await server.http.drain()
  })

  test('can be called twice', async () => {
    const server = await openHttp()
    assert.equal(server.http.drain(), server.http.drain())
    await server.close()
  })
})

describe('serveHttp', () => {
  test('answers its address, and serves under a base path', async () => {
    const server = await openHttp({ base: '/conveyor' })
    assert.equal(server.http.url, `http://127.0.0.1:${server.port}/conveyor`)
    assert.equal(server.http.public_url, server.http.url)
    assert.equal(codeOf(await server.send(body)), 'ok')
    await server.close()
  })

  test('answers the public URL it was given, without a trailing slash', async () => {
    const server = await openHttp({ public_url: 'https://x.example/a/' })
    assert.equal(server.http.public_url, 'https://x.example/a')
    await server.close()
  })

  test('rejects where the port is taken', async () => {
    const server = await openHttp()
    await assert.rejects(serveHttp(server.engine, { port: server.port }), { code: 'EADDRINUSE' })
    assert.equal(codeOf(await server.send(body)), 'ok')
    await server.close()
  })

  const senseless = [
    { base: 'x' },
    { public_url: 'x.example' },
    { public_url: 'ftp://x.example' },
    { public_url: 'https://x.example/?a' },
    { public_url: 'https://me:secret@x.example' },
    { limits: { body_bytes_max: 1e9 } },
    { limits: { ops_max: -1 } },
  ]
  for (const options of senseless) {
    test(`rejects ${JSON.stringify(options)}`, async () => {
      const server = await openHttp()
      await assert.rejects(serveHttp(server.engine, { port: 0, ...options }), RangeError)
      await server.close()
    })
  }
})

test('node alone listens to the finish of a response, so that its memory is freed at once', async () => {
  const server = await openHttp()
  const counts: number[] = []
  const onStart = (message: unknown): void => {
    const { response } = message as { readonly response: ServerResponse }
    queueMicrotask(() => counts.push(response.listenerCount('finish')))
  }
  subscribe('http.server.request.start', onStart)
  const { status } = await server.send(JSON.stringify({ ops: [] }))
  unsubscribe('http.server.request.start', onStart)
  assert.equal(status, 400)
  assert.deepEqual(counts, [1])
  await server.close()
})
