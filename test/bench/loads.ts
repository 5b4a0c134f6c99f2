/**
 * The clients of the doors: each in a child, each makes what a slot will send before the slot
 * begins, which takes as long as it takes and is not measured.
 */
import { type Cell, guessedRate, nameOf } from './cells.ts'
import { startChild } from './child.ts'
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

export function startLoads(place: Place): Loads {
  const http = startChild<ClientCalls>(place.child('client'))
  const grpc = startChild<GrpcClientCalls>(place.child('client-grpc'))
  const { tls_folder } = place
  const rates = new Map<string, number>()

  return {
    /** As many requests are made as the slot will need at the rate of the last one. */
    async send(side, cell, tasks, slot_s, { port, secret }) {
      const { door, verb, ops, callers } = cell
      const key = `${side} ${nameOf(cell)}`
      const rate = rates.get(key) ?? guessedRate(cell)
      const preparing = { verb, ops, tasks, requests: Math.ceil(callers + 2 * rate * slot_s) }
      let slot: Slot
      if (door === 'http') {
        await http.ask('prepare', { ...preparing, secret })
        slot = await http.ask('run', { port, callers, ops, slot_s })
      } else {
        const is_stream = door === 'grpc-stream'
        await grpc.ask('prepare', { ...preparing, is_stream })
        const sending = { port, tls_folder, verb, ops, callers, slot_s, is_stream }
        slot = await grpc.ask('run', sending)
      }
      rates.set(key, slot.requests / slot.seconds)
      return slot
    },
    async stop() {
      await Promise.all([http.stop(), grpc.stop()])
    },
  }
}
