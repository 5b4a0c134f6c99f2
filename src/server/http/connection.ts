/**
 * The state of a connection, the count of those of an address, and the lingering close.
 *
 * Closing a socket while bytes still arrive makes the kernel send a reset, which can discard the
 * response before the client reads it. So a connection that ends after a response lingers: our side
 * shuts down once the response is written, further input is discarded, and the socket is destroyed
 * when the client closes its side or after `linger_ms`.
 *
 * The timers use the real clock; the engine's clock may be a test's and jump by days.
 */

import type { Socket } from 'node:net'
import { systemClock } from '../../core/clock.ts'
import type { AnswerAccount } from '../../engine/requests/unread-answers.ts'
import type { BodyReading } from './body.ts'
import { type FaultResponse, rawResponse } from './fault-response.ts'

export interface Connection {
  readonly socket: Socket
  /** The bytes of answers that the client has not read yet. */
  readonly answers: AnswerAccount
  /** Over `connections_max`, or those of its address: gets one response and ends. */
  readonly is_over_limit: boolean
  /** Requests whose response has not left yet. */
  open_requests: number
  /** The body being read, or the last one read. */
  reading: BodyReading | undefined
  /** The last response is written or chosen; further input is ignored. */
  closing: boolean
  /** Each ends the wait of a synchronous request. */
  readonly waiting: Set<(how: WaitEnd) => void>
  /** Sent after a broken input, once the open requests are answered. */
  final_error: FaultResponse | undefined
}

/** Why the wait of a synchronous request ends. */
export type WaitEnd = 'complete' | 'late' | 'draining' | 'closed'

export const linger_ms = 2_000

export function connectionOf(
  socket: Socket,
  answers: AnswerAccount,
  is_over_limit: boolean,
): Connection {
  const state = { open_requests: 0, reading: undefined, closing: false, final_error: undefined }
  return { socket, answers, is_over_limit, waiting: new Set(), ...state }
}

/** The count of a server's requests that were sent before earlier ones were answered. */
export interface Pipelined {
  pipelined: number
}

export function beginRequest(of: Pipelined, connection: Connection): void {
  if (++connection.open_requests > 1) of.pipelined++
}

export function endRequest(of: Pipelined, connection: Connection): void {
  if (connection.open_requests-- > 1) of.pipelined--
}

/** Ends the connection after the last response; node calls `destroySoon` then. */
export function closeAfterAnswer(connection: Connection): void {
  connection.closing = true
  const { socket } = connection
  socket.destroySoon = () => linger(socket)
}

/** Sends a response that belongs to no request, after those of the open requests, and ends. */
export function sendFinalError(connection: Connection, refusal: FaultResponse): void {
  connection.closing = true
  if (connection.open_requests > 0) {
    connection.final_error = refusal
    return
  }
  connection.final_error = undefined
  connection.socket.write(rawResponse(refusal))
  linger(connection.socket)
}

/** Destroys the socket after `after_ms` unless it has closed. */
export function destroyLater(socket: Socket, after_ms: number): void {
  const cancel = systemClock.wake_at(systemClock.now_ms() + after_ms, () => socket.destroy())
  socket.once('close', cancel)
}

function linger(socket: Socket): void {
  if (socket.destroyed) return
  socket.end()
  destroyLater(socket, linger_ms)
}

/**
 * Counts the open connections of each remote address, so that one address does not take all that a
 * listener has. An IPv6 network of 64 bits counts as one address, because one host may use all of
 * it, and an IPv4 address is the same in either form.
 */
export interface AddressConnections {
  /** Counts a connection until it closes. False if its address has `connections_max` already. */
  enter(socket: Socket): boolean
}

export function newAddressConnections(connections_max: number): AddressConnections {
  /** By network. */
  const open = new Map<string, number>()
  return {
    enter(socket) {
      const network = networkOf(socket.remoteAddress ?? '')
      const count = open.get(network) ?? 0
      if (count >= connections_max) return false
      open.set(network, count + 1)
      socket.once('close', () => {
        const left = (open.get(network) ?? 1) - 1
        if (left > 0) open.set(network, left)
        else open.delete(network)
      })
      return true
    },
  }
}

const groups_of_network = 4

/** Of an address as node writes it: in lower case, without the longest run of zeros. */
export function networkOf(address: string): string {
  const [, v4] = /^::ffff:([0-9.]+)$/.exec(address) ?? []
  if (v4 !== undefined || !address.includes(':')) return v4 ?? address
  const [head = '', tail] = (address.split('%')[0] as string).split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const behind = tail === '' ? [] : tail.split(':')
    while (groups.length + behind.length < 2 * groups_of_network) groups.push('0')
    groups.push(...behind)
  }
  return groups.slice(0, groups_of_network).join(':')
}
