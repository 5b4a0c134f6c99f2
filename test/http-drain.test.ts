/** The end of the door: what is under way is answered, what is new is refused, nothing hangs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { OpResult } from '../src/core/model.ts'
import { serveHttp } from '../src/http.ts'
import { connectRaw } from './support/http-raw.ts'
import { codeOf, createBody, openDoor, type TestDoor } from './support/http-server.ts'

const body = createBody('r')

/** A door whose engine answers only when told to. */
async function heldDoor(
  drain_ms_max: number,
): Promise<{ door: TestDoor; letGo: () => void; called: Promise<void> }> {
  let letGo = (): void => {}
  let noteCall = (): void => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const called = new Promise<void>((resolve) => {
    noteCall = resolve
  })
  const done: OpResult = { type: 'modify', ref: 'held', obj: 'task', proc: 'ok' }
  const apply = async (): Promise<OpResult[]> => {
    noteCall()
    await gate
    return [done]
  }
  const door = await openDoor({ limits: { drain_ms_max } }, { apply })
  return { door, letGo, called }
}

describe('drain', () => {
  test('answers what is under way, refuses what is new, frees the port', async () => {
    const { door, letGo, called } = await heldDoor(60_000)
    const idle = await connectRaw(door.port)
    idle.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.equal((await idle.answer()).status, 200)
    const client = await connectRaw(door.port)
    client.send(door.post(body))
    await called

    const drained = door.door.drain()
    await idle.ended()
    const late = await connectRaw(door.port)
    late.send(door.post(body))
    const refused = await late.answer()
    assert.equal(codeOf(refused), 'shutting_down')
    assert.equal(refused.status, 503)
    assert.equal(refused.headers['retry-after'], '5')
    assert.equal(refused.headers.connection, 'close')
    await late.ended()
    const probe = await connectRaw(door.port)
    probe.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.equal((await probe.answer()).body, '{"request_proc":"shutting_down"}')
    await probe.ended()

    letGo()
    const answer = await client.answer()
    assert.equal(answer.body, '{"request_proc":"ok","ops":[{"ref":"held","proc":"ok"}]}')
    assert.equal(answer.headers.connection, 'close')
    await client.ended()
    await drained
    const again = await serveHttp(door.engine, { port: door.port })
    await again.drain()
    await door.engine.close()
  })

  test('a request pipelined behind one under way is refused in order', async () => {
    const { door, letGo, called } = await heldDoor(60_000)
    const client = await connectRaw(door.port)
    client.send(door.post(body))
    await called
    const drained = door.door.drain()
    client.send(door.post(body))
    await new Promise((resolve) => setTimeout(resolve, 20))
    letGo()
    assert.equal(codeOf(await client.answer()), 'ok')
    assert.equal(codeOf(await client.answer()), 'shutting_down')
    await client.ended()
    await drained
    await door.engine.close()
  })

  test('waits no longer than it may', async () => {
    const { door, called } = await heldDoor(30)
    const client = await connectRaw(door.port)
    client.send(door.post(body))
    await called
    await door.door.drain()
    await client.ended()
    await door.engine.close()
  })

  test('silent connections and half-sent requests do not hold it up', async () => {
    const door = await openDoor({ limits: { drain_ms_max: 60_000 } })
    const clients = [await connectRaw(door.port), await connectRaw(door.port)]
    clients[1]?.send('POST / HTTP/1.1\r\nHost:')
    await new Promise((resolve) => setTimeout(resolve, 20))
    await door.close()
    for (const client of clients) await client.ended()
  })

  test('may be asked for twice', async () => {
    const door = await openDoor()
    assert.equal(door.door.drain(), door.door.drain())
    await door.close()
  })
})

describe('serveHttp', () => {
  test('tells where it listens, and serves under a base', async () => {
    const door = await openDoor({ base: '/conveyor' })
    assert.equal(door.door.url, `http://127.0.0.1:${door.port}/conveyor`)
    assert.equal(codeOf(await door.send(body)), 'ok')
    await door.close()
  })

  test('rejects where the port is taken', async () => {
    const door = await openDoor()
    await assert.rejects(serveHttp(door.engine, { port: door.port }), { code: 'EADDRINUSE' })
    assert.equal(codeOf(await door.send(body)), 'ok')
    await door.close()
  })

  const senseless = [
    { base: 'x' },
    { limits: { body_bytes_max: 1e9 } },
    { limits: { ops_max: -1 } },
  ]
  for (const options of senseless) {
    test(`rejects ${JSON.stringify(options)}`, async () => {
      const door = await openDoor()
      await assert.rejects(serveHttp(door.engine, { port: 0, ...options }), RangeError)
      await door.close()
    })
  }
})
