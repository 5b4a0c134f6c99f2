/**
 * The signed HTTP server: sets the bounds of a node:http server from the limits, listens and
 * drains. Node parses HTTP and keeps pipelined responses in order. It installs no process-wide
 * handler and never exits the process.
 */
import { once } from 'node:events'
import { createServer, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostAndPort } from '../../core/host.ts'
import type { Limits } from '../../core/limits.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { allowOwnCalls, type HttpHandlerOptions, newContext, serveAddresses } from './context.ts'
import { attachEvents } from './server-events.ts'
import { drainOnce } from './underway.ts'

export interface HttpOptions extends HttpHandlerOptions {
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** Default 8080; 0 picks a free one. */
  readonly port?: number
  /**
   * The descriptor of a listening TCP socket that this process inherited, in place of `host` and
   * `port`. After a drain, connections wait in it for the next process.
   */
  readonly fd?: number
}

export interface HttpServer {
  /** With the base path, such as `http://127.0.0.1:8080/conveyor`. */
  readonly url: string
  /** The beginning of addresses for callers. */
  readonly public_url: string
  readonly address: AddressInfo
  /**
   * Answers new requests with `shutting_down`, gives those under way `drain_ms_max`, then closes
   * every connection. Resolves when the port is free; the engine stays open.
   */
  drain(): Promise<void>
}

/**
 * Starts the server. Rejects with the system's error where it cannot listen, and with a RangeError
 * for an invalid option.
 */
export async function serveHttp(engine: Engine, options: HttpOptions = {}): Promise<HttpServer> {
  const { host = '127.0.0.1', port = 8080, fd, base = '' } = options
  const context = newContext(engine, options)
  context.keep_alive = `timeout=${keptAlive_s(context.limits)}`
  const server = serverWith(context.limits, context.is_sync)
  const drain = attachEvents(server, context, fd !== undefined)
  server.listen(fd === undefined ? { host, port } : { fd })
  await once(server, 'listening')
  server.on('error', context.onBug)
  const address = server.address() as AddressInfo
  const name = fd === undefined ? host : address.address
  const url = `http://${hostAndPort(name, address.port)}${base.replace(/\/+$/, '')}`
  context.public_url ||= url
  serveAddresses(context)
  allowOwnCalls(url, context.engine)
  context.engine.emit('listening', { server: context.name, url })
  return {
    url,
    public_url: context.public_url,
    address,
    drain: drainOnce(drain),
  }
}

/** A server with these limits that does not listen yet. */
export function serverWith(limits: Limits, is_sync: boolean): Server {
  const server = createServer({
    ...boundsOf(limits),
    // The socket time-out below has the same effect without a timer per answer.
    keepAliveTimeout: 0,
    noDelay: true,
    insecureHTTPParser: false,
    // `checkHead` refuses a missing Host with a fault of the table.
    requireHostHeader: false,
  })
  // One above the limit, so that `checkHead` sees an excess header.
  server.maxHeadersCount = limits.header_count_max + 1
  server.timeout = limits.idle_ms_max
  // A client may shut down its side and still read the response. In the synchronous form that
  // looks like the end of the client.
  return Object.assign(server, { httpAllowHalfOpen: !is_sync })
}

/** Announces less than the real time, so that no client writes into a closing socket. */
function keptAlive_s({ idle_ms_max }: Limits): number {
  return Math.max(0, Math.floor(idle_ms_max / 1000) - 1)
}

/** The bounds that node enforces on a connection. */
export function boundsOf(limits: Limits): ServerOptions {
  return {
    maxHeaderSize: limits.header_bytes_max,
    headersTimeout: Math.min(limits.header_ms_max, limits.request_ms_max),
    requestTimeout: limits.request_ms_max,
    connectionsCheckingInterval: checkEvery_ms(limits),
    keepAliveTimeout: limits.idle_ms_max,
  }
}

/** A timeout fires late by at most a quarter of the shorter bound, or a second. */
function checkEvery_ms(limits: Limits): number {
  const shortest_ms = Math.min(limits.header_ms_max, limits.request_ms_max)
  return Math.min(1_000, Math.max(20, Math.ceil(shortest_ms / 4)))
}
