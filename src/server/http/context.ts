/**
 * What a server and a mounted handler have in common: their options, and the context that is made
 * of them. The limits are the engine's, with those of the options over them.
 */
import { bugReporter } from '../../core/events.ts'
import { type LimitName, limitsWith } from '../../core/limits.ts'
import { readPublicUrl } from '../../engine/access/addresses.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import { newUnverifiedBodies } from './body.ts'
import type { ServerContext } from './exchange.ts'
import { address_paths, routeUnder } from './path.ts'

export interface HttpHandlerOptions {
  /** A path before `/api`, such as `/conveyor`. */
  readonly base?: string
  /**
   * What addresses made for callers begin with, such as `https://api.example.com/conveyor`; default
   * the engine's own `public_url`, else the `url` of the server.
   */
  readonly public_url?: string
  /**
   * Serves signed requests in the synchronous form: they create tasks, whose data gains
   * `__callback_url`, and are answered with what is posted there, at most 60 s later. Other
   * requests need a server, or a handler, of their own. Default false.
   */
  readonly sync?: boolean
  /**
   * A server's own limits bound its connections, heads and bodies; `ops_max` can only be lowered;
   * limits of ops, tasks and the queue are the engine's.
   */
  readonly limits?: Partial<Record<LimitName, number>>
  /** Receives bugs: exceptions that are no Fault. The caller gets `internal_error`. */
  readonly onBug?: (error: unknown) => void
}

/** Throws a RangeError for an invalid option. `serveAt` has to follow before the first request. */
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

/** Addresses for callers begin with the context's `public_url` from now on. */
export function serveAddresses({ engine, public_url, is_sync }: ServerContext): void {
  if (!is_sync) engine.addresses.serveAt(public_url)
  allowOwnCalls(public_url, engine)
}

/** A process may call back itself, wherever it runs. */
export function allowOwnCalls(url: string, engine: ServerContext['engine']): void {
  for (const path of address_paths) engine.allowCalls(url + path)
}
