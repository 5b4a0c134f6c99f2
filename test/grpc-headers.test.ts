/**
 * The headers of a call: compression of its messages, and its deadline.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { OutgoingHttpHeaders } from 'node:http2'
import { after, before, describe, test } from 'node:test'
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { status } from '@grpc/grpc-js'
import { isOp } from '../src/codec/op.ts'
import { loadSchema } from '../src/server/grpc/schema.ts'
import { createOp } from './support/grpc-client.ts'
import { framed, rawHead, rawSession, unframed } from './support/grpc-raw.ts'
import { openGrpc, type TestGrpc } from './support/grpc-server.ts'

const conv_id = '1234'
const { CreateTask, StreamOps } = loadSchema().service

let server: TestGrpc

before(async () => {
  // Calls of `late` are answered only after the server ends.
  const submit: TestGrpc['engine']['submit'] = async (ops, caller) => {
    if (ops[0] !== undefined && isOp(ops[0]) && ops[0].ref?.text === 'late')
      await new Promise(() => {})
    return server.engine.submit(ops, caller)
  }
  server = await openGrpc({ limits: { drain_ms_max: 100 } }, { submit })
})

after(async () => {
  await server.close()
  assert.deepEqual(server.bugs, [])
})

interface Ended {
  readonly code: number
  readonly messages: Buffer[]
}

async function callWith(path: string, head: OutgoingHttpHeaders, sent: Buffer): Promise<Ended> {
  const session = await rawSession(server)
  const stream = session.request({ ...rawHead(path), ...head })
  let code: unknown
  for (const event of ['response', 'trailers'] as const) {
    stream.on(event, (headers: OutgoingHttpHeaders) => {
      code ??= headers['grpc-status']
    })
  }
  const chunks: Buffer[] = []
  stream.on('data', (chunk) => chunks.push(chunk))
  stream.end(sent)
  await once(stream, 'close')
  session.destroy()
  return { code: Number(code), messages: unframed(Buffer.concat(chunks)) }
}

/** A frame whose flag says that its message is compressed. */
function packed(message: Buffer): Buffer {
  const bytes = framed(message)
  bytes[0] = 1
  return bytes
}

const created = (ref: string): Buffer => CreateTask.requestSerialize({ conv_id, ref })
const { OK, INTERNAL, UNIMPLEMENTED, DEADLINE_EXCEEDED } = status

describe('headers of a call', () => {
  /** [what, headers, what is sent, the status it ends with] */
  const rows: [string, OutgoingHttpHeaders, Buffer, status][] = [
    ['gzip', { 'grpc-encoding': 'gzip' }, packed(gzipSync(created('a'))), OK],
    ['deflate', { 'grpc-encoding': 'deflate' }, packed(deflateSync(created('b'))), OK],
    ['gzip, for a message that is not', { 'grpc-encoding': 'gzip' }, framed(created('c')), OK],
    ['no gzip', { 'grpc-encoding': 'gzip' }, packed(created('d')), INTERNAL],
    ['no zlib', { 'grpc-encoding': 'deflate' }, packed(deflateRawSync(created('e'))), INTERNAL],
    ['another encoding', { 'grpc-encoding': 'br' }, packed(created('f')), UNIMPLEMENTED],
    ['compressed, and not said how', {}, packed(gzipSync(created('g'))), INTERNAL],
    ['time enough', { 'grpc-timeout': '1M' }, framed(created('h')), OK],
    ['no time that is one', { 'grpc-timeout': 'soon' }, framed(created('i')), INTERNAL],
    [
      'less time than it takes',
      { 'grpc-timeout': '50m' },
      framed(created('late')),
      DEADLINE_EXCEEDED,
    ],
  ]
  for (const [name, head, sent, expected] of rows) {
    test(name, async () => {
      const { code, messages } = await callWith(CreateTask.path, head, sent)
      assert.equal(status[code], status[expected])
      assert.equal(messages.length, expected === OK ? 1 : 0)
    })
  }

  test('compressed messages of a stream keep their place', async () => {
    const count = 20
    const sent = Array.from({ length: count }, (_, seq) => {
      const message = StreamOps.requestSerialize({ seq, ops: [createOp(`s${seq}`)] })
      return seq % 3 === 0 ? packed(gzipSync(message)) : framed(message)
    })
    const head = { 'grpc-encoding': 'gzip' }
    const { code, messages } = await callWith(StreamOps.path, head, Buffer.concat(sent))
    assert.equal(code, OK)
    assert.deepEqual(
      messages.map((bytes) => Number(StreamOps.responseDeserialize(bytes).seq)),
      [...Array(count).keys()],
    )
  })
})
