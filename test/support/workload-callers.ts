/**
 * Callers by each way in, who send the requests of their sequences until the server is gone, and record
 * each that was acknowledged. Nothing is repeated: the outcome of an interrupted request is unknown.
 */

import { readFile } from 'node:fs/promises'
import http from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { credentials, type ServiceError, status } from '@grpc/grpc-js'
import type { Client, ClientOp, ClientResult } from '../../src/client/api.ts'
import { type ClientFault, clientFault, isClientFault } from '../../src/client/faults.ts'
import { faultOfStatus } from '../../src/client/grpc-messages.ts'
import { connect } from '../../src/client.ts'
import { signatureOf } from '../../src/codec/signature.ts'
import { systemClock } from '../../src/core/clock.ts'
import { openClient, type TestClient } from './grpc-client.ts'
import { type Part, requestOf, type Sequence, type SequenceKind } from './workload.ts'

export interface Target {
  readonly url: string
  readonly address: string
  readonly user: string
  readonly secret: string
  /** Of certificates, with a client named `load`. */
  readonly folder: string
  /** Of the listener for requests that wait. */
  readonly sync_url?: string
  /** Paths without a signature: of the webhook of `ledger`, and of the callbacks of `orders`. */
  readonly webhook?: string
  readonly callback?: string
}

export interface Callers {
  readonly clients: Readonly<Record<'http_path' | 'http_headers' | 'grpc', Client>>
  /** For the rpcs of one op, which the client has no use for. */
  readonly single: TestClient
  /** The same agent for what the client does not send. */
  post(url: string, body: string): Promise<object>
  readonly target: Target
  close(): Promise<void>
}

/** How a sequence ended. */
export interface Cut {
  readonly sequence: Sequence
  readonly outcome: ClientFault['outcome']
  /** What the system or gRPC called it. */
  readonly cause: string
}

/** A disk that others write to may hold a commit up for long; an answer that is lost never comes. */
const options = { retries_max: 0, timeout_ms: 100_000 }

export async function openCallers(target: Target): Promise<Callers> {
  const { url, address, user, secret, folder } = target
  const tls = {
    ca: join(folder, 'ca.crt'),
    cert: join(folder, 'load.crt'),
    key: join(folder, 'load.key'),
  }
  const [ca, cert, key] = await Promise.all([tls.ca, tls.cert, tls.key].map((at) => readFile(at)))
  const signer = (sign: 'path' | 'hmac') => connect({ url, user, secret, sign, ...options })
  const clients = {
    http_path: await signer('path'),
    http_headers: await signer('hmac'),
    grpc: await connect({ address, ...tls, ...options }),
  }
  const single = openClient(address, credentials.createSsl(ca, key, cert), {
    'grpc.ssl_target_name_override': 'localhost',
  })
  const agent = new http.Agent({ keepAlive: true })
  return {
    ...{ clients, single, target },
    post: (url, body) => post(agent, url, body),
    async close() {
      await Promise.all(Object.values(clients).map((client) => client.close()))
      single.close()
      agent.destroy()
    },
  }
}

function post(agent: http.Agent, url: string, body: string): Promise<object> {
  return new Promise((resolve, reject) => {
    const lost = (cause: NodeJS.ErrnoException): void =>
      reject(clientFault('unreachable', cause.message, { outcome: 'unknown', cause }))
    const request = http.request(url, { agent, method: 'POST' }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => {
        text += part
      })
      response.on('error', lost)
      response.on('end', () => resolve(JSON.parse(text) as object))
    })
    request.on('error', lost).end(body)
  })
}

/**
 * Sends until the server is gone. Rejects where an answer is wrong, or where a request fails in a
 * way that does not say that the connection broke.
 */
export async function sendSequence(
  sequence: Sequence,
  callers: Callers,
  onAck: () => void,
): Promise<Cut> {
  const note = noteOf(sequence, onAck)
  try {
    if (sequence.kind === 'stream') await sendStream(sequence, callers.clients.grpc, note)
    else await sendEach(sequence, callers, note)
  } catch (error) {
    if (!isClientFault(error) || !retried.has(error.code)) throw error
    return { sequence, outcome: error.outcome, cause: causeOf(error) }
  }
  throw new Error(`${sequence.name}: the stream ended by itself`)
}

export interface Unserved {
  /** How many times a connection broke after a request was sent. */
  readonly broke: number
  /** How many times nobody listened. */
  readonly refused: number
}

/**
 * Sends until `signal`, and sends again what no server has answered. Rejects where an answer is wrong,
 * which it is where a request had been applied before it was sent again.
 */
export async function sendSteadily(
  sequence: Sequence,
  callers: Callers,
  { signal, onAck }: { signal: AbortSignal; onAck: () => void },
): Promise<Unserved> {
  const note = noteOf(sequence, onAck)
  const unserved = { broke: 0, refused: 0 }
  while (!signal.aborted) {
    sequence.sent++
    for (;;) {
      try {
        await sendOne(sequence, callers, note)
        break
      } catch (error) {
        if (!isClientFault(error) || !retried.has(error.code)) throw error
        if (error.outcome === 'unknown') unserved.broke++
        else if (error.code === 'unreachable') unserved.refused++
        await sleep(retry_ms)
      }
    }
  }
  return unserved
}

const retried: ReadonlySet<string> = new Set(['unreachable', 'shutting_down'])
const retry_ms = 10

type Note = (parts: readonly Part[], results: readonly ClientResult[]) => void

async function sendEach(sequence: Sequence, callers: Callers, note: Note): Promise<never> {
  for (;;) {
    sequence.sent++
    await sendOne(sequence, callers, note)
  }
}

async function sendOne(sequence: Sequence, callers: Callers, note: Note): Promise<void> {
  const parts = requestOf(sequence, sequence.sent)
  const ops = parts.map(({ op }) => op)
  const kind =
    sequence.kind === 'callback' && ops[0]?.type === 'create' ? 'http_path' : sequence.kind
  switch (kind) {
    case 'http_path':
    case 'http_headers':
    case 'grpc':
      return note(parts, await callers.clients[kind].apply(ops))
    default:
      return note(parts, [await sendAlone(kind, ops[0] as OneOp, callers)])
  }
}

type OneOp = { readonly conv_id: string; readonly ref: string; readonly data: object } & ClientOp

/** A request of one op by a way that the client does not have. */
async function sendAlone(kind: SequenceKind, op: OneOp, callers: Callers): Promise<ClientResult> {
  const { url, sync_url, webhook, callback } = callers.target
  const { ref, data } = op
  switch (kind) {
    case 'webhook':
      return resultIn(await callers.post(`${url}${webhook}`, JSON.stringify(data)))
    case 'callback':
      return resultIn(await callers.post(`${url}${callback}`, JSON.stringify({ ref, ...data })))
    case 'sync': {
      const body = JSON.stringify({ ops: [op] })
      const answer = await callers.post(`${sync_url}${pathOf(callers.target, body)}`, body)
      return resultIn(answer)
    }
    default:
      return callOne(callers.single, op)
  }
}

/** The signed path of a request. */
export function pathOf({ user, secret }: Pick<Target, 'user' | 'secret'>, body: string): string {
  const timestamp = String(Math.floor(systemClock.now_ms() / 1_000))
  return `/api/1/json/${user}/${timestamp}/${signatureOf(timestamp, secret, body)}`
}

/** The one result of an answer. A wait that the server has broken off has an unknown outcome. */
function resultIn(answer: object): ClientResult {
  const { request_proc, ops } = answer as {
    request_proc: string
    ops: ClientResult | ClientResult[]
  }
  if (request_proc === 'shutting_down') {
    throw clientFault('shutting_down', request_proc, { outcome: 'not_applied' })
  }
  const [result] = Array.isArray(ops) ? ops : [ops]
  if (request_proc !== 'ok' || result === undefined) throw new Error(JSON.stringify(answer))
  if (result.description === 'shutting_down') {
    throw clientFault('shutting_down', 'the wait was ended', { outcome: 'unknown' })
  }
  return result
}

/** Records the next answer of a sequence, and throws where it is wrong. */
export function noteOf(sequence: Sequence, onAck: () => void): Note {
  return (parts, results) => {
    const n = sequence.acked + 1
    const procs = results.map(({ proc }) => proc).join()
    const wanted = parts.map(({ proc }) => proc).join()
    if (procs !== wanted) throw new Error(`${sequence.name}/${n}: ${procs} instead of ${wanted}`)
    sequence.acked = n
    sequence.told.set(
      n,
      results.map(({ obj_id }) => obj_id),
    )
    onAck()
  }
}

async function sendStream(sequence: Sequence, client: Client, note: Note): Promise<void> {
  function* batches(): Generator<ClientOp[]> {
    for (;;) {
      sequence.sent++
      yield requestOf(sequence, sequence.sent).map(({ op }) => op)
    }
  }
  for await (const { proc, results, description } of client.stream(batches())) {
    if (proc === 'shutting_down') throw clientFault(proc, description ?? '')
    if (proc !== 'ok') throw new Error(`${sequence.name}: ${proc}`)
    note(requestOf(sequence, sequence.acked + 1), results)
  }
}

async function callOne(client: TestClient, op: OneOp): Promise<ClientResult> {
  const { conv_id, ref, data } = op
  const request = { conv_id, ref, data_json: Buffer.from(JSON.stringify(data)) }
  const name = op.type === 'create' ? 'CreateTask' : 'ModifyTask'
  try {
    const { obj_id } = await client.call(name, request, undefined, {
      deadline: Date.now() + options.timeout_ms,
    })
    return { ref, obj_id, proc: 'ok' }
  } catch (error) {
    throw faultOfStatus(error as ServiceError)
  }
}

function causeOf({ cause }: ClientFault): string {
  const { code } = (cause ?? {}) as { code?: string | number }
  return typeof code === 'number' ? (status[code] ?? String(code)) : String(code)
}
