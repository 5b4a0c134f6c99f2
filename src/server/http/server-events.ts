/**
 * The events of node's HTTP server: counts connections and requests so that they can be bounded and
 * drained, and answers input that node rejects with a fault of the table instead of a bare status
 * line. A connection gets one response per request, in order, and at most one final error.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { steadyClock, systemClock, within } from '../../core/clock.ts'
import type { Fault } from '../../core/faults.ts'
import { emitRefused } from '../../core/refusals.ts'
import { abortReading } from './body.ts'
import {
  beginRequest,
  type Connection,
  connectionOf,
  destroyLater,
  endRequest,
  linger_ms,
  newAddressConnections,
  sendFinalError,
} from './connection.ts'
import type { ServerContext } from './context.ts'
import { faultResponseOf, httpFault } from './fault-response.ts'
import { answer } from './request.ts'
import { newRequestTrace } from './request-trace.ts'
import { inputRead, newUnderway, stopAccepting } from './underway.ts'

/** Connections over the bounds that are accepted for a response that refuses them. */
const over_limit_connections_max = 256

/**
 * Attaches the handlers; the returned function drains (see `HttpServer.drain`). With `is_held` the
 * listening socket belongs to another process: a drain stops accepting, and connections wait there.
 */
export function attachEvents(
  server: Server,
  context: ServerContext,
  is_held: boolean,
): () => Promise<void> {
  const connections = new Map<Socket, Connection>()
  const { connections_max, address_connections_max } = context.limits
  const addresses = newAddressConnections(address_connections_max)
  let over_limit = 0
  const underway = newUnderway()
  /** Connections and requests so far. */
  let seen = 0

  const onConnection = (socket: Socket): void => {
    seen++
    const is_over = connections.size - over_limit >= connections_max || !addresses.enter(socket)
    if (is_over && over_limit === over_limit_connections_max) {
      socket.destroy()
      return
    }
    const connection = connectionOf(socket, context.engine.answerAccount(), is_over)
    connections.set(socket, connection)
    if (is_over) over_limit++
    socket.on('error', ignore)
    socket.on('close', () => {
      connections.delete(socket)
      if (is_over) over_limit--
      const { reading, waiting } = connection
      for (const end of waiting) end('closed')
      if (reading) abortReading(reading, httpFault('bad_request', 'the connection was closed'))
      underway.end(connection.open_requests)
      while (connection.open_requests > 0) endRequest(context, connection)
    })
    if (connection.is_over_limit) destroyLater(socket, linger_ms)
  }
  function onClose(this: ServerResponse): void {
    const connection = connections.get(this.req.socket)
    if (connection === undefined) return
    endRequest(context, connection)
    if (connection.open_requests === 0 && connection.final_error)
      sendFinalError(connection, connection.final_error)
    underway.end()
  }
  const onRequest = (
    request: IncomingMessage,
    response: ServerResponse,
    expects_continue: boolean,
  ): void => {
    const connection = connections.get(request.socket)
    if (connection === undefined || connection.closing) {
      request.resume()
      return
    }
    seen++
    beginRequest(context, connection)
    underway.begin()
    // Not on `finish`, where node listens: V8 may give the array of two listeners a long life, and
    // with it all of the request.
    response.on('close', onClose)
    answer({
      context,
      connection,
      request,
      response,
      expects_continue,
      began_ms: context.engine.counters.beginRequest(),
      staleness: undefined,
      trace: newRequestTrace(context.engine),
    })
  }

  server.on('connection', onConnection)
  server.on('request', (request, response) => onRequest(request, response, false))
  server.on('checkContinue', (request, response) => onRequest(request, response, true))
  // HTTP lets a server ignore any other expectation.
  server.on('checkExpectation', (request, response) => onRequest(request, response, false))
  server.on('connect', (_request, stream) => {
    const connection = connections.get(stream as Socket)
    if (connection === undefined || connection.closing) return void stream.destroy()
    stream.resume()
    refuse(connection, context, httpFault('not_found'))
  })
  server.on('clientError', (error, stream) => {
    const connection = connections.get(stream as Socket)
    if (connection !== undefined) onClientError(connection, error, context)
    else stream.destroy()
  })
  server.on('timeout', (socket) => {
    const connection = connections.get(socket)
    // Other limits bound a request that waits for its body or for the engine.
    if (connection && connection.open_requests > 0 && socket.writableLength === 0) return
    socket.destroy()
  })

  return async () => {
    const until_ms = steadyClock.now_ms() + context.limits.drain_ms_max
    context.draining = true
    const stopped = is_held ? stopAccepting(server) : undefined
    await inputRead(() => seen)
    for (const { waiting } of connections.values()) for (const end of waiting) end('draining')
    for (const { socket, open_requests, closing } of connections.values())
      if (open_requests === 0 && !closing) socket.destroy()
    await underway.quiet(context.limits.drain_ms_max)
    const closed = stopped ?? stopAccepting(server)
    for (const { socket, closing } of connections.values()) if (!closing) socket.destroy()
    const left_ms = Math.max(0, until_ms - steadyClock.now_ms())
    await within(systemClock, Math.min(linger_ms, left_ms), closed)
    for (const socket of connections.keys()) socket.destroy()
    await closed
    // Ends node's timer over its connections.
    server.close()
  }
}

/** Handles input that node cannot parse, or that takes too long. */
function onClientError(connection: Connection, error: ClientError, context: ServerContext): void {
  const { socket, reading } = connection
  if (connection.closing) return
  const fault = clientErrorFault(error)
  // A response is not read after a reset, or before the first byte of a request.
  if (fault === undefined || !socket.writable || socket.bytesRead === 0) {
    socket.destroy()
    return
  }
  if (reading !== undefined && !reading.request.complete) {
    abortReading(reading, fault)
    return
  }
  refuse(connection, context, fault)
}

/** Answers input that is no request. */
function refuse(connection: Connection, context: ServerContext, fault: Error): void {
  const refusal = faultResponseOf(fault, context.onBug)
  const address = connection.socket.remoteAddress
  emitRefused(context.engine, { server: context.name, code: refusal.code, address })
  sendFinalError(connection, refusal)
}

/** Of node's parser: the reason, and the bytes, of what it rejects. */
interface ClientError extends NodeJS.ErrnoException {
  readonly reason?: unknown
  readonly rawPacket?: Uint8Array
}

/** The fault of rejected input; undefined for a broken connection. */
export function clientErrorFault(error: ClientError): Fault | undefined {
  const { code = '', reason, rawPacket } = error
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return httpFault('request_timeout', 'the request did not arrive in time')
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    return httpFault('bad_request', 'the headers are over the limit', { status: 431 })
  }
  if (!code.startsWith('HPE_')) return undefined
  if (code === 'HPE_PAUSED_H2_UPGRADE') {
    return httpFault('bad_request', 'this is HTTP/2, and this port speaks HTTP/1.1')
  }
  // A TLS handshake record.
  if (rawPacket?.[0] === 0x16 && rawPacket[1] === 0x03) {
    return httpFault('bad_request', 'this is TLS, and this port speaks plain HTTP')
  }
  return httpFault('bad_request', `not HTTP as it should be: ${String(reason ?? code)}`)
}

function ignore(): void {}
