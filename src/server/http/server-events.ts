/**
 * The events of the server: connections and requests are counted here, so that the server can be
 * bounded and drained, and what node would answer with a bare status line, or not at all, is
 * answered as the fault table says. Nothing here looks into a request.
 *
 * Each connection gets one answer for each request on it, in order, and at most one more behind
 * them: why it ends.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { systemClock } from '../../core/clock.ts'
import { abortReading } from './body.ts'
import type { ServerContext } from './check-head.ts'
import {
  type Connection,
  connectionOf,
  destroyLater,
  linger_ms,
  sendFinalError,
} from './connection.ts'
import { faultResponseOf, httpFault } from './fault-response.ts'
import { answer } from './request.ts'

/** Connections over the bound that are still taken, to be told so. */
const over_limit_connections_max = 256

/** Hangs the server onto the server's events; what comes back drains it (see `HttpServer`). */
export function attachEvents(server: Server, context: ServerContext): () => Promise<void> {
  const connections = new Map<Socket, Connection>()
  let underway = 0
  let onQuiet: (() => void) | undefined

  const settled = (count: number): void => {
    underway -= count
    if (underway === 0) onQuiet?.()
  }
  const onConnection = (socket: Socket): void => {
    const over = connections.size - context.limits.connections_max
    if (over >= over_limit_connections_max) {
      socket.destroy()
      return
    }
    const connection = connectionOf(socket, context.engine.answerAccount(), over >= 0)
    connections.set(socket, connection)
    socket.on('error', ignore)
    socket.on('close', () => {
      connections.delete(socket)
      const { reading } = connection
      if (reading) abortReading(reading, httpFault('bad_request', 'the connection was closed'))
      settled(connection.open)
    })
    if (connection.is_over_limit) destroyLater(socket, linger_ms)
  }
  function onFinish(this: ServerResponse): void {
    const connection = connections.get(this.req.socket)
    if (connection === undefined) return
    connection.open--
    if (connection.open === 0 && connection.final_error)
      sendFinalError(connection, connection.final_error)
    settled(1)
  }
  const onRequest = (request: IncomingMessage, response: ServerResponse, waits: boolean): void => {
    const connection = connections.get(request.socket)
    if (connection === undefined || connection.closing) {
      request.resume()
      return
    }
    connection.open++
    underway++
    response.on('finish', onFinish)
    answer({ context, connection, request, response, waits })
  }

  server.on('connection', onConnection)
  server.on('request', (request, response) => onRequest(request, response, false))
  server.on('checkContinue', (request, response) => onRequest(request, response, true))
  // Any other expectation is ignored, as HTTP allows.
  server.on('checkExpectation', (request, response) => onRequest(request, response, false))
  server.on('connect', (_request, stream) => {
    const connection = connections.get(stream as Socket)
    if (connection === undefined || connection.closing) return void stream.destroy()
    stream.resume()
    sendFinalError(connection, faultResponseOf(httpFault('not_found'), context.onBug))
  })
  server.on('clientError', (error, stream) => {
    const connection = connections.get(stream as Socket)
    if (connection !== undefined) onClientError(connection, error, context.onBug)
    else stream.destroy()
  })
  server.on('timeout', (socket) => {
    const connection = connections.get(socket)
    // A request that waits for its body or for the engine is bounded elsewhere.
    if (connection && connection.open > 0 && socket.writableLength === 0) return
    socket.destroy()
  })

  return async () => {
    context.draining = true
    server.closeIdleConnections()
    if (underway > 0) {
      await within(context.limits.drain_ms_max, (done) => {
        onQuiet = done
      })
    }
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    for (const { socket, closing } of connections.values()) if (!closing) socket.destroy()
    await within(linger_ms, (done) => void closed.then(done))
    for (const socket of connections.keys()) socket.destroy()
    await closed
  }
}

/** What node could not read as HTTP, or what took too long; never said twice on one connection. */
function onClientError(
  connection: Connection,
  error: NodeJS.ErrnoException & { reason?: unknown },
  onBug: (bug: unknown) => void,
): void {
  const { socket, reading } = connection
  if (connection.closing) return
  const fault = clientErrorFault(error)
  // Nobody reads an answer on a connection that was reset, nor waits for one who never asked.
  if (fault === undefined || !socket.writable || socket.bytesRead === 0) {
    socket.destroy()
    return
  }
  if (reading !== undefined && !reading.request.complete) {
    abortReading(reading, fault)
    return
  }
  sendFinalError(connection, faultResponseOf(fault, onBug))
}

function clientErrorFault(error: NodeJS.ErrnoException & { reason?: unknown }): Error | undefined {
  const { code = '', reason } = error
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return httpFault('request_timeout', 'the request did not arrive in time')
  }
  if (code === 'HPE_HEADER_OVERFLOW') {
    return httpFault('bad_request', 'the headers are over the limit', { status: 431 })
  }
  if (!code.startsWith('HPE_')) return undefined
  return httpFault('bad_request', `not HTTP as it should be: ${String(reason ?? code)}`)
}

/** Resolves when `start`'s callback is called, or after `time_ms`. */
function within(time_ms: number, start: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const cancel = systemClock.wake_at(systemClock.now_ms() + time_ms, resolve)
    start(() => {
      cancel()
      resolve()
    })
  })
}

function ignore(): void {}
