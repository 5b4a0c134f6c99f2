/**
 * The load client of HTTP cells. All requests are serialised and signed before the clock starts.
 *
 * `run` is a closed loop: each connection sends its next request when the last one is answered.
 * `runPaced` is an open loop: requests are due at a fixed rate, whether earlier ones are answered or
 * not. A timer sends the due requests every millisecond, so they come in small groups; a request that
 * finds no free connection waits for one, and its latency includes the wait.
 */
import { signatureOf } from '../../src/codec/signature.ts'
import { serveCalls } from './child.ts'
import { type Connection, connectTo, type Listener } from './http-connection.ts'
import type { PrepareOptions } from './load.ts'
import type { Slot } from './statistics.ts'
import { type Span, type Stopwatch, spanSeconds, startStopwatch } from './stopwatch.ts'
import { ascendingSource, opOf, opSource, user } from './workload.ts'

export type HttpClientCalls = typeof calls

interface SendOptions extends Span {
  readonly port: number
  readonly callers: number
  readonly ops: number
}

let prepared: Buffer[] = []

const calls = {
  prepare({
    verb,
    ops,
    requests,
    tasks,
    refs,
    secret,
    first,
  }: PrepareOptions & { readonly secret: string }): void {
    const source = first === undefined ? opSource(tasks, refs) : ascendingSource(first)
    const timestamp = String(Math.floor(Date.now() / 1000))
    prepared = Array.from({ length: requests }, () => {
      const body = JSON.stringify({ ops: source.take(verb, ops).map((n) => opOf(verb, n, refs)) })
      const path = `/api/1/json/${user}/${timestamp}/${signatureOf(timestamp, secret, body)}`
      const head = `POST ${path} HTTP/1.1\r\nHost: bench\r\nContent-Length: ${body.length}\r\n\r\n`
      return Buffer.from(head + body, 'latin1')
    })
    globalThis.gc?.()
  },

  /** Sends the prepared requests until the time is up or all are sent; waits for every answer. */
  run(options: SendOptions): Promise<Slot> {
    let next = 0
    const sent_ms = new Map<Connection, number>()
    return sendOver(options, {
      begin(connections, watch, start_ms, finish) {
        const sendNext = (connection: Connection, now_ms: number): void => {
          const request = watch.isOver(now_ms) ? undefined : prepared[next++]
          if (request === undefined) {
            sent_ms.delete(connection)
            if (sent_ms.size === 0) finish()
            return
          }
          sent_ms.set(connection, now_ms)
          connection.send(request)
        }
        for (const connection of connections) sent_ms.set(connection, start_ms)
        for (const connection of connections) sendNext(connection, performance.now())
        return (connection, now_ms) => {
          watch.record(sent_ms.get(connection) as number, now_ms)
          sendNext(connection, now_ms)
        }
      },
    })
  },

  /** Sends `per_s` requests a second until the time is up; waits for every answer. */
  runPaced({ per_s, ...options }: SendOptions & { readonly per_s: number }): Promise<Slot> {
    const requests = Math.min(prepared.length, Math.floor(per_s * spanSeconds(options)))
    return sendOver(options, {
      begin(connections, watch, start_ms, finish) {
        const free = [...connections]
        const due_ms = new Map<Connection, number>()
        const waiting: number[] = []
        let due_so_far = 0
        let sent = 0
        const sendWaiting = (): void => {
          while (waiting.length > 0 && free.length > 0) {
            const connection = free.pop() as Connection
            due_ms.set(connection, waiting.shift() as number)
            connection.send(prepared[sent++] as Buffer)
          }
        }
        const ticks = setInterval(() => {
          const now_ms = performance.now()
          const due = Math.min(requests, Math.floor(((now_ms - start_ms) / 1000) * per_s))
          for (; due_so_far < due; due_so_far++) waiting.push(now_ms)
          sendWaiting()
          if (due_so_far === requests) clearInterval(ticks)
        }, 1)
        return (connection, now_ms) => {
          watch.record(due_ms.get(connection) as number, now_ms)
          free.push(connection)
          sendWaiting()
          if (sent === requests && free.length === connections.length) finish()
        }
      },
    })
  },
}

serveCalls(calls)

interface ArrivalPattern {
  /** Sends the first requests; returns a callback for each answer. Calls `finish` after the last. */
  begin(
    connections: readonly Connection[],
    watch: Stopwatch,
    start_ms: number,
    finish: () => void,
  ): (connection: Connection, now_ms: number) => void
}

/** Opens new connections for each slot. */
async function sendOver(options: SendOptions, arrivals: ArrivalPattern): Promise<Slot> {
  const { port, callers, ops } = options
  const expected = { ops, good_bytes: -1 }
  let onAnswer = (_connection: Connection, _now_ms: number): void => {}
  let finish = (): void => {}
  let fail = (_error: unknown): void => {}
  const end = new Promise<void>((resolve, reject) => {
    finish = resolve
    fail = reject
  })
  const listener: Listener = {
    onAnswer: (connection) => onAnswer(connection, performance.now()),
    onError: (error) => fail(error),
  }
  const connections = await Promise.all(
    Array.from({ length: callers }, () => connectTo(port, expected, listener)),
  )
  try {
    const start_ms = performance.now()
    const watch = startStopwatch(options, start_ms)
    onAnswer = arrivals.begin(connections, watch, start_ms, finish)
    await end
    return watch.slot(ops)
  } finally {
    for (const connection of connections) connection.destroy()
  }
}
