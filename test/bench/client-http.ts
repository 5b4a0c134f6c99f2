/**
 * The load client of the HTTP cells. All bytes are made and signed before the clock starts.
 *
 * `run` is a closed loop: each connection sends its next request when its last is answered.
 * `runPaced` is an open one: requests fall due at a rate, whatever the server does. It looks at the
 * clock each millisecond and sends what has fallen due, so they come in small groups; one that
 * finds no free connection waits for it, and its waiting counts.
 */
import { signatureOf } from '../../src/codec/signature.ts'
import type { Refs, WriteVerb } from './cells.ts'
import { serveCalls } from './child.ts'
import { type Connection, connectTo, type Listener } from './http-connection.ts'
import type { Slot } from './statistics.ts'
import { type Span, type Stopwatch, spanSeconds, startStopwatch } from './stopwatch.ts'
import { opOf, opSource, user } from './workload.ts'

export type HttpClientCalls = typeof calls

interface Preparing {
  readonly verb: WriteVerb
  readonly ops: number
  /** How many requests to sign; no two are alike. */
  readonly requests: number
  readonly tasks: number
  readonly refs: Refs
  readonly secret: string
}

interface Sending extends Span {
  readonly port: number
  readonly callers: number
  readonly ops: number
}

let prepared: Buffer[] = []

const calls = {
  prepare({ verb, ops, requests, tasks, refs, secret }: Preparing): void {
    const source = opSource(tasks, refs)
    const timestamp = String(Math.floor(Date.now() / 1000))
    prepared = Array.from({ length: requests }, () => {
      const body = JSON.stringify({ ops: source.take(verb, ops).map((n) => opOf(verb, n, refs)) })
      const path = `/api/1/json/${user}/${timestamp}/${signatureOf(timestamp, secret, body)}`
      const head = `POST ${path} HTTP/1.1\r\nHost: bench\r\nContent-Length: ${body.length}\r\n\r\n`
      return Buffer.from(head + body, 'latin1')
    })
    globalThis.gc?.()
  },

  /** Sends what was prepared until the time is up or all is sent, and waits for every answer. */
  run(sending: Sending): Promise<Slot> {
    let next = 0
    const sent_ms = new Map<Connection, number>()
    return sendOver(sending, {
      begin(connections, watch, start_ms, over) {
        const sendNext = (connection: Connection, now_ms: number): void => {
          const request = watch.isOver(now_ms) ? undefined : prepared[next++]
          if (request === undefined) {
            sent_ms.delete(connection)
            if (sent_ms.size === 0) over()
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

  /** Sends `per_s` requests a second until the time is up, and waits for every answer. */
  runPaced({ per_s, ...sending }: Sending & { readonly per_s: number }): Promise<Slot> {
    const requests = Math.min(prepared.length, Math.floor(per_s * spanSeconds(sending)))
    return sendOver(sending, {
      begin(connections, watch, start_ms, over) {
        const free = [...connections]
        const due_ms = new Map<Connection, number>()
        const waiting: number[] = []
        let fallen_due = 0
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
          for (; fallen_due < due; fallen_due++) waiting.push(now_ms)
          sendWaiting()
          if (fallen_due === requests) clearInterval(ticks)
        }, 1)
        return (connection, now_ms) => {
          watch.record(due_ms.get(connection) as number, now_ms)
          free.push(connection)
          sendWaiting()
          if (sent === requests && free.length === connections.length) over()
        }
      },
    })
  },
}

serveCalls(calls)

interface ArrivalPattern {
  /** Sends the first requests. What it answers is called with each answer. */
  begin(
    connections: readonly Connection[],
    watch: Stopwatch,
    start_ms: number,
    over: () => void,
  ): (connection: Connection, now_ms: number) => void
}

/** Connections of its own for each slot. */
async function sendOver(sending: Sending, pattern: ArrivalPattern): Promise<Slot> {
  const { port, callers, ops } = sending
  const expected = { ops, good_bytes: -1 }
  let onAnswer = (_connection: Connection, _now_ms: number): void => {}
  let over = (): void => {}
  let fail = (_error: unknown): void => {}
  const end = new Promise<void>((resolve, reject) => {
    over = resolve
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
    const watch = startStopwatch(sending, start_ms)
    onAnswer = pattern.begin(connections, watch, start_ms, over)
    await end
    return watch.slot(ops)
  } finally {
    for (const connection of connections) connection.destroy()
  }
}
