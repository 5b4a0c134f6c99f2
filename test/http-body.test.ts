/**
 * Reading request bodies: the bytes arrive unchanged, and unverified bytes are bounded and counted.
 */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { limitsWith } from '../src/core/limits.ts'
import {
  abortReading,
  type BodyReading,
  hasCapacity,
  newUnverifiedBodies,
  readBody,
  type UnverifiedBodies,
} from '../src/server/http/body.ts'
import { arrived, connectRaw } from './support/http-raw.ts'
import { codeOf, createBody, openHttp, type TestHttp } from './support/http-server.ts'

const limits = limitsWith({
  body_bytes_max: 1_000,
  unverified_bytes_max: 1_500,
  large_body_bytes: 400,
  large_bodies_max: 1,
})

function arriving(address = '10.0.0.1'): PassThrough & IncomingMessage {
  const socket = { remoteAddress: address }
  return Object.assign(new PassThrough(), { socket }) as unknown as PassThrough & IncomingMessage
}

/** A reading and its outcome. */
function reading(
  request: IncomingMessage,
  announced_bytes: number,
  held: UnverifiedBodies,
): { started: BodyReading; body: Promise<Buffer> } {
  let started = undefined as unknown as BodyReading
  const body = new Promise<Buffer>((resolve, reject) => {
    started = readBody(request, announced_bytes, held, (whole, reason) => {
      if (whole === undefined) reject(reason as Error)
      else resolve(whole)
    })
  })
  return { started, body }
}

const pieces: [string, number[], number][] = [
  ['nothing', [], 0],
  ['one piece', [10], 10],
  ['pieces of one byte', Array(300).fill(1), 300],
  ['pieces of one byte, unannounced', Array(300).fill(1), 0],
  ['uneven pieces', [1, 399, 2, 598], 1_000],
  ['uneven pieces, unannounced', [399, 1, 598, 2], 0],
]

describe('readBody', () => {
  for (const [says, sizes, announced] of pieces) {
    test(says, async () => {
      const held = newUnverifiedBodies(limits)
      const request = arriving()
      const { body } = reading(request, announced, held)
      const sent = sizes.map((size, at) => Buffer.alloc(size, at % 251))
      for (const piece of sent) request.write(piece)
      request.end()
      assert.deepEqual(await body, Buffer.concat(sent))
      assert.equal(held.bytes, 0)
      assert.equal(held.large.size, 0)
    })
  }

  test('the counted bytes follow those that have arrived, at most twice as many', async () => {
    const held = newUnverifiedBodies(limits)
    const request = arriving()
    const { started, body } = reading(request, 900, held)
    assert.equal(held.bytes, 0, 'nothing for an announcement')
    for (let bytes = 100; bytes <= 800; bytes += 100) {
      request.write(Buffer.alloc(100))
      await new Promise((resolve) => setImmediate(resolve))
      assert.ok(held.bytes >= bytes && held.bytes <= Math.min(2 * bytes, 900), `${held.bytes}`)
    }
    abortReading(started, new Error('gone'))
    await assert.rejects(body, /gone/)
    assert.deepEqual([held.bytes, held.large.size], [0, 0])
  })

  const refused: [string, string, (held: ReturnType<typeof newUnverifiedBodies>) => number[]][] = [
    ['over the limit', 'body_too_large', () => [600, 401]],
    [
      'over what all may hold',
      'overloaded',
      (held) => {
        held.bytes = 1_300
        return [100, 101]
      },
    ],
    [
      'one more large one of this address',
      'overloaded',
      (held) => {
        held.large.set('10.0.0.1', 1)
        return [300, 101]
      },
    ],
  ]
  for (const [says, code, sizesGiven] of refused) {
    test(`refused: ${says}`, async () => {
      const held = newUnverifiedBodies(limits)
      const sizes = sizesGiven(held)
      const before = [held.bytes, held.large.get('10.0.0.1')]
      const request = arriving()
      const { body } = reading(request, 0, held)
      for (const size of sizes) request.write(Buffer.alloc(size))
      await assert.rejects(body, { code })
      assert.deepEqual([held.bytes, held.large.get('10.0.0.1')], before)
      request.end(Buffer.alloc(5_000))
      await new Promise((resolve) => setImmediate(resolve))
      assert.deepEqual([held.bytes, held.large.get('10.0.0.1')], before)
    })
  }

  test('capacity is checked before a byte is read', () => {
    const held = newUnverifiedBodies(limits)
    held.bytes = 700
    held.large.set('10.0.0.1', 1)
    assert.equal(hasCapacity(held, 400, arriving('10.0.0.1')), true)
    assert.equal(hasCapacity(held, 401, arriving('10.0.0.1')), false)
    assert.equal(hasCapacity(held, 401, arriving('10.0.0.2')), true)
    assert.equal(hasCapacity(held, 801, arriving('10.0.0.2')), false)
  })
})

describe('unverified bodies over sockets', () => {
  let server: TestHttp
  before(async () => {
    const few = { body_bytes_max: 100_000, unverified_bytes_max: 100_000, large_bodies_max: 1_000 }
    server = await openHttp({ limits: few })
  })
  after(() => server.close())

  test('over the total bound: refused before and during arrival, served again afterwards', async () => {
    const post = (length: number): string =>
      `POST ${server.path('')} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`
    const holder = await connectRaw(server.port)
    const grower = await connectRaw(server.port)
    grower.send(`${post(60_000)}${'x'.repeat(20_000)}`)
    holder.send(`${post(70_000)}${'x'.repeat(60_000)}`)
    await arrived()
    const early = await connectRaw(server.port)
    early.send(post(60_000))
    assert.equal(codeOf(await early.answer()), 'overloaded')
    grower.send('x'.repeat(39_000))
    assert.equal(codeOf(await grower.answer()), 'overloaded')
    assert.equal(codeOf(await server.send(createBody('small'))), 'ok')
    holder.socket.resetAndDestroy()
    await arrived()
    const large = createBody('large', { text: 'x'.repeat(90_000) })
    assert.equal(codeOf(await server.send(large)), 'ok')
    for (const { socket } of [early, grower]) socket.destroy()
  })

  test('many refused large bodies leave memory flat', async () => {
    const large = Buffer.alloc(90_000, 'x')
    const wrong = server.post(large, { secret: 'wrong' })
    const too_large = Buffer.from(
      `POST ${server.path('')} HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n${'x'.repeat(90_000)}`,
    )
    const flood = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at++) {
        const client = await connectRaw(server.port)
        client.send(at % 2 ? wrong : too_large)
        assert.equal(codeOf(await client.answer()), at % 2 ? 'bad_signature' : 'body_too_large')
        client.socket.destroy()
      }
    }
    const memory = (): number => {
      const { heapUsed, external } = process.memoryUsage()
      return heapUsed + external
    }
    await flood(100)
    const settled_bytes = memory()
    await flood(600)
    assert.ok(memory() < settled_bytes + 40_000_000, `${settled_bytes} to ${memory()}`)
  })
})
