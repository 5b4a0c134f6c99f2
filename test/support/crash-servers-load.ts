/**
 * Callers at both servers, who send the requests of their lanes until the server is gone, and
 * record each that was acknowledged. Nothing is repeated: the outcome of an interrupted request is
 * unknown.
 */

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { credentials, type ServiceError, status } from '@grpc/grpc-js'
import type { Client, ClientOp, ClientResult } from '../../src/client/api.ts'
import { type ClientFault, isClientFault } from '../../src/client/faults.ts'
import { faultOfStatus } from '../../src/client/grpc-messages.ts'
import { connect } from '../../src/client.ts'
import { type Lane, type Part, requestOf } from './crash-servers-work.ts'
import { openClient, type TestClient } from './grpc-client.ts'

export interface Target {
  readonly url: string
  readonly address: string
  readonly user: string
  readonly secret: string
  /** Of certificates, with a client named `load`. */
  readonly folder: string
}

export interface Callers {
  readonly http: Client
  readonly grpc: Client
  /** For the rpcs of one op, which the client has no use for. */
  readonly single: TestClient
  close(): Promise<void>
}

/** How a lane ended. */
export interface Cut {
  readonly lane: Lane
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
  const http = await connect({ url, user, secret, ...options })
  const grpc = await connect({ address, ...tls, ...options })
  const single = openClient(address, credentials.createSsl(ca, key, cert), {
    'grpc.ssl_target_name_override': 'localhost',
  })
  return {
    http,
    grpc,
    single,
    async close() {
      await Promise.all([http.close(), grpc.close()])
      single.close()
    },
  }
}

/**
 * Sends until the server is gone. Rejects where an answer is wrong, or where a request fails in a
 * way that does not say that the connection broke.
 */
export async function sendLane(lane: Lane, callers: Callers, onAck: () => void): Promise<Cut> {
  const note = noteOf(lane, onAck)
  try {
    if (lane.kind === 'stream') await sendStream(lane, callers.grpc, note)
    else await sendEach(lane, callers, note)
  } catch (error) {
    if (!isClientFault(error) || error.code !== 'unreachable') throw error
    return { lane, outcome: error.outcome, cause: causeOf(error) }
  }
  throw new Error(`${lane.name}: the stream ended by itself`)
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
  lane: Lane,
  callers: Callers,
  { signal, onAck }: { signal: AbortSignal; onAck: () => void },
): Promise<Unserved> {
  const note = noteOf(lane, onAck)
  const unserved = { broke: 0, refused: 0 }
  while (!signal.aborted) {
    lane.sent++
    for (;;) {
      try {
        await sendOne(lane, callers, note)
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

async function sendEach(lane: Lane, callers: Callers, note: Note): Promise<never> {
  for (;;) {
    lane.sent++
    await sendOne(lane, callers, note)
  }
}

async function sendOne(lane: Lane, callers: Callers, note: Note): Promise<void> {
  const parts = requestOf(lane, lane.sent)
  const ops = parts.map(({ op }) => op)
  if (lane.kind === 'single') note(parts, [await callOne(callers.single, ops[0] as ClientOp)])
  else note(parts, await callers[lane.kind === 'http' ? 'http' : 'grpc'].apply(ops))
}

export function noteOf(lane: Lane, onAck: () => void): Note {
  return (parts, results) => {
    const n = lane.acked + 1
    const procs = results.map(({ proc }) => proc).join()
    const wanted = parts.map(({ proc }) => proc).join()
    if (procs !== wanted) throw new Error(`${lane.name}/${n}: ${procs} instead of ${wanted}`)
    lane.acked = n
    lane.told.set(
      n,
      results.map(({ obj_id }) => obj_id),
    )
    onAck()
  }
}

async function sendStream(lane: Lane, client: Client, note: Note): Promise<void> {
  function* batches(): Generator<ClientOp[]> {
    for (;;) {
      lane.sent++
      yield requestOf(lane, lane.sent).map(({ op }) => op)
    }
  }
  for await (const { proc, results } of client.stream(batches())) {
    if (proc !== 'ok') throw new Error(`${lane.name}: ${proc}`)
    note(requestOf(lane, lane.acked + 1), results)
  }
}

async function callOne(client: TestClient, op: ClientOp): Promise<ClientResult> {
  const { conv_id, ref, data } = op as { conv_id: string; ref: string; data: object }
  const request = { conv_id, ref, data_json: Buffer.from(JSON.stringify(data)) }
  const name = op.type === 'create' ? 'CreateTask' : 'ModifyTask'
  try {
    const { obj_id } = await client.call(name, request)
    return { ref, obj_id, proc: 'ok' }
  } catch (error) {
    throw faultOfStatus(error as ServiceError)
  }
}

function causeOf({ cause }: ClientFault): string {
  const { code } = (cause ?? {}) as { code?: string | number }
  return typeof code === 'number' ? (status[code] ?? String(code)) : String(code)
}
