/**
 * Callers who watch how a server that drains treats their connections: such that send one request
 * after another, several at once, one by and by, one from a new connection, half of one, and such
 * that read slowly or never. They send bytes of their own, so that each knows when its last byte was
 * sent and what came back.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { signatureOf } from '../../src/codec/signature.ts'
import { systemClock } from '../../src/core/clock.ts'
import { plain } from './workload.ts'
import type { Target } from './workload-callers.ts'

/**
 * How a request ended. `closed`: the connection ended without a byte of an answer to it; `told`: so,
 * behind an answer with `Connection: close`, which says that no later request has one; `cut`: with
 * some of an answer.
 */
export type Ending = 'ok' | 'shutting_down' | 'closed' | 'told' | 'cut' | 'other'

export interface RawRequest {
  readonly caller: string
  /** Of the task that it makes; undefined for one that only reads. */
  readonly ref: string | undefined
  /** Whether its last byte was with the kernel when the signal was sent. */
  was_sent: boolean
  is_written: boolean
  ending: Ending | undefined
  answer?: string
}

/** What a caller does with the answers. */
type Reading = 'reads' | 'slowly' | 'never'

export interface RawCallers {
  readonly requests: readonly RawRequest[]
  /** Just before the signal: what is written now was sent before. */
  noteSignal(): void
  /** Resolves once no caller has anything to wait for. */
  ended(): Promise<void>
}

interface Setup {
  readonly target: Target
  readonly name: string
  /** Refs of large tasks. */
  readonly large: readonly string[]
  readonly fraction: () => number
  /** Whether one more never reads, which takes the whole time of the drain. */
  readonly never: boolean
}

/** Several answers of this make more than a connection holds. */
export const large_bytes = 100_000
export const large_count = 120
/** Requests by and by, and new connections, come so long before and behind the signal. */
export const around_ms = 40
const slow_chunk_bytes = 512 * 1024
const slow_ms = 8

export function startRawCallers({ target, name, large, fraction, never }: Setup): RawCallers {
  const requests: RawRequest[] = []
  const connections: Promise<void>[] = []
  const unread: Socket[] = []
  let is_signalled = false
  let count = 0

  function bytesOf(ops: readonly object[]): Buffer {
    const body = JSON.stringify({ ops })
    const time = String(Math.floor(systemClock.now_ms() / 1_000))
    const path = `/api/1/json/${target.user}/${time}/${signatureOf(time, target.secret, body)}`
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}`
    return Buffer.from(`${head}\r\n\r\n${body}`)
  }

  function requestOf(caller: string): { request: RawRequest; bytes: Buffer } {
    const ref = `${name}/${caller}/${count++}`
    const bytes = bytesOf([{ type: 'create', obj: 'task', conv_id: plain, ref, data: { caller } }])
    return { request: requestFor(caller, ref), bytes }
  }

  function requestFor(caller: string, ref: string | undefined): RawRequest {
    const state = { was_sent: false, is_written: false, ending: undefined }
    const request: RawRequest = { caller, ref, ...state }
    requests.push(request)
    return request
  }

  /** Of some of the large tasks at least: a shorter answer is written, and unread, at the signal. */
  function largeRequest(caller: string): { request: RawRequest; bytes: Buffer } {
    const shown = large.slice(0, Math.ceil(large.length * (0.2 + 0.8 * fraction())))
    const ops = shown.map((ref) => ({ type: 'show', obj: 'task', conv_id: plain, ref }))
    return { request: requestFor(caller, undefined), bytes: bytesOf(ops) }
  }

  /** One connection; `send` is called for each request, `next` after each answer. */
  function open(reading: Reading, use: (line: Line) => void): void {
    connections.push(runLine(target, reading, use))
  }

  const steady = (caller: string, at_once: number): void =>
    open('reads', (line) => {
      const sendAll = (): void => {
        for (let n = 0; n < at_once; n++) {
          const { request, bytes } = requestOf(caller)
          line.send(request, bytes)
        }
      }
      line.onQuiet = () => {
        if (requests.length < requests_max) sendAll()
      }
      sendAll()
    })
  const requests_max = 4_000
  for (let n = 0; n < 3; n++) steady('steady', 1)
  steady('pipelined', 4)
  /** In the middle of their sleep the signal is expected. */
  const later = (caller: string, opens_late: boolean): void => {
    const at_ms = fraction() * 2 * around_ms
    const begin = (line: Line): void => {
      const { request, bytes } = requestOf(caller)
      line.send(request, bytes)
    }
    if (opens_late) connections.push(sleep(at_ms).then(() => runLine(target, 'reads', begin)))
    else open('reads', (line) => void sleep(at_ms).then(() => begin(line)))
  }
  for (let n = 0; n < 12; n++) later('by and by', false)
  for (let n = 0; n < 6; n++) later('newcomer', true)
  for (let n = 0; n < 2; n++) {
    open('reads', (line) => {
      const { request, bytes } = requestOf('in halves')
      const half = bytes.length >> 1
      line.write(bytes.subarray(0, half))
      void sleep(fraction() * 2 * around_ms).then(() => line.send(request, bytes.subarray(half)))
    })
  }
  const slow: Reading[] = ['slowly', 'slowly', 'slowly']
  for (const reading of never ? [...slow, 'never' as const] : slow) {
    open(reading, (line) => {
      const { request, bytes } = largeRequest(reading)
      line.send(request, bytes)
      if (reading === 'never') unread.push(line.socket)
    })
  }

  return {
    requests,
    noteSignal() {
      is_signalled = true
      for (const request of requests) request.was_sent = request.is_written
    },
    async ended() {
      if (!is_signalled) throw new Error('no signal')
      // Who does not read does not see the end either.
      for (const socket of unread) socket.destroy()
      await Promise.all(connections)
    },
  }
}

interface Line {
  readonly socket: Socket
  send(request: RawRequest, bytes: Buffer): void
  write(bytes: Buffer): void
  /** Called once all that was sent has its answer. */
  onQuiet: () => void
}

/** Resolves once the connection has ended. */
function runLine({ url }: Target, reading: Reading, use: (line: Line) => void): Promise<void> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket: Socket = connect({ host: hostname, port: Number(port) })
    const open: RawRequest[] = []
    let received: Buffer = Buffer.alloc(0)
    let is_last = false
    const line: Line = {
      socket,
      onQuiet() {},
      send(request, bytes) {
        open.push(request)
        if (socket.destroyed) return over()
        socket.write(bytes, (error) => {
          if (!error) request.is_written = true
        })
      },
      write: (bytes) => void socket.write(bytes),
    }
    function over(): void {
      for (const [at, request] of open.splice(0).entries()) {
        const unanswered = is_last ? 'told' : 'closed'
        request.ending = at === 0 && received.length > 0 ? 'cut' : unanswered
      }
      socket.destroy()
      resolve()
    }
    socket.on('connect', () => {
      use(line)
      if (reading === 'never') socket.pause()
    })
    socket.on('error', () => {})
    socket.on('end', over)
    socket.on('close', over)
    let unread_bytes = 0
    socket.on('data', (chunk: Buffer) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
      for (let taken = takeAnswer(received); taken !== undefined; taken = takeAnswer(received)) {
        received = received.subarray(taken.bytes)
        is_last = taken.is_last
        const request = open.shift()
        if (request !== undefined) {
          request.answer = taken.body.slice(0, 200)
          request.ending = endingOf(taken.body)
        }
      }
      if (open.length === 0 && received.length === 0) line.onQuiet()
      unread_bytes += chunk.length
      if (reading !== 'slowly' || unread_bytes < slow_chunk_bytes) return
      unread_bytes = 0
      socket.pause()
      setTimeout(() => socket.resume(), slow_ms)
    })
  })
}

function endingOf(body: string): Ending {
  if (body.startsWith('{"request_proc":"ok"')) return 'ok'
  return body.startsWith('{"request_proc":"shutting_down"') ? 'shutting_down' : 'other'
}

function takeAnswer(received: Buffer) {
  const end = received.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const head = received.toString('latin1', 0, end)
  const bytes = end + 4 + Number(/content-length: ([0-9]+)/i.exec(head)?.[1])
  if (!(received.length >= bytes)) return undefined
  const is_last = /^connection: close/im.test(head)
  return { body: received.toString('utf8', end + 4, bytes), bytes, is_last }
}
