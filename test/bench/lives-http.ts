/**
 * The load client of whole lives over HTTP: each of the callers has a connection, with one op in a
 * request. All requests are serialised and signed before the clock starts: the creates to come, and a
 * callback of each task that waits or will.
 */
import { signatureOf } from '../../src/codec/signature.ts'
import type { WriteVerb } from './cells.ts'
import { serveCalls } from './child.ts'
import { connectTo } from './http-connection.ts'
import { type LifeOrder, type LivesLoad, lifeOrder, livesLoop } from './life-order.ts'
import type { Endpoint } from './load-clients.ts'
import type { Slot } from './statistics.ts'
import { opOf, user } from './workload.ts'

export type HttpLivesCalls = typeof calls

/** Of one server: what waits there, and the requests that are not sent yet. */
interface Prepared extends Endpoint {
  readonly order: LifeOrder
  readonly requests: Readonly<Record<WriteVerb, Map<number, Buffer>>>
  readonly timestamp: string
}

let prepared: Prepared | undefined
let made = 0

const calls = {
  /** Begins with a server at which so many tasks wait, under the numbers from 0 on. */
  begin({ port, secret, tasks }: Endpoint & { readonly tasks: number }): void {
    const timestamp = String(Math.floor(Date.now() / 1_000))
    const requests = { create: new Map(), modify: new Map() }
    prepared = { port, secret, order: lifeOrder(tasks), requests, timestamp }
    for (let n = 0; n < tasks; n++) prepare('modify', n)
    made = tasks
  },

  prepare({ lives }: { readonly lives: number }): void {
    const { requests } = prepared as Prepared
    for (let left = lives - requests.create.size; left > 0; left--) {
      prepare('create', made)
      prepare('modify', made++)
    }
    globalThis.gc?.()
  },

  async run(load: LivesLoad): Promise<Slot> {
    const { port, order, requests } = prepared as Prepared
    const sequences = await Promise.all(
      Array.from({ length: load.callers }, () => openSequence(port)),
    )
    try {
      return await livesLoop(order, load, async (verb, n) => {
        const request = requests[verb].get(n)
        if (request === undefined) throw new Error('no more requests are prepared')
        requests[verb].delete(n)
        const sequence = sequences.pop() as Sequence
        await sequence.send(verb, request)
        sequences.push(sequence)
      })
    } finally {
      for (const sequence of sequences) sequence.close()
    }
  },
}

serveCalls(calls)

function prepare(verb: WriteVerb, n: number): void {
  const { secret, timestamp, requests } = prepared as Prepared
  const body = JSON.stringify({ ops: [opOf(verb, n, 'random')] })
  const path = `/api/1/json/${user}/${timestamp}/${signatureOf(timestamp, secret, body)}`
  const head = `POST ${path} HTTP/1.1\r\nHost: bench\r\nContent-Length: ${body.length}\r\n\r\n`
  requests[verb].set(n, Buffer.from(head + body, 'latin1'))
}

/** A connection with one request in flight. */
interface Sequence {
  send(verb: WriteVerb, request: Buffer): Promise<void>
  close(): void
}

/** Good answers of one verb have one length. */
const good_bytes: Record<WriteVerb, number> = { create: -1, modify: -1 }

async function openSequence(port: number): Promise<Sequence> {
  const expected = { ops: 1, good_bytes: -1 }
  let onAnswer = (): void => {}
  let onError = (_error: unknown): void => {}
  const connection = await connectTo(port, expected, {
    onAnswer: () => onAnswer(),
    onError: (error) => onError(error),
  })
  return {
    send(verb, request) {
      expected.good_bytes = good_bytes[verb]
      connection.send(request)
      return new Promise((resolve, reject) => {
        onError = reject
        onAnswer = () => {
          good_bytes[verb] = expected.good_bytes
          resolve()
        }
      })
    },
    close: () => connection.destroy(),
  }
}
