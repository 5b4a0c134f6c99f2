/**
 * Hostile HTTP/2 at the gRPC server: frames that the protocol forbids, and floods of those that it
 * allows. Each row has a connection of its own, which is `ended`, whichever error is named for it;
 * or the call is reset with its error; or the connection is `alive` where that is to be borne.
 */
import { connect } from 'node:net'
import { loadSchema } from '../../../src/server/grpc/schema.ts'
import { framed } from '../grpc-raw.ts'
import { openGrpc, type TestGrpc } from '../grpc-server.ts'
import { frame, frame_types, headersBlock, preface } from './http2-frames.ts'
import type { HostileClass, HostileRow, HostileRunner } from './row.ts'

const { CreateTask } = loadSchema().service
const { data, headers, priority, reset, settings, push, ping, goaway, window, continuation } =
  frame_types

const [end_stream, end_headers, ack, padded] = [1, 4, 1, 8] as const
const call_pairs: readonly (readonly [string, string])[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', CreateTask.path],
  [':authority', 'x'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
]
const block = headersBlock(call_pairs)
const message = framed(CreateTask.requestSerialize({ conv_id: '1234' }))
const bytesOf = (...bytes: number[]): Buffer => Buffer.from(bytes)
const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
const setting = (id: number, value: number): Buffer =>
  frame(settings, 0, 0, Buffer.concat([bytesOf(0, id), uint32(value)]))
const nothing = Buffer.alloc(0)
/** The head of a call that sends messages. */
const opened = (stream = 1): Buffer => frame(headers, end_headers, stream, block)
/** A call whose head is all. */
const headOf = (given: Buffer): Buffer => frame(headers, end_headers | end_stream, 1, given)
const withPairs = (...pairs: (readonly [string, string])[]): Buffer =>
  headOf(headersBlock([...call_pairs, ...pairs]))
const without = (name: string): Buffer =>
  headOf(headersBlock(call_pairs.filter(([one]) => one !== name)))
const times = (count: number, make: (n: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, n) => make(n)))

/** With the bytes behind the preface. */
const behind_preface: readonly HostileRow<Buffer>[] = [
  ['settings of a stream', 'ended', frame(settings, 0, 1, nothing)],
  ['settings of five bytes', 'ended', frame(settings, 0, 0, Buffer.alloc(5))],
  ['an acknowledgement with settings', 'ended', frame(settings, ack, 0, Buffer.alloc(6))],
  ['push neither on nor off', 'ended', setting(2, 2)],
  ['a first window over 31 bits', 'ended', setting(4, 0x80000000)],
  ['frames of one byte at most', 'ended', setting(5, 1)],
  ['frames over 24 bits', 'ended', setting(5, 0x1000000)],
  ['a setting that is not known', 'alive', setting(99, 1)],
  ['a frame over its size', 'ended', frame(data, 0, 1, Buffer.alloc(16_385))],
  ['a type that is not known', 'alive', frame(200, 255, 0x7fffffff, Buffer.alloc(9))],
  ['a ping of seven bytes', 'ended', frame(ping, 0, 0, Buffer.alloc(7))],
  ['a ping of a stream', 'ended', frame(ping, 0, 1, Buffer.alloc(8))],
  ['a farewell of a stream', 'ended', frame(goaway, 0, 1, Buffer.alloc(8))],
  ['a window grown by nothing', 'ended', frame(window, 0, 0, uint32(0))],
  ['a window of three bytes', 'ended', frame(window, 0, 0, Buffer.alloc(3))],
  ['a window over 31 bits', 'ended', frame(window, 0, 0, uint32(0x7fffffff))],
  [
    "a call's window over 31 bits",
    'RST FLOW_CONTROL_ERROR',
    Buffer.concat([opened(), frame(window, 0, 1, uint32(0x7fffffff))]),
  ],
  ['a window of a call that is not', 'ended', frame(window, 0, 1, uint32(1))],
  ['data of no call', 'ended', frame(data, 0, 0, message)],
  ['data of a call that is not', 'ended', frame(data, 0, 1, message)],
  ['a reset of no call', 'ended', frame(reset, 0, 0, uint32(8))],
  ['a reset of a call that is not', 'ended', frame(reset, 0, 1, uint32(8))],
  [
    'a reset of three bytes',
    'ended',
    Buffer.concat([opened(), frame(reset, 0, 1, Buffer.alloc(3))]),
  ],
  ['a call of the server', 'ended', opened(2)],
  ['a call without a number', 'ended', opened(0)],
  ['a call behind a later one', 'alive', Buffer.concat([opened(5), opened(3)])],
  [
    'a promise of a caller',
    'ended',
    frame(push, end_headers, 1, Buffer.concat([uint32(2), block])),
  ],
  ['a priority of four bytes', 'ended', frame(priority, 0, 1, Buffer.alloc(4))],
  [
    'padding longer than its frame',
    'ended',
    frame(headers, end_headers | padded, 1, bytesOf(200, 1)),
  ],
  ['a continuation of nothing', 'ended', frame(continuation, end_headers, 1, block)],
  [
    'a ping within a head',
    'ended',
    Buffer.concat([frame(headers, 0, 1, block), frame(ping, 0, 0, Buffer.alloc(8))]),
  ],
  [
    'a head continued by another call',
    'ended',
    Buffer.concat([frame(headers, 0, 1, block), frame(continuation, end_headers, 3, nothing)]),
  ],
  ['a header of the table that is not there', 'ended', headOf(bytesOf(0xff, 0x80, 1))],
  ['a number of the table without an end', 'ended', headOf(Buffer.alloc(40, 0xff))],
  ['header 0 of the table', 'ended', headOf(bytesOf(0x80))],
  ['a table over its size', 'ended', headOf(bytesOf(0x3f, 0xe1, 0xff, 3))],
  ['a header cut off', 'ended', headOf(block.subarray(0, -3))],
  ['Huffman that is none', 'ended', headOf(bytesOf(0, 1, 0x61, 0x84, 255, 255, 255, 255))],
  ['a name in capitals', 'RST PROTOCOL_ERROR', withPairs(['X-A', 'b'])],
  ['a name with a line feed, left out', 'answered', withPairs(['x\n', 'b'])],
  ['a value with a line feed, left out', 'answered', withPairs(['x', 'a\r\nb: c'])],
  ['a value with a NUL, left out', 'answered', withPairs(['x', 'a\0b'])],
  ['a path behind the headers', 'RST PROTOCOL_ERROR', withPairs([':path', '/x'])],
  [
    'a name of the protocol that is none',
    'RST PROTOCOL_ERROR',
    headOf(headersBlock([[':x', 'y'], ...call_pairs])),
  ],
  [
    'the status of an answer',
    'RST PROTOCOL_ERROR',
    headOf(headersBlock([[':status', '200'], ...call_pairs])),
  ],
  ['two paths', 'RST PROTOCOL_ERROR', headOf(headersBlock([[':path', '/x'], ...call_pairs]))],
  ['no path', 'RST PROTOCOL_ERROR', without(':path')],
  ['no method', 'RST PROTOCOL_ERROR', without(':method')],
  ['no scheme', 'RST PROTOCOL_ERROR', without(':scheme')],
  ['a header of the connection', 'RST PROTOCOL_ERROR', withPairs(['connection', 'close'])],
  ['chunks', 'RST PROTOCOL_ERROR', withPairs(['transfer-encoding', 'chunked'])],
  ['an upgrade', 'RST PROTOCOL_ERROR', withPairs(['upgrade', 'h2c'])],
  ['te of another kind', 'RST PROTOCOL_ERROR', withPairs(['te', 'gzip'])],
  ['a length that is none', 'RST PROTOCOL_ERROR', withPairs(['content-length', '-1'])],
  [
    'two lengths',
    'RST PROTOCOL_ERROR',
    withPairs(['content-length', '0'], ['content-length', '1']),
  ],
  [
    'more than its length',
    'RST PROTOCOL_ERROR',
    Buffer.concat([
      frame(headers, end_headers, 1, headersBlock([...call_pairs, ['content-length', '1']])),
      frame(data, end_stream, 1, message),
    ]),
  ],
  ['less than its length', 'RST PROTOCOL_ERROR', withPairs(['content-length', '9'])],
  ['data behind the end', 'ended', Buffer.concat([headOf(block), frame(data, 0, 1, message)])],
  [
    'trailers that are no end',
    'RST PROTOCOL_ERROR',
    Buffer.concat([opened(), frame(headers, end_headers, 1, headersBlock([['x', 'y']]))]),
  ],
  ['calls over the bound', 'RST REFUSED_STREAM', times(102, (n) => opened(2 * n + 1))],
  [
    'a flood of continuations',
    'ended',
    Buffer.concat([
      frame(headers, 0, 1, block),
      times(20_000, () => frame(continuation, 0, 1, nothing)),
    ]),
  ],
  [
    'a flood of large continuations',
    'ended',
    Buffer.concat([
      frame(headers, 0, 1, block),
      times(100, () =>
        frame(continuation, 0, 1, headersBlock(Array(100).fill(['x', 'y'.repeat(100)]))),
      ),
    ]),
  ],
  [
    'a header of the table many times over',
    'RST ENHANCE_YOUR_CALM',
    headOf(
      Buffer.concat([
        block,
        bytesOf(0x40, 1, 0x61, 0x7f, 0x81, 0x1e),
        Buffer.alloc(4_000, 0x62),
        Buffer.alloc(8_000, 0xbe),
      ]),
    ),
  ],
  ['a flood of settings', 'ended', times(50_000, () => frame(settings, 0, 0, nothing))],
  ['a flood of pings', 'ended', times(50_000, () => frame(ping, 0, 0, Buffer.alloc(8)))],
  [
    'a flood of resets',
    'ended',
    times(5_000, (n) => Buffer.concat([opened(2 * n + 1), frame(reset, 0, 2 * n + 1, uint32(8))])),
  ],
  [
    'a flood of priorities',
    'alive',
    times(10_000, (n) => frame(priority, 0, 2 * n + 1, bytesOf(0, 0, 0, 0, 1))),
  ],
  [
    'a flood of empty data',
    'ended',
    Buffer.concat([opened(), times(50_000, () => frame(data, 0, 1, nothing))]),
  ],
  ['a flood of windows', 'alive', times(10_000, () => frame(window, 0, 0, uint32(1)))],
  ['no message, only a head', 'answered', headOf(block)],
]

/** With what is there in the place of the preface. */
const for_preface: readonly HostileRow<string | Buffer>[] = [
  ['HTTP/1.1', 'ended', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a preface in other case', 'ended', 'PRI * HTTP/2.0\r\n\r\nsm\r\n\r\n'],
  [
    'an upgrade of HTTP/1.1',
    'ended',
    'GET / HTTP/1.1\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n',
  ],
  ['bytes of no protocol', 'ended', Buffer.alloc(64, 0xff)],
  [
    'a preface without settings',
    'ended',
    Buffer.concat([preface.subarray(0, 24), frame(ping, 0, 0, Buffer.alloc(8))]),
  ],
]

const rows: readonly HostileRow<Buffer>[] = [
  ...behind_preface.map(
    ([says, code, bytes]) => [says, code, Buffer.concat([preface, bytes])] as const,
  ),
  ...for_preface.map(([says, code, bytes]) => [says, code, Buffer.from(bytes)] as const),
]

async function open(): Promise<HostileRunner<Buffer>> {
  // A call whose connection has ended at a frame of the wrong size is under way until it does.
  const server = await openGrpc({ plain: true, limits: { drain_ms_max: 500 } })
  const honest = server.connect()
  return {
    bugs: server.bugs,
    answerTo: (bytes, _, code) => answerTo(server, bytes, code),
    honest: async () => (await honest.statusOf('CreateTask', { conv_id: '1234' })).toLowerCase(),
    close: () => server.close(),
  }
}

const errors = [
  ...['NO_ERROR', 'PROTOCOL_ERROR', 'INTERNAL_ERROR', 'FLOW_CONTROL_ERROR', 'SETTINGS_TIMEOUT'],
  ...['STREAM_CLOSED', 'FRAME_SIZE_ERROR', 'REFUSED_STREAM', 'CANCEL', 'COMPRESSION_ERROR'],
  ...['CONNECT_ERROR', 'ENHANCE_YOUR_CALM', 'INADEQUATE_SECURITY', 'HTTP_1_1_REQUIRED'],
]
const last_ping = frame(ping, 0, 0, Buffer.from('the last'))

/** What the server says first of a call or the connection; `ended` where it says nothing. */
function answerTo({ grpc }: TestGrpc, bytes: Buffer, code: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port: Number(grpc.address.split(':')[1]), host: '127.0.0.1' })
    let received = Buffer.alloc(0)
    const over = (answer: string): void => {
      resolve(answer)
      socket.destroy()
    }
    socket.on('error', () => {})
    socket.on('close', () => over('ended'))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 9 && received.length >= 9 + received.readUIntBE(0, 3)) {
        const size = 9 + received.readUIntBE(0, 3)
        const [type, flags] = [received[3], received[4] as number]
        const payload = received.subarray(9, size)
        received = received.subarray(size)
        if (type === headers) over('answered')
        if (type === goaway) over('ended')
        if (type === reset && code !== 'ended') over(`RST ${errors[payload.readUInt32BE(0)]}`)
        if (type === ping && flags === ack && payload.equals(last_ping.subarray(9))) over('alive')
      }
    })
    socket.write(bytes)
    if (code === 'alive') socket.write(last_ping)
  })
}

export const hostile_frames: HostileClass<Buffer> = { name: 'HTTP/2', rows, open }
