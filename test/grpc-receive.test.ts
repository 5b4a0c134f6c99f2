/**
 * What a peer of gRPC can make the server hold: messages that never come to their end, and answers
 * that it does not take. Each is bounded, refused with the stated code, and ends with its connection.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { loadSchema } from '../src/server/grpc/schema.ts'
import { fractionsOf } from './support/fractions.ts'
import { createOp } from './support/grpc-client.ts'
import { framed, rawHead, rawSession } from './support/grpc-raw.ts'
import { openGrpc, type TestGrpc } from './support/grpc-server.ts'
import { arrived } from './support/http-raw.ts'
import { conv_id } from './support/http-server.ts'
import { pick } from './support/pick.ts'

const { service } = loadSchema()
const limits = {
  body_bytes_max: 400_000,
  unverified_bytes_max: 600_000,
  large_body_bytes: 10_000,
  request_ms_max: 60_000,
}

/** Begins a message of 400,000 bytes and sends so many of them. */
function beginMessage(session: ClientHttp2Session, path: string, bytes: number): ClientHttp2Stream {
  const call = session.request(rawHead(path))
  call.on('error', () => {})
  call.resume()
  call.write(framed(Buffer.alloc(limits.body_bytes_max)).subarray(0, 5 + bytes))
  return call
}

const closed = (session: ClientHttp2Session): Promise<unknown> => once(session, 'close')

async function messageOf(call: ClientHttp2Stream): Promise<string> {
  const [headers] = (await once(call, 'response')) as [Record<string, string>]
  return decodeURI(headers['grpc-message'] ?? '')
}

const tooMuch = 'overloaded: too many bytes of messages that are not in yet'
const other_services = ['/grpc.health.v1.Health/Check', '/grpc.health.v1.Health/Watch']
const { ApplyOps, StreamOps, WaitTask } = service

describe('messages that are not in yet', () => {
  for (const path of [ApplyOps.path, StreamOps.path, WaitTask.path, ...other_services]) {
    test(`${path}: beyond the bound the connection with most of them is refused`, async () => {
      const server = await openGrpc({ limits })
      const small = await rawSession(server)
      const kept = beginMessage(small, path, 150_000)
      const large = await rawSession(server)
      const refused = [beginMessage(large, path, 300_000), beginMessage(large, path, 300_000)]
      const end = closed(large)
      assert.deepEqual(await Promise.all(refused.map(messageOf)), [tooMuch, tooMuch])
      await end
      assert.equal(await server.connect().statusOf('ApplyOps', { ops: [createOp('r')] }), 'OK')
      assert.equal(kept.closed, false)
      small.destroy()
      await server.close()
      assert.deepEqual(server.bugs, [])
    })
  }

  /** [what comes beside the unfinished messages, its bytes] */
  const besides: [string, () => Sent][] = [
    ['whole messages', () => ({ bytes: wholeMessage() })],
    ['compressed ones', () => ({ bytes: compressed(wholeMessage()), encoding: 'gzip' })],
  ]
  for (const [what, make] of besides) {
    test(`${what} on the same connection hide none`, async () => {
      await using server = await openGrpc({ limits })
      const session = await rawSession(server)
      const first = beginMessage(session, StreamOps.path, 390_000)
      assert.equal(await messageOf(sendWhole(session, make())), '')
      const end = closed(session)
      const second = beginMessage(session, StreamOps.path, 390_000)
      assert.deepEqual(await Promise.all([first, second].map(messageOf)), [tooMuch, tooMuch])
      await end
    })
  }

  const fraction = fractionsOf(1)
  const digits = (): string =>
    Array.from({ length: 20_000 }, () => Math.floor(10 * fraction())).join('')
  const created = (n: number): Buffer =>
    framed(ApplyOps.requestSerialize({ ops: [createOp(`${n}`, { digits: digits() })] }))
  /** [what, messages of it; together they have more bytes than may be here] */
  const any: [string, number, (n: number) => Sent][] = [
    ['whole ones', 60, (n) => ({ bytes: created(n) })],
    ['compressed ones', 160, (n) => ({ bytes: compressed(created(n)), encoding: 'gzip' })],
  ]
  for (const [what, count, make] of any) {
    test(`any number of ${what} is taken, beside one that goes on`, async () => {
      await using server = await openGrpc({ limits })
      const session = await rawSession(server)
      const stream = beginMessage(session, StreamOps.path, 0)
      let sent_bytes = 0
      for (let n = 0; n < count; n++) {
        const made = make(n)
        sent_bytes += made.bytes.length
        assert.equal(await messageOf(sendWhole(session, made)), '')
      }
      assert.ok(sent_bytes > 2 * limits.unverified_bytes_max)
      assert.equal(stream.closed, false)
      session.destroy()
    })
  }

  test('one that does not come in time takes its connection with it', async () => {
    await using server = await openGrpc({ limits: { ...limits, request_ms_max: 100 } })
    const session = await rawSession(server)
    const end = closed(session)
    const call = beginMessage(session, ApplyOps.path, 100_000)
    assert.match(await messageOf(call), /^request_timeout: /)
    await end
  })
})

describe('answers that are not taken', () => {
  for (const rpc of ['ApplyOps', 'StreamOps', 'WatchTasks'] as const) {
    test(`${rpc}: the connection ends, and not that of who takes them`, async () => {
      const server = await openGrpc({ limits: { idle_ms_max: 200 } })
      await fill(server)
      const { path, requestSerialize } = service[rpc]
      const ops = Array.from({ length: 20 }, (_, n) => ({ id: '', show: { conv_id, ref: `${n}` } }))
      const message = rpc === 'WatchTasks' ? { from: 'start', with_task: true } : { ops }
      const [reader, other] = await Promise.all([rawSession(server), rawSession(server)])
      for (const session of [reader, other]) {
        const call = session.request(rawHead(path))
        call.on('error', () => {})
        call.write(framed(requestSerialize(message)))
        if (rpc !== 'StreamOps') call.end()
        if (session === reader) call.resume()
      }
      await closed(other)
      assert.equal(reader.closed, false)
      reader.destroy()
      await server.close()
      const told = server.told.filter(({ event }) => event === 'request_refused')
      assert.deepEqual(pick(told, 'code'), ['request_timeout'])
    })
  }
})

test('an answer to a call that was canceled meanwhile takes no room, and no connection with it', async () => {
  let release = (): void => {}
  let onCalled = (): void => {}
  const submit: TestGrpc['engine']['submit'] = async (ops, caller) => {
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    onCalled()
    await held
    return server.engine.submit(ops, caller)
  }
  const answer_bytes = { task_bytes_max: 10_000, caller_answer_bytes_max: 200_000 }
  const server = await openGrpc({ limits: { idle_ms_max: 200, ...answer_bytes } }, { submit })
  await server.engine.create({ conv_id, ref: '0', data: { s: 'x'.repeat(9_000) } })
  const session = await rawSession(server)
  const { path, requestSerialize } = service.ApplyOps
  const ops = Array.from({ length: 8 }, () => ({ id: '', show: { conv_id, ref: '0' } }))
  const begin = async (): Promise<ClientHttp2Stream> => {
    const called = new Promise<void>((resolve) => {
      onCalled = resolve
    })
    const call = session.request(rawHead(path))
    call.on('error', () => {})
    call.end(framed(requestSerialize({ ops })))
    await called
    return call
  }
  // Together they have more than the caller's share.
  for (let n = 0; n < 4; n++) {
    const call = await begin()
    call.close()
    await once(call, 'close')
    await arrived()
    release()
  }
  const last = await begin()
  await sleep(600)
  assert.equal(session.closed, false)
  release()
  last.resume()
  const [head] = await once(last, 'response')
  assert.equal(head[':status'], 200)
  assert.equal(head['grpc-status'], undefined)
  session.destroy()
  await server.close()
})

async function fill({ engine }: TestGrpc): Promise<void> {
  const data = { s: 'x'.repeat(100_000) }
  for (let n = 0; n < 20; n++) await engine.create({ conv_id, ref: `${n}`, data })
}

function wholeMessage(): Buffer {
  const data_json = Buffer.from(JSON.stringify({ s: 'x'.repeat(100_000) }))
  const ops = Array.from({ length: 3 }, () => ({ id: '', create: { conv_id, data_json } }))
  return framed(ApplyOps.requestSerialize({ ops }))
}

interface Sent {
  readonly bytes: Buffer
  readonly encoding?: string
}

function sendWhole(
  session: ClientHttp2Session,
  { bytes, encoding = 'identity' }: Sent,
): ClientHttp2Stream {
  const call = session.request({ ...rawHead(ApplyOps.path), 'grpc-encoding': encoding })
  call.on('error', () => {})
  call.resume()
  call.end(bytes)
  return call
}

function compressed(message: Buffer): Buffer {
  const bytes = framed(gzipSync(message.subarray(5)))
  bytes[0] = 1
  return bytes
}
