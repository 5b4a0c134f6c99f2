/**
 * The clients of the doors: each in a child, each makes what a slot will send before the slot
 * begins, which takes as long as it takes and is not measured.
 */
import { type Cell, cellName, guessedRate, type WriteVerb } from './cells.ts'
import { type Child, startChild } from './child.ts'
import type { GrpcClientCalls } from './client-grpc.ts'
import type { HttpClientCalls } from './client-http.ts'
import type { BenchFolder } from './folder.ts'
import type { Slot } from './statistics.ts'
import { type Span, spanSeconds } from './stopwatch.ts'

/** Where a door listens on this machine, and what signs for its user. */
export interface Endpoint {
  readonly port: number
  readonly secret: string
}

export interface LoadClients {
  /** One slot of a cell that has a door, against the server of a side. `tasks`: found there. */
  send(side: string, cell: Cell, tasks: number, span: Span, to: Endpoint): Promise<Slot>
  stop(): Promise<void>
}

export function startLoadClients(folder: BenchFolder): LoadClients {
  let http_child: Child<HttpClientCalls> | undefined
  let grpc_child: Child<GrpcClientCalls> | undefined
  const { tls_folder } = folder
  /** Requests a second, by side and cell: of the last slot and its lead, and of the best slot. */
  const rates = new Map<string, { readonly last: number; readonly highest: number }>()

  const viaHttp: Send = async (cell, tasks, requests, span, { port, secret }, per_s) => {
    http_child ??= startChild<HttpClientCalls>(folder.script('client-http'))
    const { ops, callers, refs } = cell
    await http_child.call('prepare', { verb: writeOf(cell), ops, refs, tasks, requests, secret })
    const sending = { port, callers, ops, ...span }
    if (per_s === undefined) return http_child.call('run', sending)
    return http_child.call('runPaced', { ...sending, per_s })
  }

  const viaGrpc: Send = async (cell, tasks, requests, span, { port }) => {
    grpc_child ??= startChild<GrpcClientCalls>(folder.script('client-grpc'))
    const { ops, callers, refs } = cell
    const verb = writeOf(cell)
    const is_stream = cell.transport === 'grpc-stream'
    await grpc_child.call('prepare', { verb, ops, refs, tasks, requests, is_stream })
    const sending = { port, tls_folder, verb, ops, callers, ...span, is_stream }
    return grpc_child.call('run', sending)
  }

  /** As many requests are made as the slot will need at the rate of the last one. */
  const send: LoadClients['send'] = async (side, cell, tasks, span, to) => {
    const key = `${side} ${cellName(cell)}`
    const { last, highest } = rates.get(key) ?? { last: guessedRate(cell), highest: 0 }
    const requests = Math.ceil(cell.callers + 2 * last * spanSeconds(span))
    const via = cell.transport === 'http' ? viaHttp : viaGrpc
    const slot = await via(cell, tasks, requests, span, to, undefined)
    rates.set(key, {
      last: slot.whole.ops / cell.ops / slot.whole.seconds,
      highest: Math.max(highest, slot.requests / slot.seconds),
    })
    return slot
  }

  return {
    async send(side, cell, tasks, span, to) {
      if (cell.kind !== 'half') return send(side, cell, tasks, span, to)
      const closed: Cell = { ...cell, kind: 'usual' }
      const key = `${side} ${cellName(closed)}`
      const per_s = (rates.get(key)?.highest ?? 0) / 2
      if (!(per_s > 0)) throw new Error(`half of what rate: measure ${key} with it`)
      return viaHttp(cell, tasks, Math.ceil(per_s * spanSeconds(span)), span, to, per_s)
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
  to: Endpoint,
  per_s: number | undefined,
) => Promise<Slot>

function writeOf(cell: Cell): WriteVerb {
  if (cell.verb === 'read') throw new Error(`${cellName(cell)}: no server reads`)
  return cell.verb
}
