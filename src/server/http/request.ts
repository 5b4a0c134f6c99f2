/**
 * The way of a request: bytes, who is it, ops, the engine, bytes. This file says the order and
 * leaves each step to the file that knows it; whatever a step throws is answered in one place,
 * once.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { parseOp } from '../../codec/op.ts'
import { parseRequest, renderResults } from '../../codec/wire.ts'
import type { AnswerReservation } from '../../engine/unread-answers.ts'
import { verifySignature } from './authenticate.ts'
import { readBody } from './body.ts'
import { announcedBytes, checkHead, healthOf, type ServerContext } from './check-head.ts'
import { type Connection, closeAfterAnswer } from './connection.ts'
import { content_type, faultResponseOf } from './fault-response.ts'
import type { Target } from './path.ts'

/** A request on its way through the server. */
interface Exchange {
  readonly context: ServerContext
  readonly connection: Connection
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The client holds its body back until it is told to go on (Expect: 100-continue). */
  readonly expects_continue: boolean
}

/** Answers one request, now or later, and never throws. */
export function answer(exchange: Exchange): void {
  try {
    const { context, connection, request, response, expects_continue } = exchange
    const target = checkHead(context, connection, request)
    if (target === 'health') {
      replyHealth(exchange)
      return
    }
    if (expects_continue) response.writeContinue()
    const reading = readBody(
      request,
      announcedBytes(request),
      context.unverified,
      (body, reason) => {
        // An idle connection must not keep its last body alive.
        if (connection.reading === reading) connection.reading = undefined
        if (body === undefined) replyFault(exchange, reason)
        else void serveBody(exchange, target, body)
      },
    )
    connection.reading = reading
  } catch (thrown) {
    replyFault(exchange, thrown)
  }
}

async function serveBody(exchange: Exchange, target: Target, body: Buffer): Promise<void> {
  try {
    const { context } = exchange
    verifySignature(context.engine, context.limits.window_s, target, body)
    // Between these two lines a request has its name, (user, timestamp, signature), and is
    // unparsed: the place where a repeat of it can be told from a new one.
    context.engine.checkRate(target.user)
    const ops = parseRequest(body, context.limits).map((raw) => parseOp(raw, context.engine.limits))
    const room = exchange.connection.answers.reserve(ops)
    try {
      const results = await context.engine.submit(ops, { user: target.user })
      reply(exchange, 200, renderResults(target.version, results), room)
    } catch (thrown) {
      room.release()
      throw thrown
    }
  } catch (thrown) {
    replyFault(exchange, thrown)
  }
}

/** From here on an answer counts until it is read; node stops reading behind shorter ones. */
const counted_bytes_min = 16 * 1024

/** 200, or 503 with the code and nothing more. */
function replyHealth(exchange: Exchange): void {
  const health = healthOf(exchange.context)
  reply(exchange, health === 'ok' ? 200 : 503, `{"request_proc":"${health}"}`)
}

function reply(
  { context, connection, response }: Exchange,
  status: number,
  body: string,
  room?: AnswerReservation,
): void {
  const bytes = Buffer.byteLength(body)
  if (bytes < counted_bytes_min || response.destroyed) room?.release()
  else if (room !== undefined) {
    room.set(bytes)
    response.once('close', room.release)
  }
  const headers = ['Content-Type', content_type, 'Content-Length', String(bytes)]
  // While draining the connection's last open answer ends it; those behind it are still due.
  if (connection.is_over_limit || (context.draining && connection.open === 1)) {
    headers.push('Connection', 'close')
    closeAfterAnswer(connection)
  }
  response.writeHead(status, headers)
  // A long text would be copied at three times its length.
  if (bytes >= counted_bytes_min) send(response, Buffer.from(body))
  else send(response, body, bytes === body.length ? 'latin1' : 'utf8')
}

/** Ends the answer. `end(body)` would write a second, empty chunk, which costs as much as one. */
function send(response: ServerResponse, body: string | Buffer, encoding?: 'latin1' | 'utf8'): void {
  const { socket } = response
  socket?.cork()
  response.write(body, encoding as BufferEncoding)
  socket?.uncork()
  response.end()
}

function replyFault(exchange: Exchange, thrown: unknown): void {
  const { context, connection, request, response, expects_continue } = exchange
  const refusal = faultResponseOf(thrown, context.onBug)
  // A bug while an answer was written: what is out cannot be taken back, but must not look whole.
  if (response.headersSent) {
    response.destroy()
    return
  }
  let { headers } = refusal
  // What is left of a short body is read and thrown away, so that the connection can serveBody on.
  const is_cut = !request.complete && (expects_continue || isLong(context, request))
  const closes = refusal.closes || is_cut || connection.is_over_limit || context.draining
  if (closes) closeAfterAnswer(connection)
  if (closes && !refusal.closes) headers = [...headers, 'Connection', 'close']
  response.writeHead(refusal.status, headers as string[])
  response.end(refusal.body)
}

/** Whether the body is, or may turn out, too long to be read for nothing. */
function isLong(context: ServerContext, request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined) return true
  return announcedBytes(request) > context.limits.large_body_bytes
}
