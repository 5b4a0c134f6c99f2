/** What a call keeps of what comes in: no more than came at once, whatever it waits for. */
import assert from 'node:assert/strict'
import type { ServerHttp2Stream } from 'node:http2'
import { PassThrough } from 'node:stream'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { openInbox } from '../src/doors/grpc/inbox.ts'
import { newUnframe } from '../src/doors/grpc/unframe.ts'
import { framed } from './support/grpc-raw.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function packed(text: string): Buffer {
  const bytes = framed(gzipSync(text))
  bytes.writeUInt8(1, 0)
  return bytes
}

describe('an inbox', () => {
  const open = (encoding: string) => {
    const stream = new PassThrough()
    const told: string[] = []
    const inbox = openInbox(
      stream as unknown as ServerHttp2Stream,
      { encoding, bytes_max: 1_000, read: String },
      {
        onMessage: (message) => void told.push(message),
        onEnd: () => void told.push('end'),
        onFail: ({ details }) => void told.push(String(details)),
      },
    )
    return { stream, told, inbox }
  }

  test('stands while a message is inflated', async () => {
    const { stream, told, inbox } = open('gzip')
    inbox.ask()
    stream.write(packed('one'))
    while (!stream.isPaused()) await turn()
    assert.deepEqual(told, [])
    stream.write(packed('two'))
    while (told.length === 0) await turn()
    assert.deepEqual(told, ['one'])
    inbox.ask()
    while (told.length === 1) await turn()
    assert.deepEqual(told, ['one', 'two'])
  })

  test('hands on nothing once it was dropped, be it inflated then, and takes what comes', async () => {
    const { stream, told, inbox } = open('gzip')
    inbox.ask()
    stream.write(packed('one'))
    while (!stream.isPaused()) await turn()
    inbox.drop()
    for (let n = 0; n < 100; n++) stream.write(Buffer.alloc(10_000))
    stream.end()
    while (!stream.readableEnded) await turn()
    assert.deepEqual(told, [])
  })
})

/** [bytes of a message, bytes of each chunk] */
const cuts = [
  [0, 1],
  [1, 1],
  [9_000, 1],
  [9_000, 3],
  [20_000, 4_095],
  [20_000, 4_096],
  [100_000, 16_384],
] as const

for (const [message_bytes, chunk_bytes] of cuts) {
  test(`${message_bytes} bytes in chunks of ${chunk_bytes} come whole`, () => {
    const unframe = newUnframe(message_bytes)
    const message = Buffer.from(Array.from({ length: message_bytes }, (_, n) => n % 251))
    const bytes = Buffer.concat([framed(message), framed(message)])
    const found: Buffer[] = []
    for (let at = 0; at < bytes.length; at += chunk_bytes) {
      const frames = unframe(bytes.subarray(at, at + chunk_bytes))
      found.push(...frames.map((frame) => frame.message))
    }
    assert.deepEqual(found, [message, message])
  })
}
