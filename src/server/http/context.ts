/**
 * What the steps of a request share: the context of a running server or a mounted handler, and the
 * exchange of one request. The limits are the engine's, overridden by those of the options.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerName } from '../../core/counters.ts'
import { bugReporter } from '../../core/events.ts'
import { type Limits, limitsWith } from '../../core/limits.ts'
import type { Span, TraceContext } from '../../core/tracing.ts'
import { readPublicUrl } from '../../engine/access/addresses.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { type ServedEngine, type Staleness, servedEngine } from '../../engine/served-engine.ts'
import { newUnverifiedBodies, type UnverifiedBodies } from './body.ts'
import type { Connection, Pipelined } from './connection.ts'
import { address_paths, routeUnder, type Target } from './path.ts'
import type { ServerOptions } from './underway.ts'

/** What every request of a running server needs. */
export interface ServerContext extends Pipelined {
  readonly engine: ServedEngine
  readonly limits: Limits
  /** The target of a request; undefined for a path that is not served. */
  route(request: IncomingMessage): Target | undefined
  readonly unverified: UnverifiedBodies
  readonly onBug: (bug: unknown) => void
  /** Signed requests are of the synchronous form. */
  readonly is_sync: boolean
  /** Its requests are counted under this name. */
  readonly name: ServerName
  /** The beginning of addresses for callers, with the base path; empty where unknown. */
  public_url: string
  /** The value of the header `Keep-Alive`; undefined in a handler, where node writes it. */
  keep_alive: string | undefined
  draining: boolean
}

/** A request and what serves it. */
export interface Exchange {
  readonly context: ServerContext
  readonly connection: Connection
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The client sent `Expect: 100-continue` and holds its body back. */
  readonly expects_continue: boolean
  /** Of `Counters.beginRequest`. */
  readonly began_ms: number
  /** Of a standby, from before it reads for this request. */
  staleness: Staleness | undefined
  /** Undefined for an engine without `tracing`. */
  readonly trace: RequestTrace | undefined
}

export interface RequestTrace {
  readonly arrived_ms: number
  /** The active span of the embedder's own server. */
  readonly around: TraceContext | undefined
  span: Span | undefined
  context: TraceContext | undefined
}

export interface HttpHandlerOptions extends ServerOptions {
  /** A path before `/api`, such as `/conveyor`. */
  readonly base?: string
  /**
   * The beginning of addresses for callers, such as `https://api.example.com/conveyor`; default the
   * engine's own `public_url`, else the `url` of the server.
   */
  readonly public_url?: string
  /**
   * Serves signed requests in the synchronous form: they create tasks, whose data gains
   * `__callback_url`, and are answered with what is posted there, at most 60 s later. Other
   * requests need another server or handler. Default false.
   */
  readonly sync?: boolean
}

/** Throws a RangeError for an invalid option. `serveAddresses` must follow before a request. */
export function newContext(engine: Engine, options: HttpHandlerOptions): ServerContext {
  const { base = '', sync: is_sync = false } = options
  const limits = limitsWith({ ...engine.limits, ...options.limits })
  if (limits.unverified_bytes_max < limits.body_bytes_max) {
    throw new RangeError('unverified_bytes_max is below body_bytes_max: no such body could be read')
  }
  const served = servedEngine(engine)
  served.replays.onWindow(limits.window_ms / 1_000)
  const route = routeUnder(base)
  return {
    engine: served,
    limits,
    route: ({ url }) => route(url as string),
    unverified: newUnverifiedBodies(limits),
    onBug: bugReporter(served.emit, options.onBug),
    is_sync,
    name: is_sync ? 'http_sync' : 'http',
    public_url: readPublicUrl(options.public_url) ?? served.addresses.public_url ?? '',
    keep_alive: undefined,
    pipelined: 0,
    draining: false,
  }
}

/** Makes addresses for callers begin with the context's `public_url`. */
export function serveAddresses({ engine, public_url, is_sync }: ServerContext): void {
  if (!is_sync) engine.addresses.serveAt(public_url)
  allowOwnCalls(public_url, engine)
}

/** Allows processes to call addresses of their own server. */
export function allowOwnCalls(url: string, engine: ServerContext['engine']): void {
  for (const path of address_paths) engine.allowCalls(url + path)
}
