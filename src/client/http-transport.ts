/**
 * The signed JSON endpoint as a transport. A call is signed once, when it is made ready, and each
 * try posts the same bytes to the same path, so that a server which remembers requests knows a
 * repeat for one.
 *
 * Connections are kept and bounded. A try that failed before its connection stood has certainly not
 * been applied; one that failed later may have been.
 */
import http from 'node:http'
import https from 'node:https'
import { signatureOf } from '../codec/signature.ts'
import type { Clock } from '../core/clock.ts'
import type { BatchResult, HttpTarget } from './api.ts'
import {
  type Cancellation,
  deadlineIn,
  linkedCancellation,
  throwIfCancelled,
} from './cancellation.ts'
import { type ClientFault, clientFault, isBatchFault, isClientFault } from './faults.ts'
import { type HttpResponse, resultsOf } from './http-messages.ts'
import { readPem } from './pem.ts'
import type { SentOp } from './sent-op.ts'
import { type Transport, window_batches } from './transport.ts'
import { windowed } from './window.ts'

export const sockets_max_default = 16

/** Rejects with a TypeError for a target that makes no sense. Connects with the first call. */
export async function httpTransport(target: HttpTarget, clock: Clock): Promise<Transport> {
  const base = baseOf(target.url)
  const user = String(target.user)
  if (!/^[1-9][0-9]{0,15}$/.test(user)) throw new TypeError('user is no number of 1 to 16 digits')
  const { secret, sockets_max = sockets_max_default } = target
  if (typeof secret !== 'string' || secret === '') throw new TypeError('secret is empty')
  const is_tls = base.startsWith('https:')
  const options = { keepAlive: true, maxSockets: sockets_max, timeout: idle_ms_max }
  const ca = target.ca === undefined ? {} : { ca: await readPem('ca', target.ca) }
  const agent = is_tls ? new https.Agent({ ...options, ...ca }) : new http.Agent(options)

  const ready: Transport['ready'] = (ops) => {
    const body = Buffer.from(`{"ops":[${ops.map(opText).join(',')}]}`)
    const timestamp = String(Math.floor(clock.now_ms() / 1_000))
    const signature = signatureOf(timestamp, secret, body)
    const url = `${base}/api/2/json/${user}/${timestamp}/${signature}`
    return {
      send: async (cancellation) =>
        resultsOf(await post(url, { agent, is_tls, body }, cancellation), ops),
    }
  }

  return {
    ready,
    async *stream(source, { cancellation, timeout_ms }) {
      // One request after the other: only so is the order of the batches the order of arrival.
      let before: Promise<unknown> = Promise.resolve()
      const all = linkedCancellation(cancellation)
      const sendNext = async (ops: readonly SentOp[]): Promise<BatchResult> => {
        const deadline = deadlineIn(timeout_ms, clock, all)
        try {
          return { proc: 'ok', results: await ready(ops).send(deadline) }
        } catch (error) {
          throwIfCancelled(deadline)
          return batchFaultResult(error)
        } finally {
          deadline.clear()
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
        abandon: () => all.end(clientFault('unreachable', 'the stream was left')),
      })
      try {
        yield* answers
      } finally {
        all.clear()
      }
    },
    close: async () => agent.destroy(),
  }
}

/** Below what the server keeps an idle connection for, so that it is the client that lets go. */
const idle_ms_max = 60_000
const answer_bytes_max = 256 * 1024 * 1024

/** A refusal of one batch as its answer; anything else is thrown on. */
function batchFaultResult(error: unknown): BatchResult {
  if (!isClientFault(error) || !isBatchFault(error.code)) throw error
  return { proc: error.code, description: error.message, results: [] }
}

function baseOf(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError('url is no address such as http://127.0.0.1:8080')
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

function opText(op: SentOp): string {
  const { type, data_text, is_sync } = op
  let text = `{"type":"${type}","obj":"task","conv_id":${JSON.stringify(op.conv_id)}`
  for (const name of given) {
    const value = op[name]
    if (value !== undefined) text += `,"${name}":${JSON.stringify(value)}`
  }
  if (is_sync) text += ',"is_sync":true'
  return type === 'show' ? `${text}}` : `${text},"data":${data_text}}`
}

const given = ['id', 'ref', 'obj_id', 'node_id'] as const

interface Post {
  readonly agent: http.Agent
  readonly is_tls: boolean
  readonly body: Buffer
}

function post(
  url: string,
  { agent, is_tls, body }: Post,
  cancellation: Cancellation,
): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    let may_have_left = false
    const lost = (error: NodeJS.ErrnoException): void => {
      forget()
      reject(cancellation.reason() ?? unreachable(url, error, may_have_left))
    }
    const request = is_tls ? https.request : http.request
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const call = request(url, { agent, method: 'POST', headers }, (response) => {
      readBounded(response).then((body) => {
        forget()
        const { statusCode: status = 0, headers } = response
        resolve({ status, retry_after: headers['retry-after'], body })
      }, lost)
    })
    call.on('socket', (socket) => {
      if (!socket.connecting) may_have_left = true
      else {
        socket.once(is_tls ? 'secureConnect' : 'connect', () => {
          may_have_left = true
        })
      }
    })
    call.on('error', lost)
    const forget = cancellation.onCancel(() => call.destroy())
    call.end(body)
  })
}

async function readBounded(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > answer_bytes_max) throw new Error(`an answer over ${answer_bytes_max} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function unreachable(
  url: string,
  cause: NodeJS.ErrnoException,
  may_have_left: boolean,
): ClientFault {
  const why = cause.code ?? cause.message
  const text = may_have_left ? 'broke off before the answer' : 'does not answer'
  return clientFault('unreachable', `${new URL(url).origin} ${text} (${why})`, {
    outcome: may_have_left ? 'unknown' : 'not_applied',
    cause,
  })
}
