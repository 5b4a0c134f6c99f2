/**
 * The way of a request: bytes, who is it, ops, the engine, bytes. This file says the order and
 * leaves each step to the file that knows it; whatever a step throws is answered in one place,
 * once.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { parseRequest, renderResults } from '../../bytes/wire.ts'
import { admit, announcedBytes, type Door, healthOf } from './admit.ts'
import { readBody } from './body.ts'
import { type Connection, closeAfterAnswer } from './connection.ts'
import { content_type, type Refusal, refusalOf } from './refusal.ts'
import { verify } from './verify.ts'

/**
 * Answers one request and never rejects. `waits` says that the client holds its body back until it
 * is told to go on (Expect: 100-continue).
 */
export async function answer(
  door: Door,
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
  waits: boolean,
): Promise<void> {
  try {
    const target = admit(door, connection, request)
    if (target === 'health') return replyHealth(door, connection, response)
    if (waits) response.writeContinue()

    const body = await bodyOf(door, connection, request)
    verify(door.engine, door.limits.window_s, target, body)
    // Between these two lines a request has its name, (user, timestamp, signature), and is
    // unparsed: the place where a repeat of it can be told from a new one.
    door.rate.check(target.user)
    const ops = parseRequest(body, door.limits)
    door.rate.take(target.user, ops.length)
    const results = await door.engine.apply(ops, { user: target.user })
    reply(door, connection, response, 200, renderResults(target.version, results))
  } catch (thrown) {
    const refusal = refusalOf(thrown, door.onBug)
    replyRefusal(door, connection, request, response, refusal, waits)
  }
}

async function bodyOf(
  door: Door,
  connection: Connection,
  request: IncomingMessage,
): Promise<Buffer> {
  const reading = readBody(request, announcedBytes(request), door.held)
  connection.reading = reading
  try {
    return await reading.body
  } finally {
    // An idle connection must not keep its last body alive.
    if (connection.reading === reading) connection.reading = undefined
  }
}

/** 200, or 503 with the code and nothing more. */
function replyHealth(door: Door, connection: Connection, response: ServerResponse): void {
  const health = healthOf(door)
  const status = health === 'ok' ? 200 : 503
  reply(door, connection, response, status, `{"request_proc":"${health}"}`)
}

function reply(
  door: Door,
  connection: Connection,
  response: ServerResponse,
  status: number,
  body: string,
): void {
  const headers = ['Content-Type', content_type, 'Content-Length', String(Buffer.byteLength(body))]
  // While draining the connection's last open answer ends it; those behind it are still due.
  if (connection.surplus || (door.draining && connection.open === 1)) {
    headers.push('Connection', 'close')
    closeAfterAnswer(connection)
  }
  response.writeHead(status, headers)
  response.end(body)
}

function replyRefusal(
  door: Door,
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
  waits: boolean,
): void {
  // A bug while an answer was written: what is out cannot be taken back, but must not look whole.
  if (response.headersSent) {
    response.destroy()
    return
  }
  let { headers } = refusal
  // What is left of a short body is read and thrown away, so that the connection can serve on.
  const is_cut = !request.complete && (waits || isLong(door, request))
  const closes = refusal.closes || is_cut || connection.surplus || door.draining
  if (closes) closeAfterAnswer(connection)
  if (closes && !refusal.closes) headers = [...headers, 'Connection', 'close']
  response.writeHead(refusal.status, headers as string[])
  response.end(refusal.body)
}

/** Whether the body is, or may turn out, too long to be read for nothing. */
function isLong(door: Door, request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined) return true
  return announcedBytes(request) > door.limits.large_body_bytes
}
