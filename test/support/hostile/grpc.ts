/**
 * Hostile gRPC: messages that are no messages, heads that are nearly calls, requests that say what
 * no client's library would. Answered with the status of the call, or with that of HTTP where it
 * is no call of gRPC. Where grpc-js is lenient (methods, types that begin alike, the flag), that is
 * stated too: such a call has passed the handshake, and is served with the rights of its caller.
 */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { deflateRawSync, gzipSync } from 'node:zlib'
import { status } from '@grpc/grpc-js'
import { loadSchema } from '../../../src/server/grpc/schema.ts'
import { framed, rawHead } from '../grpc-raw.ts'
import { openGrpc } from '../grpc-server.ts'
import type { HostileClass, HostileRow, HostileRunner } from './row.ts'

const { CreateTask, ModifyTask, GetTask, ApplyOps, ListTasks, WaitTask } = loadSchema().service
const conv_id = '1234'
const body_bytes_max = 100_000

const good = CreateTask.requestSerialize({ conv_id })
/** A message whose five bytes in front say something else. */
const saying = (length: number, flag = 0, message = good): Buffer => {
  const bytes = framed(message)
  bytes[0] = flag
  bytes.writeUInt32BE(length, 1)
  return bytes
}
const packed = (message: Buffer): Buffer => saying(message.length, 1, message)
const hex = (text: string): Buffer => framed(Buffer.from(text.replaceAll(' ', ''), 'hex'))
const with_data = (data: string | Buffer): Buffer =>
  framed(CreateTask.requestSerialize({ conv_id, data_json: Buffer.from(data) }))
const gzip = { 'grpc-encoding': 'gzip' }
const many = Object.fromEntries(Array.from({ length: 80 }, (_, n) => [`x-${n}`, 'y']))

interface Sent {
  readonly bytes: Buffer
  /** Headers that differ from those of a call. */
  readonly head: OutgoingHttpHeaders
  readonly path: string
}

/** [what it is, the status, what is sent, headers that differ, the path]. */
const table: readonly (readonly [string, string, Buffer, OutgoingHttpHeaders?, string?])[] = [
  ['no message', 'UNIMPLEMENTED', Buffer.alloc(0)],
  ['two messages', 'UNIMPLEMENTED', Buffer.concat([framed(good), framed(good)])],
  ['a message and bytes behind it', 'OK', Buffer.concat([framed(good), Buffer.alloc(3)])],
  ['a length too short', 'INTERNAL', saying(good.length - 1)],
  ['a length too long', 'UNIMPLEMENTED', saying(good.length + 1)],
  ['a length of nothing, then bytes', 'RESOURCE_EXHAUSTED', saying(0)],
  ['a length of four gigabytes', 'RESOURCE_EXHAUSTED', saying(0xffffffff)],
  ['a length of two gigabytes', 'RESOURCE_EXHAUSTED', saying(0x80000000)],
  ['a length over the limit by one', 'RESOURCE_EXHAUSTED', saying(body_bytes_max + 1)],
  ['half of the five bytes', 'UNIMPLEMENTED', Buffer.alloc(3)],
  ['a flag of two', 'OK', saying(good.length, 2)],
  ['a flag of 255', 'OK', saying(good.length, 255)],
  ['compressed, and not said how', 'INTERNAL', packed(gzipSync(good))],
  ['no gzip', 'INTERNAL', packed(good), gzip],
  ['gzip cut off', 'INTERNAL', packed(gzipSync(good).subarray(0, -5)), gzip],
  [
    'gzip with a wrong sum',
    'INTERNAL',
    packed(Buffer.concat([gzipSync(good).subarray(0, -8), Buffer.alloc(8)])),
    gzip,
  ],
  ['no zlib', 'INTERNAL', packed(deflateRawSync(good)), { 'grpc-encoding': 'deflate' }],
  ['gzip that opens to 100 MB', 'RESOURCE_EXHAUSTED', packed(gzipSync(Buffer.alloc(1e8))), gzip],
  ['another encoding', 'UNIMPLEMENTED', packed(good), { 'grpc-encoding': 'br' }],
  ['an encoding of every object', 'UNIMPLEMENTED', packed(good), { 'grpc-encoding': '__proto__' }],

  ['a value of 20,000 bytes', 'RESOURCE_EXHAUSTED', framed(good), { x: 'x'.repeat(20_000) }],
  ['80 values', 'RESOURCE_EXHAUSTED', framed(good), many],
  ['a time of words', 'INTERNAL', framed(good), { 'grpc-timeout': 'soon' }],
  ['a time that is negative', 'OK', framed(good), { 'grpc-timeout': '-1S' }],
  ['a time without its unit', 'INTERNAL', framed(good), { 'grpc-timeout': '1' }],
  ['a time in days', 'INTERNAL', framed(good), { 'grpc-timeout': '1D' }],
  ['a time of nine digits', 'OK', framed(good), { 'grpc-timeout': '999999999S' }],
  [
    'a time of nothing',
    'DEADLINE_EXCEEDED',
    framed(WaitTask.requestSerialize({ conv_id, ref: 'there' })),
    { 'grpc-timeout': '0n' },
    WaitTask.path,
  ],
  ['a time of eleven thousand years', 'OK', framed(good), { 'grpc-timeout': '99999999H' }],

  ['GET', 'UNIMPLEMENTED', framed(good), { ':method': 'GET' }],
  ['PUT', 'OK', framed(good), { ':method': 'PUT' }],
  ['DELETE', 'UNIMPLEMENTED', framed(good), { ':method': 'DELETE' }],
  ['OPTIONS', 'OK', framed(good), { ':method': 'OPTIONS' }],
  ['JSON', 'HTTP 415', framed(good), { 'content-type': 'application/json' }],
  ['no type', 'HTTP 415', framed(good), { 'content-type': undefined }],
  ['gRPC of the web', 'OK', framed(good), { 'content-type': 'application/grpc-web' }],
  ['a type that begins alike', 'OK', framed(good), { 'content-type': 'application/grpcx' }],
  ['gRPC of JSON', 'OK', framed(good), { 'content-type': 'application/grpc+json' }],

  ['another rpc', 'UNIMPLEMENTED', framed(good), {}, '/conveyor.v1.TaskService/DropTask'],
  ['another service', 'UNIMPLEMENTED', framed(good), {}, '/conveyor.v2.TaskService/CreateTask'],
  ['the root', 'UNIMPLEMENTED', framed(good), {}, '/'],
  ['no slash', 'ended', framed(good), {}, 'conveyor.v1.TaskService/CreateTask'],
  ['a slash behind', 'UNIMPLEMENTED', framed(good), {}, `${CreateTask.path}/`],
  ['a query', 'UNIMPLEMENTED', framed(good), {}, `${CreateTask.path}?a=1`],
  ['other case', 'UNIMPLEMENTED', framed(good), {}, CreateTask.path.toLowerCase()],
  [
    'an rpc of every object',
    'UNIMPLEMENTED',
    framed(good),
    {},
    '/conveyor.v1.TaskService/__proto__',
  ],
  [
    'another of every object',
    'UNIMPLEMENTED',
    framed(good),
    {},
    '/conveyor.v1.TaskService/constructor',
  ],
  ['a path of every object', 'ended', framed(good), {}, '__proto__'],
  [
    'reflection, which is off',
    'UNIMPLEMENTED',
    framed(Buffer.alloc(0)),
    {},
    '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  ],

  ['a field that ends too early', 'INTERNAL', hex('0a 05 61')],
  ['a field of four gigabytes', 'INTERNAL', hex('0a ff ff ff ff 0f 61')],
  ['a field of negative length', 'INTERNAL', hex('0a ff ff ff ff ff ff ff ff ff 01')],
  ['a number of eleven bytes', 'INTERNAL', hex('78 ff ff ff ff ff ff ff ff ff ff 01')],
  ['half a number', 'INTERNAL', hex('78 80')],
  ['half a tag', 'INTERNAL', hex('80')],
  ['field 0', 'INVALID_ARGUMENT', hex('02 01 61')],
  ['wire type 6', 'INTERNAL', hex('7e 01')],
  ['wire type 7', 'INTERNAL', hex('7f 01')],
  ['the end of a group that has not begun', 'INTERNAL', hex('7c')],
  ['a group without an end', 'INTERNAL', hex('7b 08 01')],
  ['groups in groups without an end', 'INTERNAL', framed(Buffer.alloc(50_000, 0x7b))],
  ['a process as a number', 'INVALID_ARGUMENT', hex('08 d2 09')],
  ['a process that is no UTF-8', 'INTERNAL', hex('0a 02 c0 af')],
  ['nothing at all', 'INVALID_ARGUMENT', framed(Buffer.alloc(0))],
  [
    'a process with a NUL',
    'INVALID_ARGUMENT',
    framed(CreateTask.requestSerialize({ conv_id: '1\0' })),
  ],
  [
    'a process of 65 characters',
    'INVALID_ARGUMENT',
    framed(CreateTask.requestSerialize({ conv_id: '1'.repeat(65) })),
  ],
  [
    'a ref that is empty',
    'INVALID_ARGUMENT',
    framed(CreateTask.requestSerialize({ conv_id, ref: '' })),
  ],
  [
    'a ref of 256 characters',
    'INVALID_ARGUMENT',
    framed(CreateTask.requestSerialize({ conv_id, ref: 'x'.repeat(256) })),
  ],
  ['data that are no JSON', 'INVALID_ARGUMENT', with_data('x')],
  ['data cut off', 'INVALID_ARGUMENT', with_data('{"a":')],
  ['data that are an array', 'INVALID_ARGUMENT', with_data('[1]')],
  ['data that are null', 'INVALID_ARGUMENT', with_data('null')],
  ['data that are white space', 'INVALID_ARGUMENT', with_data(' ')],
  ['data with a byte order mark', 'INVALID_ARGUMENT', with_data('\ufeff{}')],
  [
    'data that are no UTF-8',
    'INVALID_ARGUMENT',
    with_data(Buffer.from('7b2261223a22c0af227d', 'hex')),
  ],
  ['data with a lone surrogate', 'INVALID_ARGUMENT', with_data('{"a":"\\ud800"}')],
  ['data of 66 levels', 'INVALID_ARGUMENT', with_data(`{"a":${'['.repeat(65)}${']'.repeat(65)}}`)],
  ['data of too many values', 'INVALID_ARGUMENT', with_data(`{"a":[${'1,'.repeat(45_000)}1]}`)],
  [
    'no target',
    'INVALID_ARGUMENT',
    framed(ModifyTask.requestSerialize({ conv_id })),
    {},
    ModifyTask.path,
  ],
  [
    'a target that is empty',
    'INVALID_ARGUMENT',
    framed(GetTask.requestSerialize({ conv_id, ref: '' })),
    {},
    GetTask.path,
  ],
  [
    'an id that is none',
    'INVALID_ARGUMENT',
    framed(GetTask.requestSerialize({ conv_id, obj_id: '__proto__' })),
    {},
    GetTask.path,
  ],
  [
    'a wait for no target',
    'INVALID_ARGUMENT',
    framed(WaitTask.requestSerialize({ conv_id })),
    {},
    WaitTask.path,
  ],
  ['no ops', 'INVALID_ARGUMENT', framed(Buffer.alloc(0)), {}, ApplyOps.path],
  [
    'too many ops',
    'RESOURCE_EXHAUSTED',
    framed(Buffer.from('0a00'.repeat(1_001), 'hex')),
    {},
    ApplyOps.path,
  ],
  [
    'a page that is none',
    'INVALID_ARGUMENT',
    framed(ListTasks.requestSerialize({ page_token: 'x' })),
    {},
    ListTasks.path,
  ],
]

const rows = table.map(
  ([says, code, bytes, head = {}, path = CreateTask.path]): HostileRow<Sent> => [
    says,
    code,
    { bytes, head, path },
  ],
)

async function open(): Promise<HostileRunner<Sent>> {
  const server = await openGrpc({
    plain: true,
    limits: { body_bytes_max, body_values_max: 40_000 },
  })
  await server.engine.create({ conv_id, ref: 'there', data: {} })
  let session: ClientHttp2Session | undefined
  const opened = (): ClientHttp2Session => {
    if (session === undefined || session.closed || session.destroyed) {
      session = connect(`http://${server.grpc.address}`).on('error', () => {})
    }
    return session
  }
  const honest = server.connect()
  return {
    bugs: server.bugs,
    async answerTo({ bytes, head, path }) {
      const stream = opened().request({ ...rawHead(path), ...head })
      stream.end(bytes)
      return answerOf(stream)
    },
    honest: async () => (await honest.statusOf('CreateTask', { conv_id })).toLowerCase(),
    async close() {
      session?.destroy()
      await server.close()
    },
  }
}

/** The status that the call ends with. */
function answerOf(stream: ClientHttp2Stream): Promise<string> {
  return new Promise((resolve) => {
    let answer = 'ended'
    const look = (headers: OutgoingHttpHeaders): void => {
      const code = headers['grpc-status']
      if (code !== undefined) answer = status[Number(code)] ?? String(code)
      else if (headers[':status'] !== undefined && headers[':status'] !== 200) {
        answer = `HTTP ${headers[':status']}`
      }
    }
    stream.on('response', look).on('trailers', look).resume()
    stream.on('error', () => {})
    stream.on('close', () => resolve(answer))
  })
}

export const hostile_grpc: HostileClass<Sent> = { name: 'gRPC', rows, open }
