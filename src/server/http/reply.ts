/**
 * Writes the response to a request: an answer or a fault. Each request ends in one call of `reply`
 * or `replyFault`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { emitRefused, type Refusal } from '../../core/refusals.ts'
import type { AnswerReservation } from '../../engine/requests/unread-answers.ts'
import type { Staleness } from '../../engine/served-engine.ts'
import { announcedBytes, isHttp2 } from './check-head.ts'
import { closeAfterAnswer } from './connection.ts'
import type { Exchange, ServerContext } from './context.ts'
import { content_type, faultResponseOf } from './fault-response.ts'
import { endRequest } from './request-trace.ts'
import { whenOver } from './underway.ts'

/** A text from here on is encoded first, because node reserves three times its length. */
const encoded_bytes_min = 16 * 1024

/** Sends an answer; its reservation, if any, is released once it has left. */
export function reply(
  exchange: Exchange,
  status: number,
  body: string | Buffer,
  reservation?: AnswerReservation,
  type = content_type,
): void {
  const { context, connection, request, response } = exchange
  endRequest(exchange, status)
  if (hasAnswered(response)) return void reservation?.release()
  context.engine.counters.countRequest(context.name, 'ok', exchange.began_ms)
  const bytes = Buffer.byteLength(body)
  reservation?.set(bytes)
  const headers = ['Content-Type', type, 'Content-Length', String(bytes)]
  // Tells a caller whose connection breaks later whether a repeat is safe.
  headers.push('Conveyor-Replay', context.engine.replays.mode)
  if (exchange.staleness !== undefined) headers.push(...stalenessHeaders(exchange.staleness))
  // While draining, the response to the last open request closes the connection.
  const is_last = context.draining && connection.open_requests === 1
  if (connection.is_over_limit || (is_last && !isHttp2(request))) {
    headers.push('Connection', 'close')
    closeAfterAnswer(connection)
  } else addKeepAlive(headers, context, response)
  response.writeHead(status, headers)
  if (typeof body !== 'string') send(response, body)
  else if (bytes >= encoded_bytes_min) send(response, Buffer.from(body))
  else send(response, body, bytes === body.length ? 'latin1' : 'utf8')
  if (reservation === undefined) return
  if (hasLeft(response) || response.destroyed) reservation.release()
  else whenOver(request, response, reservation.release)
}

/** Whether the kernel has all of it, as with most answers. */
function hasLeft({ socket, req }: ServerResponse): boolean {
  return !isHttp2(req) && socket?.writableLength === 0
}

function addKeepAlive(
  headers: string[],
  { keep_alive }: ServerContext,
  { shouldKeepAlive }: ServerResponse,
): void {
  if (keep_alive !== undefined && shouldKeepAlive) headers.push('Keep-Alive', keep_alive)
}

/** Name, value, name, value. */
function stalenessHeaders({ seq, age_ms }: Staleness): string[] {
  const position = ['Conveyor-Position', String(seq), 'Conveyor-Age-Ms', String(age_ms)]
  return ['Conveyor-Role', 'standby', ...position]
}

/** Writes body and end; `end(body)` alone would cost a second write of an empty chunk. */
function send(response: ServerResponse, body: string | Buffer, encoding?: 'latin1' | 'utf8'): void {
  const { socket } = response
  socket?.cork()
  response.write(body, encoding as BufferEncoding)
  socket?.uncork()
  response.end()
}

/** Sends what was thrown as a fault. */
export function replyFault(exchange: Exchange, thrown: unknown): void {
  const { context, connection, request, response, expects_continue, began_ms } = exchange
  const fault_response = faultResponseOf(thrown, context.onBug)
  endRequest(exchange, fault_response.status, fault_response.code)
  if (hasAnswered(response)) return
  const { code } = fault_response
  emitRefused(context.engine, { ...callerOf(exchange), server: context.name, code, began_ms })
  // A bug while the response was written: it must not look complete.
  if (response.headersSent) {
    response.destroy()
    return
  }
  // The rest of a short body is read and discarded, so that the connection stays usable.
  const is_cut = !request.complete && (expects_continue || isLong(context, request))
  const closes = fault_response.closes || is_cut || connection.is_over_limit || context.draining
  const headers = [...fault_response.headers]
  if (exchange.staleness !== undefined) headers.push(...stalenessHeaders(exchange.staleness))
  if (closes && !isHttp2(request)) {
    closeAfterAnswer(connection)
    headers.push('Connection', 'close')
  } else addKeepAlive(headers, context, response)
  response.writeHead(fault_response.status, headers)
  response.end(fault_response.body)
}

/** The sender of a refused request, as far as known. */
function callerOf({ context, request }: Exchange): Pick<Refusal, 'user' | 'address'> {
  const target = context.route(request)
  const login = target?.kind === 'signed' ? target.user : request.headers['x-api-login']
  return {
    user: /^[0-9]{1,20}$/.test(String(login)) ? String(login) : undefined,
    address: request.socket.remoteAddress,
  }
}

/** Whether the server that mounts this handler has answered, for example after its time-out. */
function hasAnswered(response: ServerResponse): boolean {
  return response.writableEnded
}

/** Whether the body is, or may be, too long to be read and discarded. */
function isLong(context: ServerContext, request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined) return true
  return announcedBytes(request) > context.limits.large_body_bytes
}
