/**
 * StreamOps: the order of answers, batches that fail, the end of streams, and flow control.
 */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep_ms } from 'node:timers/promises'
import { fault } from '../src/core/faults.ts'
import type { Op } from '../src/core/model.ts'
import { type ServedEngine, servedEngine } from '../src/engine/served-engine.ts'
import { serveGrpc } from '../src/grpc.ts'
import { openEngine } from '../src/open.ts'
import { loadSchema } from '../src/server/grpc/schema.ts'
import { collect, createOp, openClient } from './support/grpc-client.ts'
import { framed, rawHead, rawSession, unframed } from './support/grpc-raw.ts'
import { openGrpc, type TestGrpc } from './support/grpc-server.ts'
import { process_definition } from './support/http-server.ts'
import { pick } from './support/pick.ts'
import { tasksOf } from './support/tasks-of.ts'
import { eventually } from './support/waits.ts'

const conv_id = '1234'

/** A server whose engine records the batches it gets, and may refuse some of them. */
async function countingServer(
  limits: object,
  isRefused: (call: number) => boolean = () => false,
): Promise<{ server: TestGrpc; begun: string[] }> {
  const begun: string[] = []
  let count = 0
  let engine: ServedEngine | undefined
  const submit: ServedEngine['submit'] = async (ops, caller) => {
    if (isRefused(count++)) throw fault('overloaded')
    begun.push(String((ops[0] as Op).ref?.text))
    return (engine as ServedEngine).submit(ops, caller)
  }
  const server = await openGrpc({ limits }, { submit })
  engine = server.engine
  return { server, begun }
}

describe('StreamOps', () => {
  test('answers in the order sent, each with its seq, and continues after bad batches', async () => {
    const server = await openGrpc()
    const stream = server.connect().stream()
    const collected = collect(stream)
    const sent: [string, object, string][] = [
      ['18446744073709551615', { ops: [createOp('a')] }, 'ok'],
      ['0', { ops: [] }, 'format_error'],
      ['9007199254740993', { ops: [createOp('b')], request_key: 'x'.repeat(256) }, 'format_error'],
      ['1', { ops: Array.from({ length: 1001 }, () => ({})) }, 'too_many_ops'],
      ['1', { ops: [{ modify: { conv_id, ref: 'a' } }, {}] }, 'ok'],
      ['2', { ops: [{ show: { conv_id, ref: 'a' } }, { modify: { conv_id, ref: 'a' } }] }, 'ok'],
    ]
    for (const [seq, batch] of sent) stream.write({ seq, ...batch })
    stream.end()
    const { answers, status } = await collected
    assert.equal(status, 'OK')
    assert.deepEqual(
      pick(answers, 'seq', 'proc'),
      sent.map(([seq, , proc]) => [seq, proc]),
    )
    assert.deepEqual(
      answers.map(({ results }) => results.map(({ proc }) => proc)),
      [['ok'], [], [], [], ['ok', 'error'], ['ok', 'not_found_task']],
    )
    assert.equal(answers[1]?.description, 'ops is empty')
    await server.close()
    assert.deepEqual(server.bugs, [])
  })

  test('has many batches under way at once, and each sees the effects of earlier ones', async () => {
    const { server, begun } = await countingServer({})
    const stream = server.connect().stream()
    const collected = collect(stream)
    for (let n = 0; n < 200; n++) {
      const before = n === 0 ? [] : [{ show: { conv_id, ref: `r${n - 1}` } }]
      stream.write({ seq: n, ops: [createOp(`r${n}`), ...before] })
    }
    stream.end()
    const { answers } = await collected
    assert.deepEqual(
      answers.map(({ seq }) => Number(seq)),
      [...Array(200).keys()],
    )
    assert.ok(answers.every(({ results }) => results.every(({ proc }) => proc === 'ok')))
    assert.deepEqual(
      begun,
      answers.map((_, n) => `r${n}`),
    )
    await server.close()
  })

  test('keeps its order while the queue of the engine is full', async () => {
    const refused = new Set([1, 2, 3, 7])
    const { server, begun } = await countingServer({}, (call) => refused.has(call))
    const stream = server.connect().stream()
    const collected = collect(stream)
    for (let n = 0; n < 10; n++) stream.write({ seq: n, ops: [createOp(`r${n}`)] })
    stream.end()
    const { answers } = await collected
    assert.deepEqual(
      pick(answers, 'seq', 'proc'),
      answers.map((_, n) => [String(n), 'ok']),
    )
    assert.deepEqual(
      begun,
      [...Array(10).keys()].map((n) => `r${n}`),
    )
    await server.close()
  })

  test('waits while the real queue is full, and refuses nothing', async () => {
    const server = await openGrpc()
    const engine = servedEngine(await openEngine(':memory:', { limits: { queue_ops_max: 10 } }))
    await engine.processes.put(process_definition)
    let refused = 0
    const submit: ServedEngine['submit'] = (ops, caller) => {
      const applied = engine.submit(ops, caller)
      applied.catch(() => refused++)
      return applied
    }
    const tls = { folder: server.folder }
    const served: ServedEngine = { ...engine, submit }
    const small = await serveGrpc(served, { port: 0, tls })
    const client = openClient(small.address, server)
    const load = async (name: string) => {
      const stream = client.stream()
      const collected = collect(stream)
      for (let n = 0; n < 20; n++) {
        stream.write({ seq: n, ops: [1, 2, 3, 4].map((k) => createOp(`${name}${n}-${k}`)) })
      }
      stream.end()
      return collected
    }
    for (const { answers } of await Promise.all(['a', 'b', 'c'].map(load))) {
      assert.deepEqual(
        pick(answers, 'seq', 'proc'),
        answers.map((_, n) => [String(n), 'ok']),
      )
      const ids = answers.flatMap(({ results }) => results.map(({ obj_id }) => obj_id))
      assert.equal(ids.length, 80)
      assert.deepEqual(ids, [...ids].sort())
    }
    assert.ok(refused > 0)
    client.close()
    await small.drain()
    await engine.close()
    await server.close()
  })

  test('one stream fills at most half of the queue', async () => {
    const begun: unknown[] = []
    const never = new Promise<never>(() => {})
    const submit: ServedEngine['submit'] = (ops) => {
      begun.push(...ops)
      return never
    }
    const limits = { queue_ops_max: 10, drain_ms_max: 50 }
    await using server = await openGrpc({ limits }, { submit })
    const stream = server.connect().stream()
    stream.on('error', () => {})
    for (let seq = 0; seq < 10; seq++) stream.write({ seq, ops: [createOp('a'), createOp('b')] })
    await eventually(() => begun.length === 6)
    await sleep_ms(50)
    assert.equal(begun.length, 6)
    stream.cancel()
  })

  test('answers overloaded after request_ms_max, and continues', async () => {
    const over = { submit: async () => Promise.reject(fault('overloaded')) }
    await using server = await openGrpc({ limits: { request_ms_max: 60 } }, over)
    const stream = server.connect().stream()
    const collected = collect(stream)
    for (const seq of [1, 2]) stream.write({ seq, ops: [createOp('r')] })
    stream.end()
    const { answers, status } = await collected
    assert.equal(status, 'OK')
    assert.deepEqual(pick(answers, 'proc'), ['overloaded', 'overloaded'])
  })

  test('the server stops reading from a caller that does not read', async () => {
    const { server, begun } = await countingServer({ grpc_batches_max: 8 })
    const client = server.connect()
    const big = { text: 'x'.repeat(100_000) }
    await client.apply([createOp('big', big)])
    begun.length = 0
    // grpc-js clients read ahead, so this client is bare HTTP/2.
    const { path, requestSerialize, responseDeserialize } = loadSchema().service.StreamOps
    const session = await rawSession(server)
    const stream = session.request(rawHead(path))
    const total = 200
    for (let seq = 0; seq < total; seq++) {
      stream.write(framed(requestSerialize({ seq, ops: [{ show: { conv_id, ref: 'big' } }] })))
    }
    stream.end()
    await eventually(() => begun.length === 8)
    await sleep_ms(100)
    assert.equal(begun.length, 8)
    // Another caller is served meanwhile.
    assert.equal(await client.statusOf('CreateTask', { conv_id }), 'OK')
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk as Buffer)
    const answers = unframed(Buffer.concat(chunks)).map(responseDeserialize)
    assert.deepEqual(
      answers.map(({ seq }) => Number(seq)),
      [...Array(total).keys()],
    )
    session.destroy()
    await server.close()
  })

  test('bytes under way are bounded too', async () => {
    let open = (): void => {}
    const held_back = new Promise<void>((resolve) => {
      open = resolve
    })
    let asked = 0
    const submit: ServedEngine['submit'] = async () => {
      asked++
      await held_back
      return [{ ref: null, obj: 'task', proc: 'ok' }]
    }
    await using server = await openGrpc({ limits: { body_bytes_max: 200_000 } }, { submit })
    const stream = server.connect().stream()
    const collected = collect(stream)
    const data = { text: 'x'.repeat(90_000) }
    for (let n = 0; n < 20; n++) stream.write({ seq: n, ops: [createOp(`r${n}`, data)] })
    stream.end()
    await eventually(() => asked >= 2)
    await sleep_ms(100)
    assert.ok(asked >= 2 && asked <= 4, `${asked} batches were begun`)
    open()
    assert.equal((await collected).answers.length, 20)
  })

  test('a stream that is reset has applied whole batches, and only begun ones', async () => {
    const { server, begun } = await countingServer({ grpc_batches_max: 4 })
    const client = server.connect()
    const stream = client.stream()
    stream.on('error', () => {})
    const ended = new Promise((resolve) => stream.on('status', resolve))
    let answers = 0
    stream.on('data', () => {
      if (++answers === 5) stream.cancel()
    })
    for (let n = 0; n < 100; n++) {
      stream.write({ seq: n, ops: [1, 2, 3].map((k) => createOp(`r${n}-${k}`)) })
    }
    await ended
    // Once the server has heard of it too.
    const count = async (): Promise<number> =>
      (await tasksOf(server.engine, conv_id, { limit: 1000 })).length
    await eventually(async () => {
      const before = begun.length
      await sleep_ms(50)
      return (await count()) === 3 * begun.length && begun.length === before
    })
    assert.ok(begun.length < 100)
    assert.deepEqual(
      begun,
      begun.map((_, n) => `r${n}-1`),
    )
    assert.equal(await client.statusOf('CreateTask', { conv_id }), 'OK')
    await server.close()
    assert.deepEqual(server.bugs, [])
  })

  test('a stream that is too old ends, and its begun batches are answered', async () => {
    const { server, begun } = await countingServer({ grpc_age_ms_max: 800 })
    const stream = server.connect().stream()
    const collected = collect(stream)
    const writing = setInterval(() => stream.write({ ops: [createOp(`r${Math.random()}`)] }), 5)
    const { answers, status, details } = await collected
    clearInterval(writing)
    assert.equal(status, 'UNAVAILABLE')
    assert.match(details, /^shutting_down: /)
    assert.equal(answers.length, begun.length)
    assert.ok(answers.length > 0)
    await server.close()
    assert.deepEqual(server.bugs, [])
  })
})
