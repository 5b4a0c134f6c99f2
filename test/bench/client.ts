/**
 * The load client of the HTTP cells: raw sockets, kept alive, one request under way on each. All bytes
 * are made and signed before the clock starts; while it runs, an answer costs one look at its length.
 *
 * The first answer of a cell is read whole and must be all `ok`. Since refs and ids have one length,
 * every good answer of the cell then is as long as that one; another length ends the run with the
 * answer shown.
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
    try {
      return await new Promise((resolve, reject) => {
        send(sockets, slot_s, ops, resolve, reject)
      })
    } finally {
      for (const socket of sockets) socket.destroy()
    }
  },
}

answerCalls(calls)

function send(
  sockets: readonly Socket[],
  slot_s: number,
  ops: number,
  resolve: (slot: Slot) => void,
  reject: (error: Error) => void,
): void {
  const latencies_ms: number[] = []
  let good_bytes = 0
  let next = 0
  let busy = 0
  const start_ms = performance.now()
  const until_ms = start_ms + slot_s * 1000

  /** The whole length of an answer that begins with `chunk`. */
  const lengthOf = (chunk: Buffer): number => {
    if (chunk.length === good_bytes) return good_bytes
    const head_end = chunk.indexOf('\r\n\r\n')
    const [, length] = /content-length: (\d+)/i.exec(chunk.latin1Slice(0, head_end)) ?? []
    if (head_end === -1 || length === undefined) throw new Error(`no head: ${chunk}`)
    return head_end + 4 + Number(length)
  }
  const check = (answer: Buffer): void => {
    const [head, body] = answer.toString().split('\r\n\r\n') as [string, string]
    const oks = body.split('"proc":"ok"').length - 1
    if (!head.startsWith('HTTP/1.1 200 ') || oks !== ops || !body.startsWith('{"request_proc":"ok"')) {
      throw new Error(`not all ok: ${answer.toString().slice(0, 2_000)}`)
    }
    good_bytes = answer.length
  }

  for (const socket of sockets) {
    let sent_ms = 0
    let got: Buffer[] = []
    let got_bytes = 0
    let whole_bytes = 0
    const sendNext = (now_ms: number): void => {
      const request = prepared[next]
      if (request === undefined || now_ms >= until_ms) {
        if (--busy === 0) resolve(slotOf(latencies_ms, ops, (now_ms - start_ms) / 1000))
        return
      }
      next++
      sent_ms = now_ms
      socket.write(request)
    }
    socket.on('error', reject)
    socket.on('end', () => reject(new Error('the server closed a connection')))
    socket.on('data', (chunk) => {
      try {
        if (got_bytes === 0) whole_bytes = lengthOf(chunk)
        got_bytes += chunk.length
        if (whole_bytes !== good_bytes) got.push(chunk)
        if (got_bytes < whole_bytes) return
        if (whole_bytes !== good_bytes) check(Buffer.concat(got))
        if (got_bytes > whole_bytes) throw new Error('more bytes than one answer')
        got = []
        got_bytes = 0
        const now_ms = performance.now()
        latencies_ms.push(now_ms - sent_ms)
        sendNext(now_ms)
      } catch (error) {
        reject(error as Error)
      }
    })
    busy++
  }
  for (const socket of sockets) socket.emit('ready-to-send')
}

async function connected(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  await once(socket, 'connect')
  return socket
}
