/**
 * Serves the operator's page below its base: the page and its files to everybody, calls and live
 * views to who has a session with the right for them. Each request is counted once, each refusal
 * logged once, and each act is one log line, done or refused.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import { emitRefused } from '../../core/refusals.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import { httpFault, refusalOf, replyJson } from '../../server/http/fault-response.ts'
import { newDrawings } from '../diagram/drawings.ts'
import { newOverviews, type Overviews } from '../overview/overview.ts'
import type { CallContext } from './calls/call.ts'
import { exportOf } from './calls/process.ts'
import { viewOf } from './calls/task.ts'
import { calls, checkRight, rowOf, runCall } from './calls.ts'
import { csv_path, serveCsv } from './csv.ts'
import { newEntrance } from './entrance.ts'
import { type Frames, serveStream, session_streams_max } from './live.ts'
import type { Frame, Right, View } from './messages.ts'
import { console_headers, newPageFiles } from './page-files.ts'
import { checkOrigin, newBodyReader } from './request-checks.ts'
import type { OpenSession } from './sessions.ts'
import type { ConsoleExchange, ConsoleOptions, ConsoleSource } from './source.ts'

const sign_in_bytes_max = 4_096
/** How often a live view asks who its reader is. */
const find_again_ms = 5_000
/** Of all bodies that are read at once: two imports. */
const bodies_bytes_max = 96 * 1024 * 1024

/** Beside calls, files and the page itself. */
const own_paths: readonly string[] = ['/session', '/live', '/export', csv_path]
const mistakes_max = 1_000

export interface ConsolePage {
  /** False, with nothing touched, for a path that is not below the base. */
  handle(request: IncomingMessage, response: ServerResponse): boolean
  /** The path of a one-time link, such as `/console/#link=…`. */
  link(right?: Right): string
  /** Watches the engine of now in place of the one before. */
  refresh(): void
  /** Ends all sessions and live views. */
  close(): void
}

/** Throws a RangeError for a base that is no path. */
export function newConsole(source: ConsoleSource, options: ConsoleOptions = {}): ConsolePage {
  const { base = '/console' } = options
  if (!/^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/.test(base)) {
    throw new RangeError(`base: a path such as /console, not ${base}`)
  }
  const { limits, readers, counters, emit, clock } = source
  const entrance = newEntrance(source, base, options)
  const files = newPageFiles(base)
  const readBody = newBodyReader(bodies_bytes_max)
  const drawings = newDrawings()
  const streams = new WeakMap<OpenSession, number>()
  const { rightOf } = entrance
  const parts = { limits, emit, readBody, rightOf, context: contextNow }
  let is_closed = false
  let watched: { readonly engine: ServedEngine; readonly overviews: Overviews } | undefined

  /** What calls are given; throws where there is no engine now. */
  function contextNow(): CallContext {
    if (is_closed) throw fault('shutting_down')
    const engine = source.engine()
    if (watched?.engine !== engine) {
      watched?.overviews.close()
      watched = { engine, overviews: newOverviews(engine) }
    }
    return { ...watched, drawings }
  }

  function refresh(): void {
    try {
      contextNow()
    } catch (error) {
      if (!isFault(error)) throw error
      watched?.overviews.close()
      watched = undefined
    }
  }

  async function serve(exchange: ConsoleExchange): Promise<void> {
    const { request, response, path } = exchange
    const why = source.barred()
    if (why !== undefined) throw httpFault('bad_request', why, { status: 403 })
    const is_call = path.startsWith('/api/')
    const is_page = !is_call && !own_paths.includes(path) && !files.has(path.slice(1))
    checkOrigin(request.headers, is_page)
    if (source.isDraining()) throw httpFault('shutting_down')
    const methods = is_call ? ['POST'] : ['GET', 'HEAD', ...(path === csv_path ? ['POST'] : [])]
    if (!methods.includes(request.method ?? '')) {
      const allow = methods.join(', ')
      throw httpFault('method_not_allowed', `only ${allow}`, { allow })
    }
    if (is_call) return serveCall(exchange, path.slice('/api/'.length))
    if (path === '/session') return reply(response, 200, await entrance.session(exchange))
    if (path === '/live') return serveLive(exchange)
    if (path === '/export') return serveExport(exchange)
    if (path === csv_path)
      return serveCsv({ entrance, emit, readBody, context: contextNow }, exchange)
    if (!is_page) return files.send(path.slice(1), request, response)
    if (path !== '') return files.sendPage(request, response)
    response.writeHead(302, { ...console_headers, Location: `${base}/` }).end()
  }

  async function serveCall(exchange: ConsoleExchange, name: string): Promise<void> {
    const { request, response } = exchange
    if (name === 'sign_in') {
      const input = await readBody(request, sign_in_bytes_max)
      return reply(response, 200, entrance.signIn(exchange, input))
    }
    const row = rowOf(name)
    if (row === undefined && name !== 'sign_out') throw httpFault('not_found', 'no such call')
    // A page that asks again and again by itself keeps no session alive.
    const session = await entrance.find(exchange, name !== 'frame')
    entrance.checkToken(exchange, session)
    if (row === undefined) {
      entrance.signOut(exchange, session)
      return reply(response, 200, {})
    }
    reply(response, 200, await runCall(parts, exchange, { session, name, row }))
  }

  /** The definition of a process as a file, in the format of the public service. */
  async function serveExport(exchange: ConsoleExchange): Promise<void> {
    const { request, response } = exchange
    const session = await entrance.find(exchange, true)
    checkRight(rightOf(session), 'look')
    const { name, text } = await exportOf(contextNow().engine, exchange.query.get('conv_id'))
    response.writeHead(200, {
      ...{ ...console_headers, 'Content-Type': 'application/json; charset=utf-8' },
      'Content-Disposition': `attachment; filename="${name}"`,
      'Content-Length': Buffer.byteLength(text),
    })
    response.end(request.method === 'HEAD' ? undefined : text)
  }

  async function serveLive(exchange: ConsoleExchange): Promise<void> {
    const { request, response } = exchange
    const session = await entrance.find(exchange, true)
    checkRight(rightOf(session), 'look')
    const view = viewOf(Object.fromEntries(exchange.query))
    const count = streams.get(session) ?? 0
    if (count >= session_streams_max) {
      throw httpFault('overloaded', `${count} pages of this session have live views already: poll`)
    }
    const context = contextNow()
    const frames = framesOf(view, context)
    const goesOn = (): boolean =>
      context.engine.health() !== 'shutting_down' && entrance.goesOn(session)
    let found_ms = clock.now_ms()
    // `authorize` was asked only at the start of this long request.
    async function next(): Promise<Frame> {
      if (clock.now_ms() - found_ms >= find_again_ms) {
        found_ms = clock.now_ms()
        await entrance.find(exchange, false)
      }
      return frames.next()
    }
    streams.set(session, count + 1)
    try {
      await serveStream({
        ...{ request, response, frames: { ...frames, next }, limits, readers, clock },
        ...{ ended: session.signal, goesOn },
      })
    } finally {
      frames.close()
      streams.set(session, (streams.get(session) ?? 1) - 1)
    }
  }

  function refuse({ request, response, is_logged, user }: ConsoleExchange, thrown: unknown): void {
    if (!isFault(thrown)) source.onBug(thrown)
    const { code, status, headers, value } = refusalOf(thrown)
    const address = request.socket.remoteAddress
    if (is_logged) counters.countRequest('operator', code)
    else emitRefused({ counters, emit }, { server: 'operator', code, address, user })
    // It has begun: the reader must not take it for complete.
    if (response.headersSent) return void response.destroy()
    const is_read = request.complete && !source.isDraining()
    if (!is_read) request.resume()
    const { places, warnings } = thrown as Partial<Fault>
    const refusal = {
      ...value,
      ...(places && { mistakes: places.slice(0, mistakes_max) }),
      ...(warnings && { warnings: warnings.slice(0, mistakes_max) }),
    }
    reply(response, status, refusal, is_read ? headers : { ...headers, Connection: 'close' })
  }

  return {
    handle(request, response) {
      const { url = '', originalUrl = url } = request as IncomingMessage & { originalUrl?: string }
      // Nothing is resolved: a proxy may let some paths through by how they begin.
      const [path = '', query = ''] = originalUrl.split(/\?(.*)/s)
      if (path !== base && !path.startsWith(`${base}/`)) return false
      const exchange: ConsoleExchange = {
        ...{ request, response, is_logged: false, path: path.slice(base.length) },
        query: new URLSearchParams(query),
      }
      serve(exchange).then(
        () => counters.countRequest('operator', 'ok'),
        (error: unknown) => refuse(exchange, error),
      )
      return true
    },
    link: (right = 'administer') => `${base}/#link=${entrance.link(right)}`,
    refresh,
    close() {
      is_closed = true
      entrance.close()
      void drawings.close()
      watched?.overviews.close()
      watched = undefined
    },
  }
}

function reply(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  replyJson(response, status, value, { ...console_headers, ...headers })
}

function framesOf(view: View, context: CallContext): Frames {
  const { overviews } = context
  if (view.view === 'overview') {
    const watch = overviews.watch()
    return {
      mark: overviews.mark,
      next: async () => ({ view: 'overview', overview: await watch.next() }),
      close: watch.close,
    }
  }
  return { mark: overviews.mark, next: () => calls.frame.run(context, view), close() {} }
}
