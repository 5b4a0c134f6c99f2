/**
 * Refuses connections of the operator's listener: input that is no HTTP, CONNECT, requests ahead of
 * too many unread answers, too many connections of an address, and idle or stalled connections
 * after `idle_ms_max`. Each refusal is counted and logged once, and its connection ends.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import { emitRefused } from '../../core/refusals.ts'
import { destroyLater, linger_ms, newAddressConnections } from '../http/connection.ts'
import { content_type, httpFault, rawResponse, refusalOf } from '../http/fault-response.ts'
import { clientErrorFault } from '../http/server-events.ts'
import { whenOver } from '../http/underway.ts'
import { answer_headers, type Observers } from './exchange.ts'

/** Requests of one connection with unread answers; each holds some kilobytes. */
export const open_requests_max = 32

/** Whether a request may be served; otherwise its connection has ended. */
export type MayServe = (request: IncomingMessage, response: ServerResponse) => boolean

export function refuseConnections(
  server: Server,
  observers: Observers,
  { address_connections_max, idle_ms_max }: Limits,
): MayServe {
  const open = new WeakMap<Socket, number>()
  const openOn = (socket: Socket): number => open.get(socket) ?? 0

  function emit({ remoteAddress: address }: Socket, { code }: Fault): void {
    emitRefused(observers, { server: 'operator', code, address })
  }

  function refuse(socket: Socket, fault: Fault | undefined): void {
    // No response after a reset, or within one under way.
    if (fault === undefined || !socket.writable || openOn(socket) > 0) {
      socket.destroySoon()
      return
    }
    emit(socket, fault)
    const { status, value } = refusalOf(fault)
    const body = `${JSON.stringify(value)}\n`
    const head = {
      ...{ ...answer_headers, 'Content-Type': content_type },
      'Content-Length': String(Buffer.byteLength(body)),
    }
    socket.end(rawResponse({ status, headers: Object.entries(head).flat(), body }))
    destroyLater(socket, linger_ms)
  }

  const addresses = newAddressConnections(address_connections_max)
  server.on('connection', (socket: Socket) => {
    if (addresses.enter(socket)) return
    emit(socket, httpFault('overloaded'))
    socket.destroy()
  })
  server.timeout = idle_ms_max
  server.on('timeout', (socket) => {
    // A reader of changes may wait long for the next one, and has its own bound.
    if (openOn(socket) === 0 || socket.writableLength > 0) socket.destroy()
  })

  server.on('clientError', (error, stream) => {
    const socket = stream as Socket
    refuse(socket, socket.bytesRead === 0 ? undefined : clientErrorFault(error))
  })
  server.on('connect', (_request, stream) => refuse(stream as Socket, httpFault('not_found')))

  return (request, response) => {
    const { socket } = request
    const count = openOn(socket)
    if (socket.destroyed) return false
    if (count >= open_requests_max) {
      emit(socket, httpFault('overloaded'))
      socket.destroy()
      return false
    }
    open.set(socket, count + 1)
    whenOver(request, response, () => open.set(socket, openOn(socket) - 1))
    return true
  }
}
