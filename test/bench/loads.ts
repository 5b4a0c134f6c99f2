/**
 * The clients of the doors: each in a child, each makes what a slot will send before the slot
 * begins, which takes as long as it takes and is not measured.
 */
import { type Cell, guessedRate, nameOf, type WriteVerb } from './cells.ts'
import { type Child, startChild } from './child.ts'
import type { ClientCalls } from './client.ts'
import type { GrpcClientCalls } from './client-grpc.ts'
import type { Place } from './place.ts'
import type { Slot } from './samples.ts'

/** Where a door listens on this machine, and what signs for its user. */
export interface Server {
  readonly port: number
  readonly secret: string
}

export interface Loads {
  /** One slot of a cell that has a door, against the server of a side. `tasks`: found there. */
  send(side: string, cell: Cell, tasks: number, slot_s: number, to: Server): Promise<Slot>
  stop(): Promise<void>
}

/** A slot at half rate is so many slots long, or its p99 would be a few answers. */
const half_slots = 4

export function startLoads(place: Place): Loads {
  let http_child: Child<ClientCalls> | undefined
  let grpc_child: Child<GrpcClientCalls> | undefined
  const { tls_folder } = place
  /** Requests a second of the last slot, and the highest of all, by side and cell. */
  const rates = new Map<string, { readonly last: number; readonly highest: number }>()

  const viaHttp: Send = async (cell, tasks, requests, slot_s, { port, secret }, per_s) => {
    http_child ??= startChild<ClientCalls>(place.child('client'))
    const { ops, callers, refs } = cell
    await http_child.ask('prepare', { verb: writeOf(cell), ops, refs, tasks, requests, secret })
    const sending = { port, callers, ops, slot_s }
    if (per_s === undefined) return http_child.ask('run', sending)
    return http_child.ask('runPaced', { ...sending, per_s })
  }

  const viaGrpc: Send = async (cell, tasks, requests, slot_s, { port }) => {
    grpc_child ??= startChild<GrpcClientCalls>(place.child('client-grpc'))
    const { ops, callers, refs } = cell
    const verb = writeOf(cell)
    const is_stream = cell.door === 'grpc-stream'
    await grpc_child.ask('prepare', { verb, ops, refs, tasks, requests, is_stream })
    const sending = { port, tls_folder, verb, ops, callers, slot_s, is_stream }
    return grpc_child.ask('run', sending)
  }

  /** As many requests are made as the slot will need at the rate of the last one. */
  const send: Loads['send'] = async (side, cell, tasks, slot_s, to) => {
    const key = `${side} ${nameOf(cell)}`
    const { last, highest } = rates.get(key) ?? { last: guessedRate(cell), highest: 0 }
    const requests = Math.ceil(cell.callers + 2 * last * slot_s)
    const via = cell.door === 'http' ? viaHttp : viaGrpc
    const slot = await via(cell, tasks, requests, slot_s, to, undefined)
    const rate = slot.requests / slot.seconds
    rates.set(key, { last: rate, highest: Math.max(highest, rate) })
    return slot
  }

  return {
    async send(side, cell, tasks, slot_s, to) {
      if (cell.kind !== 'half') return send(side, cell, tasks, slot_s, to)
      const closed: Cell = { ...cell, kind: 'usual' }
      const key = `${side} ${nameOf(closed)}`
      // Where the closed loop is not among the chosen cells, it is run once for its rate.
      if (!rates.has(key)) await send(side, closed, tasks, slot_s, to)
      const per_s = (rates.get(key)?.highest ?? 0) / 2
      const half_s = slot_s * half_slots
      return viaHttp(cell, tasks, Math.ceil(per_s * half_s), half_s, to, per_s)
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
  slot_s: number,
  to: Server,
  per_s: number | undefined,
) => Promise<Slot>

function writeOf(cell: Cell): WriteVerb {
  if (cell.verb === 'read') throw new Error(`${nameOf(cell)}: no door reads`)
  return cell.verb
}
