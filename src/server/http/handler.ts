/**
 * The signed API as a listener to mount in another HTTP server: node:http, Express, Fastify. It
 * serves requests as `serveHttp` does and passes other paths to `next`. The bounds on connections
 * and heads are those of that server.
 *
 * A signature covers the bytes of a body, so they must arrive unread. A request that a body parser
 * has read is refused at once.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import { systemClock } from '../../core/clock.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { abortReading } from './body.ts'
import { beginRequest, type Connection, connectionOf, endRequest } from './connection.ts'
import {
  type Exchange,
  type HttpHandlerOptions,
  newContext,
  type ServerContext,
  serveAddresses,
} from './context.ts'
import { httpFault } from './fault-response.ts'
import { routeUnder } from './path.ts'
import { replyFault } from './reply.ts'
import { answer } from './request.ts'
import { newRequestTrace } from './request-trace.ts'
import { drainOnce, inputRead, newUnderway, whenOver } from './underway.ts'

export interface HttpHandler {
  /**
   * Serves a request, of node's HTTP/2 too. Calls `next` for an unknown path; without `next` it
   * answers `not_found`.
   */
  (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
    next?: () => void,
  ): void
  /**
   * Answers new requests with `shutting_down`; resolves once those under way are answered, or after
   * `drain_ms_max`. Then close your server and the engine.
   */
  drain(): Promise<void>
}

/**
 * A listener that serves the signed API, webhooks and callback addresses of an engine, below its
 * mount path or `base`. Mount it before body parsers. Without a `public_url`, its own or the
 * engine's, processes do not know addresses for callers, and `sync` is refused. Throws a RangeError
 * for an invalid option.
 */
export function createHandler(engine: Engine, options: HttpHandlerOptions = {}): HttpHandler {
  const { route, ...common } = newContext(engine, options)
  const bare = routeUnder('')
  const context: ServerContext = {
    ...common,
    route: (request) => {
      const { url = '', originalUrl = url } = request as IncomingMessage & { originalUrl?: string }
      // Express removes the mount path.
      const target = route(request) ?? (originalUrl === url ? undefined : bare(url))
      return target?.kind === 'health' ? undefined : target
    },
  }
  if (context.public_url !== '') serveAddresses(context)
  else if (context.is_sync) throw new RangeError('sync: needs public_url, where answers are posted')

  const connections = new WeakMap<Socket, Connection>()
  const busy = new Set<Connection>()
  const underway = newUnderway()
  /** Requests so far. */
  let seen = 0

  function connectionAt(socket: Socket): Connection {
    const known = connections.get(socket)
    if (known !== undefined) return known
    const connection = connectionOf(socket, context.engine.answerAccount(), false)
    connections.set(socket, connection)
    socket.once('close', () => {
      const { reading, waiting } = connection
      for (const end of waiting) end('closed')
      if (reading) abortReading(reading, httpFault('bad_request', 'the connection was closed'))
    })
    return connection
  }

  function begin(exchange: Exchange): void {
    const { connection, request, response } = exchange
    seen++
    beginRequest(context, connection)
    busy.add(connection)
    underway.begin()
    whenOver(request, response, () => {
      endRequest(context, connection)
      if (connection.open_requests === 0) busy.delete(connection)
      underway.end()
    })
  }

  function serve(request: IncomingMessage, response: ServerResponse, next?: () => void): void {
    const target = context.route(request)
    if (target === undefined && next !== undefined) return void next()
    const connection = connectionAt(request.socket)
    if (connection.closing) return void request.resume()
    const trace = newRequestTrace(context.engine)
    const began_ms = context.engine.counters.beginRequest()
    const common = { context, connection, request, response, began_ms, trace }
    const exchange: Exchange = { ...common, expects_continue: false, staleness: undefined }
    const is_taken = request.readableDidRead || request.readableEnded
    // The connection broke before.
    if (request.socket.destroyed || (request.destroyed && !is_taken)) return
    begin(exchange)
    if (target !== undefined && is_taken) {
      const fault = bodyTaken()
      context.onBug(fault)
      replyFault(exchange, fault)
    } else {
      answer(exchange)
      endLate(exchange)
    }
  }

  async function drain(): Promise<void> {
    context.draining = true
    await inputRead(() => seen)
    for (const { waiting } of busy) for (const end of waiting) end('draining')
    await underway.quiet(context.limits.drain_ms_max)
  }

  return Object.assign(serve as HttpHandler, { drain: drainOnce(drain) })
}

/** Ends the reading of a body that does not arrive in time; `serveHttp` leaves that to node. */
function endLate({ context, connection, response }: Exchange): void {
  const { reading } = connection
  if (reading === undefined) return
  const until_ms = systemClock.now_ms() + context.limits.request_ms_max
  const disarm = systemClock.wake_at(until_ms, () =>
    abortReading(reading, httpFault('request_timeout', 'the request did not arrive in time')),
  )
  response.once('close', disarm)
}

/** The caller gets the text too, because the mistake shows up before there are other callers. */
function bodyTaken(): Error {
  const text = 'a body parser has read the request first: mount the handler in front of it'
  return httpFault('internal_error', text, { is_public: true })
}
