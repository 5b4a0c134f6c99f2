/**
 * The load clients of the servers, each in a child. A client prepares the requests of a slot before the
 * slot starts, as many as the last rate suggests; that time is not measured.
 */
import { type Cell, cellName, guessedRate, type WriteVerb } from './cells.ts'
import { type Child, startChild } from './child.ts'
import type { GrpcClientCalls } from './client-grpc.ts'
import type { HttpClientCalls } from './client-http.ts'
import type { BenchFolder } from './folder.ts'
import type { Slot } from './statistics.ts'
import { type Span, spanSeconds } from './stopwatch.ts'

/** The port of a server on this machine, and the secret that signs for its user. */
export interface Endpoint {
  readonly port: number
  readonly secret: string
  /** Whether each request over gRPC has a `request_key`. */
  readonly is_keyed?: boolean
}

export interface LoadClients {
  /** Sends one slot of a cell to a side's server; `tasks` are stored there. */
  send(side: string, cell: Cell, tasks: number, span: Span, server: Endpoint): Promise<Slot>
  stop(): Promise<void>
}

export function startLoadClients(folder: BenchFolder): LoadClients {
  let http_child: Child<HttpClientCalls> | undefined
  let grpc_child: Child<GrpcClientCalls> | undefined
  const { tls_folder } = folder
  /** By side and cell, requests a second: of the last slot with its warm-up, and of the best slot. */
  const rates = new Map<string, { readonly last: number; readonly highest: number }>()

  const viaHttp: Send = async (cell, tasks, requests, span, { port, secret }, per_s) => {
    http_child ??= startChild<HttpClientCalls>(folder.script('client-http'))
    const { ops, callers, refs } = cell
    const verb = writeVerbOf(cell)
    await http_child.call('prepare', { verb, ops, refs, tasks, requests, secret })
    const options = { port, callers, ops, ...span }
    if (per_s === undefined) return http_child.call('run', options)
    return http_child.call('runPaced', { ...options, per_s })
  }

  const viaGrpc: Send = async (cell, tasks, requests, span, { port, is_keyed = false }) => {
    grpc_child ??= startChild<GrpcClientCalls>(folder.script('client-grpc'))
    const { ops, callers, refs } = cell
    const verb = writeVerbOf(cell)
    const is_stream = cell.transport === 'grpc-stream'
    await grpc_child.call('prepare', {
      ...{ verb, ops, refs, tasks, requests },
      ...{ is_stream, is_keyed },
    })
    const options = { port, tls_folder, verb, ops, callers, ...span, is_stream }
    return grpc_child.call('run', options)
  }

  /** Prepares twice the requests that the slot needs at the last rate. */
  const send: LoadClients['send'] = async (side, cell, tasks, span, server) => {
    const key = `${side} ${cellName(cell)}`
    const { last, highest } = rates.get(key) ?? { last: guessedRate(cell), highest: 0 }
    const requests = Math.ceil(cell.callers + 2 * last * spanSeconds(span))
    const via = cell.transport === 'http' ? viaHttp : viaGrpc
    const slot = await via(cell, tasks, requests, span, server, undefined)
    rates.set(key, {
      last: slot.whole.ops / cell.ops / slot.whole.seconds,
      highest: Math.max(highest, slot.requests / slot.seconds),
    })
    return slot
  }

  return {
    async send(side, cell, tasks, span, server) {
      if (cell.kind !== 'half') return send(side, cell, tasks, span, server)
      const closed: Cell = { ...cell, kind: 'usual' }
      const key = `${side} ${cellName(closed)}`
      const rate = rates.get(key)
      if (rate === undefined) throw new Error(`half of no rate: measure ${key} first`)
      // The slots of a smoke test may be too short for a single request.
      const per_s = (rate.highest || rate.last) / 2
      return viaHttp(cell, tasks, Math.ceil(per_s * spanSeconds(span)), span, server, per_s)
    },
    async stop() {
      await Promise.all([http_child?.stop(), grpc_child?.stop()])
    },
  }
}

type Send = (
  cell: Cell,
  tasks: number,
  requests: number,
  span: Span,
  server: Endpoint,
  per_s: number | undefined,
) => Promise<Slot>

function writeVerbOf(cell: Cell): WriteVerb {
  if (cell.verb === 'read')
    throw new Error(`${cellName(cell)}: servers are not measured with reads`)
  return cell.verb
}
