/**
 * The operator's listener: serves the page, health, metrics and changes to operators. It shows the
 * data of all tasks, so beyond loopback addresses it requires TLS or a token, and it refuses
 * requests of other sites' pages everywhere (access.ts). Each path is a row of `paths`.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { newConsole } from '../../console/server/console.ts'
import type { Right } from '../../console/server/messages.ts'
import type { ConsoleOptions } from '../../console/server/source.ts'
import { systemChance, systemClock } from '../../core/clock.ts'
import { newCounters } from '../../core/counters.ts'
import { bugReporter, type Emit } from '../../core/events.ts'
import { fault } from '../../core/faults.ts'
import { hostAndPort, isLoopback } from '../../core/host.ts'
import { type Limits, limitsWith } from '../../core/limits.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { type ServedEngine, servedEngine } from '../../engine/served-engine.ts'
import { httpFault } from '../http/fault-response.ts'
import { boundsOf } from '../http/server.ts'
import {
  drainOnce,
  newUnderway,
  type ServerOptions,
  stopAccepting,
  whenOver,
} from '../http/underway.ts'
import { newCertificateReader, refuseHandshakes } from '../tls/client-certificates.ts'
import { readTls, secureOptions, type TlsOptions, type TlsSet, watchTls } from '../tls/tls-files.ts'
import {
  type Access,
  certificateAccess,
  checkHost,
  checkSource,
  open_access,
  tokenAccess,
} from './access.ts'
import {
  type NodeView,
  type Observers,
  type OperatorContext,
  openEngineOf,
  refuse,
} from './exchange.ts'
import { paths } from './paths.ts'
import { refuseConnections } from './refused-connections.ts'

/** Connections besides those of readers. More are closed unread. */
const other_connections_max = 64

export interface OperatorOptions extends ServerOptions {
  /** Default `127.0.0.1`. Any but a loopback address or `localhost` needs `tls` or `token`. */
  readonly host?: string
  /** Default 8081; 0 picks a free one. */
  readonly port?: number
  /**
   * Serves HTTPS, with the certificate files of `serveGrpc`, reloaded when they change. Without a
   * token, callers need a client certificate of its authority that is not bound to a user.
   */
  readonly tls?: TlsOptions
  /**
   * What callers send as `Authorization: Bearer …`, for all but health: 16 to 1,024 characters.
   */
  readonly token?: string
  /** Limits all sessions of the page to the right `look`. */
  readonly read_only?: boolean
  /** Serves the page without TLS beyond loopback addresses too, which then require `token`. */
  readonly console_plain_http?: boolean
  /** The addresses of the engine's other servers, for the commands that the page shows. */
  readonly servers?: ConsoleOptions['servers']
  readonly command_line?: ConsoleOptions['command_line']
}

export interface OperatorServer {
  /** Such as `http://127.0.0.1:8081`, or with `https` over TLS. */
  readonly url: string
  readonly address: AddressInfo
  /** The address of the page; undefined if this listener does not serve it. */
  readonly page: string | undefined
  /** A link to the page that signs in once, within ten minutes. */
  link(right?: Right): string
  /** Ends all feeds and connections; resolves when the port is free. The engine stays open. */
  drain(): Promise<void>
}

/**
 * Starts the listener. Rejects with the system's error where it cannot listen, and with a
 * RangeError for an invalid option, such as a host that other machines reach.
 */
export async function serveOperator(
  engine: Engine,
  options: OperatorOptions = {},
): Promise<OperatorServer> {
  const served = servedEngine(engine)
  const { emit, counters } = served
  return openListener({ emit, counters, limits: engine.limits, engine: served }, options)
}

export interface NodeListener extends OperatorServer {
  /** Serves this engine from now on, or none. */
  use(engine: Engine | undefined): void
  /** Sets the engine that answers reads while this node is a standby, if any. */
  read(reader: Engine | undefined): void
}

/** As `serveOperator`, for a node of a cluster, which has an engine only as the owner. */
export async function serveNodeOperator(
  node: NodeView,
  { emit, limits }: { readonly emit: Emit; readonly limits: Limits },
  options: OperatorOptions,
): Promise<NodeListener> {
  return openListener({ emit, counters: newCounters(), limits, node }, options)
}

interface Source extends Observers {
  readonly limits: Limits
  readonly engine?: ServedEngine
  readonly node?: NodeView
}

async function openListener(source: Source, options: OperatorOptions): Promise<NodeListener> {
  const { host = '127.0.0.1', port = 8081, tls: files, token } = options
  const { node } = source
  let context: OperatorContext | undefined
  const observers: Observers = {
    emit: (event, fields) => (context?.engine ?? source).emit(event, fields),
    counters: {
      countRequest: (...of) => (context?.engine ?? source).counters.countRequest(...of),
      setCertificate: (...of) => (context?.engine ?? source).counters.setCertificate(...of),
    },
  }
  const onBug = bugReporter(observers.emit, options.onBug)
  const is_guarded = files !== undefined || token !== undefined
  if (!is_guarded && !isLoopback(host)) throw notLoopback(host)
  const limits = limitsWith({ ...source.limits, ...options.limits })
  const tls = files === undefined ? undefined : await readTls(files, token === undefined)
  const access = await accessOf(() => context?.engine, token, tls)
  const { newMetricsText } = await import('../../metrics/metrics-text.ts')
  const underway = newUnderway()
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    if (!mayServe(request, response)) return
    underway.begin()
    whenOver(request, response, () => underway.end())
    void serve(context as OperatorContext, request, response)
  }
  const { server, use } = serverFor(observers, limits, tls, onRequest)
  const mayServe = refuseConnections(server, observers, limits)
  // HTTP lets a server ignore an expectation that it does not know.
  server.on('checkExpectation', onRequest)
  server.maxConnections = limits.readers_max + other_connections_max
  server.listen({ host, port })
  await once(server, 'listening')
  server.on('error', onBug)
  const address = server.address() as AddressInfo
  if (!is_guarded && !isLoopback(address.address)) {
    server.close()
    throw notLoopback(`${host}, which is ${address.address},`)
  }
  const { engine } = source
  const url = `http${tls === undefined ? '' : 's'}://${hostAndPort(host, address.port)}`
  const feeds = new Set<AbortController>()
  const is_page_plain = tls === undefined && !isLoopback(address.address)
  const barred = is_page_plain && options.console_plain_http !== true ? page_needs_tls : undefined
  const page = newConsole(
    {
      engine: () => running.engine ?? running.reader ?? openEngineOf(running),
      ...{ ...observers, limits, onBug, readers: feeds },
      ...{ clock: systemClock, chance: systemChance },
      isDraining: () => running.draining,
      barred: () => barred,
    },
    {
      right_max: options.read_only === true ? 'look' : 'administer',
      servers: options.servers ?? {},
      ...(options.command_line && { command_line: options.command_line }),
    },
  )
  const running: OperatorContext = {
    ...{ engine, node, observers, metrics: newMetricsText(engine, node), limits, access, onBug },
    ...{ reader: undefined, feeds, draining: false, page },
  }
  context = running
  const page_url = url.replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=:)/, '$1localhost')
  const link = (right?: Right): string => {
    if (barred !== undefined) throw fault('not_possible', barred)
    return page_url + page.link(right)
  }
  const watchEngine = (): void => {
    if (barred !== undefined) return
    page.refresh()
    running.engine?.consoles.add(link)
  }
  watchEngine()
  let newest_tls = tls
  const watch = (): (() => void) => {
    if (files === undefined || newest_tls === undefined) return () => {}
    return watchTls({
      ...{ ...observers, every_ms: limits.tls_reload_ms, server: 'operator' },
      ...{ options: files, first: newest_tls },
      use(set) {
        use(set)
        newest_tls = set
      },
    })
  }
  let unwatchTls = watch()

  async function drain(): Promise<void> {
    running.draining = true
    unwatchTls()
    const closed = stopAccepting(server)
    for (const feed of running.feeds) feed.abort()
    await underway.quiet(limits.drain_ms_max)
    server.closeAllConnections()
    await closed
    // Ends node's timer over its connections.
    server.close()
    running.metrics.close()
    running.engine?.consoles.delete(link)
    page.close()
  }

  observers.emit('listening', { server: 'operator', url })
  return {
    url,
    address,
    page: barred === undefined ? `${page_url}/console/` : undefined,
    link,
    use(opened) {
      if (running.engine === opened) return
      running.engine?.consoles.delete(link)
      running.engine = opened && servedEngine(opened)
      for (const feed of running.feeds) feed.abort()
      running.metrics.close()
      running.metrics = newMetricsText(running.engine, node)
      // The counters of the engine report the expiry of the certificate.
      unwatchTls()
      unwatchTls = watch()
      watchEngine()
    },
    read(reader) {
      running.reader = reader && servedEngine(reader)
      watchEngine()
    },
    drain: drainOnce(drain),
  }
}

const page_needs_tls =
  "beyond loopback addresses the operator's page needs TLS (--operator-tls), or " +
  '--console-plain-http where a proxy before it has TLS'

function notLoopback(host: string): RangeError {
  return new RangeError(
    `${host} is no loopback address: the operator's listener shows all tasks to all who reach ` +
      'it, so without TLS and without a token it takes 127.0.0.1, ::1 or localhost',
  )
}

async function accessOf(
  engineNow: () => ServedEngine | undefined,
  token: string | undefined,
  tls: TlsSet | undefined,
): Promise<Access> {
  if (token !== undefined) return tokenAccess(token)
  return tls === undefined
    ? open_access
    : certificateAccess(engineNow, await newCertificateReader())
}

/** The server, and the function that replaces its certificates. */
function serverFor(
  { emit }: Observers,
  limits: Limits,
  tls: TlsSet | undefined,
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): { server: Server; use: (set: TlsSet) => void } {
  // A missing Host is refused with the other checks.
  const bounds = { ...boundsOf(limits), requireHostHeader: false }
  if (tls === undefined) return { server: createServer(bounds, onRequest), use() {} }
  const handshakeTimeout = limits.header_ms_max
  // The certificate is checked with each request, so that the caller gets a reason.
  const demands = { requestCert: tls.ca !== undefined, rejectUnauthorized: false, handshakeTimeout }
  const options = { ...bounds, ...secureOptions(tls), ...demands }
  const server = createTlsServer(options, onRequest)
  refuseHandshakes(server, 'operator', emit)
  return { server, use: (set) => server.setSecureContext(secureOptions(set)) }
}

/** Answers one request. Never rejects. */
async function serve(
  context: OperatorContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    if (context.access.is_open) checkHost(request)
    if (context.page.handle(request, response)) return
    checkSource(request.headers)
    // Dots are not resolved: a proxy may allow paths by their prefix.
    const [path, query = ''] = (request.url as string).split(/\?(.*)/s)
    const row = paths.find((one) => one.path === path)
    const refusal = refusalOf(context.access, request)
    if (refusal !== undefined && row?.is_for_all !== true) throw refusal
    if (row === undefined) {
      const known = paths.map(({ path }) => path).join(', ')
      throw httpFault('not_found', `no such path; there are ${known}`)
    }
    if (context.draining && row.is_for_all !== true) throw httpFault('shutting_down')
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw httpFault('method_not_allowed', 'only GET', { allow: 'GET, HEAD' })
    }
    const is_trusted = refusal === undefined
    await row.serve({
      ...{ context, request, response, is_trusted },
      query: new URLSearchParams(query),
    })
    context.observers.counters.countRequest('operator', 'ok')
  } catch (thrown) {
    refuse(context, response, thrown)
  }
}

function refusalOf(access: Access, request: IncomingMessage): unknown {
  try {
    access.check(request)
    return undefined
  } catch (refusal) {
    return refusal
  }
}
