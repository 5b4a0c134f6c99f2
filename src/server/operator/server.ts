/**
 * The operator's listener: what those who run an engine read of it with a browser or `curl`. It has
 * no users and no signatures, and it shows the data of all tasks, so it listens on loopback
 * addresses only and refuses what a web page of somebody else sends (check-source).
 *
 * Everything is a GET. A path is a row of `paths`.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { codeOf } from '../../core/faults.ts'
import { hostAndPort, isLoopback } from '../../core/host.ts'
import { type LimitName, limitsWith } from '../../core/limits.ts'
import type { Engine } from '../../engine/api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import { httpFault } from '../http/fault-response.ts'
import { boundsOf } from '../http/server.ts'
import { newUnderway, whenOver } from '../http/underway.ts'
import { checkSource } from './check-source.ts'
import type { OperatorContext } from './exchange.ts'
import { paths } from './paths.ts'
import { refuse } from './reply.ts'

/** Connections of requests that are answered at once. More are closed unread. */
const other_connections_max = 64

export interface OperatorOptions {
  /** A loopback address, or `localhost`. Default `127.0.0.1`. */
  readonly host?: string
  /** Default 8081; 0 picks a free one. */
  readonly port?: number
  /** Bounds of the listener's own connections, heads and readers. */
  readonly limits?: Partial<Record<LimitName, number>>
  /** Receives bugs: exceptions that are no Fault. The caller gets `internal_error`. */
  readonly onBug?: (error: unknown) => void
}

export interface OperatorServer {
  /** Such as `http://127.0.0.1:8081`. */
  readonly url: string
  readonly address: AddressInfo
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
  const { host = '127.0.0.1', port = 8081, onBug = () => {} } = options
  if (!isLoopback(host)) throw notLoopback(host)
  const limits = limitsWith({ ...engine.limits, ...options.limits })
  const { newMetricsText } = await import('../../metrics/metrics-text.ts')
  const underway = newUnderway()
  const server = createServer(boundsOf(limits), (request, response) => {
    underway.begin()
    whenOver(request, response, () => underway.end())
    void serve(context, request, response)
  })
  server.maxConnections = limits.readers_max + other_connections_max
  server.listen({ host, port })
  await once(server, 'listening')
  server.on('error', onBug)
  const address = server.address() as AddressInfo
  if (!isLoopback(address.address)) {
    server.close()
    throw notLoopback(`${host}, which is ${address.address},`)
  }
  const context: OperatorContext = {
    ...{ engine: servedEngine(engine), metrics: newMetricsText(engine), limits, onBug },
    ...{ feeds: new Set(), draining: false },
  }

  async function drain(): Promise<void> {
    context.draining = true
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    for (const feed of context.feeds) feed.abort()
    await underway.quiet(limits.drain_ms_max)
    server.closeAllConnections()
    await closed
    context.metrics.close()
  }

  const url = `http://${hostAndPort(host, address.port)}`
  servedEngine(engine).tell('listening', { server: 'operator', url })
  let drained: Promise<void> | undefined
  return {
    url,
    address,
    drain() {
      drained ??= drain()
      return drained
    },
  }
}

function notLoopback(host: string): RangeError {
  return new RangeError(
    `${host} is no loopback address: the operator's listener shows all tasks to whoever reaches ` +
      'it, so it takes 127.0.0.1, ::1 or localhost',
  )
}

/** Answers one request. Never rejects. */
async function serve(
  context: OperatorContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { counters } = context.engine
  try {
    checkSource(request.headers)
    if (context.draining) throw httpFault('shutting_down')
    const [target, base] = [request.url as string, 'http://localhost']
    if (!URL.canParse(target, base)) throw httpFault('bad_request', 'the path is no URL')
    const url = new URL(target, base)
    const row = paths.find(({ path }) => path === url.pathname)
    if (row === undefined) {
      const known = paths.map(({ path }) => path).join(', ')
      throw httpFault('not_found', `no such path; there are ${known}`)
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      throw httpFault('method_not_allowed', 'only GET', { allow: 'GET, HEAD' })
    }
    await row.serve({ context, request, response, query: url.searchParams })
    counters.countRequest('operator', 'ok')
  } catch (thrown) {
    counters.countRequest('operator', codeOf(thrown))
    refuse(context, response, thrown)
  }
}
