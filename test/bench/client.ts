/**
 * The load client of the HTTP cells: raw sockets, kept alive, one request under way on each. All
 * bytes are made and signed before the clock starts; while it runs, an answer costs one look at its
 * length.
 *
 * The first answer is read whole and must be all `ok`. Since refs and ids have one length, the good
 * answers of a slot have one too: what is as long counts as good, and any other is read whole
 * again.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { signatureOf } from '../../src/bytes/signature.ts'
import type { Verb } from './cells.ts'
import { answerCalls } from './child.ts'
import { type Slot, slotOf } from './samples.ts'
import { type OpSource, opOf, opSource, user } from './work.ts'

export type ClientCalls = typeof calls

interface Preparing {
  readonly verb: Verb
  readonly ops: number
  /** How many requests to sign; no two are alike. */
  readonly requests: number
  readonly tasks: number
  readonly secret: string
}

interface Sending {
  readonly port: number
  readonly callers: number
  readonly ops: number
  readonly slot_s: number
}

const sources = new Map<number, OpSource>()
let prepared: Buffer[] = []

const calls = {
  prepare({ verb, ops, requests, tasks, secret }: Preparing): void {
    const source = sources.get(tasks) ?? opSource(tasks)
    sources.set(tasks, source)
    const timestamp = String(Math.floor(Date.now() / 1000))
    prepared = Array.from({ length: requests }, () => {
      const body = JSON.stringify({ ops: source.take(verb, ops).map((n) => opOf(verb, n)) })
      const path = `/api/1/json/${user}/${timestamp}/${signatureOf(timestamp, secret, body)}`
      const head = `POST ${path} HTTP/1.1\r\nHost: bench\r\nContent-Length: ${body.length}\r\n\r\n`
      return Buffer.from(head + body, 'latin1')
    })
    globalThis.gc?.()
  },

  /** Sends what was prepared until the time is up or all is sent, and waits for every answer. */
  async run({ port, callers, ops, slot_s }: Sending): Promise<Slot> {
    const sockets = await Promise.all(Array.from({ length: callers }, () => connected(port)))
    const latencies_ms: number[] = []
    const good = { bytes: 0 }
    const start_ms = performance.now()
    const until_ms = start_ms + slot_s * 1000
    let next = 0
    const take = (now_ms: number): Buffer | undefined =>
      now_ms < until_ms ? prepared[next++] : undefined
    const over = sockets.map((socket) => keepSending(socket, take, latencies_ms, good, ops))
    try {
      await Promise.all(over)
      return slotOf(latencies_ms, ops, (performance.now() - start_ms) / 1000)
    } finally {
      for (const socket of sockets) socket.destroy()
    }
  },
}

answerCalls(calls)

/** One caller: resolves when `take` has nothing more and the last answer is in. */
function keepSending(
  socket: Socket,
  take: (now_ms: number) => Buffer | undefined,
  latencies_ms: number[],
  good: { bytes: number },
  ops: number,
): Promise<void> {
  let sent_ms = 0
  let chunks: Buffer[] = []
  let got_bytes = 0
  let whole_bytes = 0

  const onChunk = (chunk: Buffer): void => {
    if (got_bytes === 0) whole_bytes = chunk.length === good.bytes ? good.bytes : wholeBytes(chunk)
    got_bytes += chunk.length
    chunks.push(chunk)
    if (got_bytes < whole_bytes) return
    if (got_bytes !== good.bytes) {
      checkAnswer(Buffer.concat(chunks), whole_bytes, ops)
      good.bytes = whole_bytes
    }
    chunks = []
    got_bytes = 0
  }
  return new Promise((resolve, reject) => {
    const sendNext = (now_ms: number): void => {
      const request = take(now_ms)
      if (request === undefined) {
        resolve()
        return
      }
      sent_ms = now_ms
      socket.write(request)
    }
    socket.on('error', reject)
    socket.on('end', () => reject(new Error('the server closed a connection')))
    socket.on('data', (chunk) => {
      try {
        onChunk(chunk)
      } catch (error) {
        reject(error)
        return
      }
      if (got_bytes > 0) return
      const now_ms = performance.now()
      latencies_ms.push(now_ms - sent_ms)
      sendNext(now_ms)
    })
    sendNext(performance.now())
  })
}

/** The whole length of the answer that begins with `chunk`. */
function wholeBytes(chunk: Buffer): number {
  const head_end = chunk.indexOf('\r\n\r\n')
  const [, length] = /content-length: (\d+)/i.exec(chunk.toString('latin1', 0, head_end)) ?? []
  if (head_end === -1 || length === undefined) throw new Error(`no head of an answer: ${chunk}`)
  return head_end + 4 + Number(length)
}

function checkAnswer(answer: Buffer, whole_bytes: number, ops: number): void {
  const text = answer.toString()
  const oks = text.split('"proc":"ok"').length - 1
  const is_good = text.startsWith('HTTP/1.1 200 ') && text.includes('{"request_proc":"ok"')
  if (is_good && oks === ops && answer.length === whole_bytes) return
  throw new Error(`not all ok: ${text.slice(0, 2_000)}`)
}

async function connected(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  await once(socket, 'connect')
  return socket
}
