/**
 * The HTTP transport: posts to the signed JSON endpoint. A call is signed once; each try posts the
 * same bytes, by which a server that keeps replays recognises a repeat. The header
 * `Conveyor-Replay` of its answers says whether it does.
 *
 * A try that fails before its connection is established is marked `not_applied`; a later failure is
 * `unknown`. A probe asks /healthz over a separate connection, so that it does not wait for calls.
 */
import http from 'node:http'
import https from 'node:https'
import { urlToHttpOptions } from 'node:url'
import type { Clock } from '../core/clock.ts'
import type { BatchResult, HttpTarget } from './api.ts'
import {
  type Cancellation,
  deadlineIn,
  linkedCancellation,
  throwIfCancelled,
} from './cancellation.ts'
import { type ClientFault, clientFault, isBatchFault, isClientFault } from './faults.ts'
import {
  type HttpResponse,
  ownTimestamp,
  requestBody,
  resultsOf,
  serverBase,
  signed,
} from './http-messages.ts'
import type { RetryPolicy } from './retry.ts'
import type { SentOp } from './sent-op.ts'
import {
  for_owner,
  type OneOfSeveral,
  readPem,
  type Transport,
  window_batches,
} from './transport.ts'
import { windowed } from './window.ts'

export const sockets_max_default = 16

/** Connects with the first call. Rejects with a TypeError for an invalid target. */
export async function httpTransport(
  target: HttpTarget & { readonly url: string },
  { clock, chance }: Pick<RetryPolicy, 'clock' | 'chance'>,
  several?: OneOfSeveral,
): Promise<Transport> {
  const base = serverBase(target.url)
  if (base === undefined) {
    throw new TypeError(`url ${target.url} is no address such as http://127.0.0.1:8080`)
  }
  const user = String(target.user)
  if (!/^[1-9][0-9]{0,15}$/.test(user)) throw new TypeError('user is no number of 1 to 16 digits')
  const { secret, sign = 'path', sockets_max = sockets_max_default } = target
  if (typeof secret !== 'string' || secret === '') throw new TypeError('secret is empty')
  if (sign !== 'path' && sign !== 'hmac') throw new TypeError('sign is neither path nor hmac')
  const is_tls = base.startsWith('https:')
  const options = { keepAlive: true, maxSockets: sockets_max, timeout: idle_ms_max }
  const ca = target.ca === undefined ? {} : { ca: await readPem('ca', target.ca) }
  const newAgent = (more: http.AgentOptions): http.Agent =>
    is_tls ? new https.Agent({ ...more, ...ca }) : new http.Agent(more)
  const agent = newAgent(options)
  const { origin } = new URL(base)
  const base_path = base.slice(origin.length)
  const server = { origin, base_path, options: urlToHttpOptions(new URL(origin)) }
  const to = { server, agent, is_tls, clock, connect_ms_max: several?.connect_ms_max }
  const probing = { ...to, agent: newAgent({ maxSockets: 1 }), method: 'GET' } as const

  const newName = (): string => ownTimestamp(clock.now_ms(), chance)
  let keeps_replays = false

  const hear = (answer: HttpResponse): HttpResponse => {
    if (answer.replay !== undefined) keeps_replays = answer.replay === 'answer'
    return answer
  }

  const encode: Transport['encode'] = (ops, name = newName()) => {
    const body = requestBody(ops)
    const { path, headers: of_signature } = signed(2, { user, secret, sign }, name, body)
    const headers = several === undefined ? of_signature : { ...of_signature, ...for_owner }
    return {
      send: async (cancellation) =>
        resultsOf(hear(await request(path, { ...to, headers, body }, cancellation)), ops),
    }
  }

  return {
    name: base,
    newName,
    encode,
    // The server does not recognise a repeated create without a ref.
    keeps: (ops) =>
      keeps_replays && ops.every(({ type, ref }) => type !== 'create' || ref !== undefined),
    async *stream(source, { cancellation, timeout_ms }) {
      // One request at a time, so that batches arrive in order.
      let before: Promise<unknown> = Promise.resolve()
      const stream = linkedCancellation(cancellation)
      const sendNext = async (ops: readonly SentOp[]): Promise<BatchResult> => {
        const deadline = deadlineIn(timeout_ms, clock, stream)
        try {
          return { proc: 'ok', results: await encode(ops).send(deadline) }
        } catch (error) {
          throwIfCancelled(deadline)
          return batchFaultResult(error)
        } finally {
          deadline.dispose()
        }
      }
      const answers = windowed({
        source,
        size: window_batches,
        cancellation,
        send(ops) {
          const answer = before.then(() => sendNext(ops))
          before = answer
          return answer
        },
        abandon: () => stream.cancel(clientFault('unreachable', 'the reader left the stream')),
      })
      try {
        yield* answers
      } finally {
        stream.dispose()
      }
    },
    isConnected: () => true,
    async probe(cancellation) {
      const { status, is_standby } = hear(await request('/healthz', probing, cancellation))
      if (is_standby) throw clientFault('shutting_down', 'is a standby')
      return status < 500 ? 'ready' : 'unready'
    },
    async close() {
      agent.destroy()
      probing.agent.destroy()
    },
  }
}

/** Below the server's `idle_ms_max`, so that the client closes idle connections first. */
const idle_ms_max = 60_000
const answer_bytes_max = 256 * 1024 * 1024
const no_body = Buffer.alloc(0)

/** The answer to a refused batch; rethrows any other error. */
function batchFaultResult(error: unknown): BatchResult {
  if (!isClientFault(error) || !isBatchFault(error.code)) throw error
  return { proc: error.code, description: error.message, results: [] }
}

interface HttpRequest {
  readonly server: {
    readonly origin: string
    readonly base_path: string
    readonly options: ReturnType<typeof urlToHttpOptions>
  }
  readonly agent: http.Agent
  readonly is_tls: boolean
  readonly clock: Clock
  readonly connect_ms_max: number | undefined
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
}

function request(
  under_base: string,
  given: HttpRequest,
  cancellation: Cancellation,
): Promise<HttpResponse> {
  const { server, agent, is_tls, clock, connect_ms_max, method = 'POST', body = no_body } = given
  return new Promise((resolve, reject) => {
    let may_be_sent = false
    const onLost = (error: NodeJS.ErrnoException): void => {
      removeListener()
      reject(cancellation.reason() ?? unreachableFault(server.origin, error, may_be_sent))
    }
    const path = server.base_path + under_base
    const start = is_tls ? https.request : http.request
    const headers = {
      ...given.headers,
      'content-type': 'application/json',
      'content-length': body.length,
    }
    const call = start({ ...server.options, path, agent, method, headers }, (response) => {
      const onRead = (body: string): void => {
        removeListener()
        const { statusCode: status = 0, headers } = response
        const is_standby = headers['conveyor-role'] === 'standby'
        const { 'conveyor-replay': replay, 'retry-after': retry_after } = headers
        resolve({ status, retry_after, is_standby, replay: replay as string | undefined, body })
      }
      readBounded(response, onRead, onLost)
    })
    call.on('socket', (socket) => {
      if (!socket.connecting) may_be_sent = true
      else {
        const onLate = (): void => void call.destroy(new Error('no connection in time'))
        const cancelTimer =
          connect_ms_max === undefined
            ? undefined
            : clock.wake_at(clock.now_ms() + connect_ms_max, onLate)
        if (cancelTimer !== undefined) call.once('close', cancelTimer)
        socket.once(is_tls ? 'secureConnect' : 'connect', () => {
          cancelTimer?.()
          may_be_sent = true
        })
      }
    })
    call.on('error', onLost)
    const removeListener = cancellation.onCancel(() => call.destroy())
    call.end(body)
  })
}

/** By events, because an async iterator costs more than the rest of a short answer. */
function readBounded(
  response: http.IncomingMessage,
  onRead: (body: string) => void,
  onLost: (error: Error) => void,
): void {
  const chunks: Buffer[] = []
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    chunks.push(chunk)
    if (bytes <= answer_bytes_max) return
    response.destroy(new Error(`an answer over ${answer_bytes_max} bytes`))
  })
  response.on('end', () => {
    const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
    onRead(body.toString('utf8'))
  })
  response.on('error', onLost)
}

function unreachableFault(
  origin: string,
  cause: NodeJS.ErrnoException,
  may_be_sent: boolean,
): ClientFault {
  const why = cause.code ?? cause.message
  const text = may_be_sent ? 'broke off before the answer' : 'does not answer'
  return clientFault('unreachable', `${origin} ${text} (${why})`, {
    outcome: may_be_sent ? 'unknown' : 'not_applied',
    cause,
  })
}
