/**
 * `serve` as a node of a cluster: a standby, then the owner with its servers, then a standby again,
 * in one process, until a stop signal or a failure other than the loss of the ownership. The
 * operator's listener answers in every role. The others are open only at the owner, so that callers
 * of a standby are refused before they send anything; with `--stale-reads` a standby answers reads.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { hostname } from 'node:os'
import { type PostgresLog, postgresLog } from '../../cluster/node/node.ts'
import { isOwnershipLost } from '../../cluster/ownership/owner-row.ts'
import { defined } from '../../core/defined.ts'
import type { Emit } from '../../core/events.ts'
import { type Fault, isFault } from '../../core/faults.ts'
import { hostAndPort } from '../../core/host.ts'
import type { Limits } from '../../core/limits.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import type { CommitLogSource } from '../../store/commit-log/source.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { type Given, isOn, text } from '../verb.ts'
import { wholeNumber } from './flags.ts'
import { printNode, printRole } from './listening.ts'
import type { ServeLog } from './log.ts'
import {
  checkCertificates,
  type ListenAddress,
  listen,
  listenAddressOf,
  type ServerFlag,
  type WantedServers,
} from './servers.ts'
import type { Stop } from './stop.ts'

export interface ServedNode {
  readonly log: PostgresLog
  readonly wanted: WantedServers
  readonly address: string
}

/** One time as the owner, from the opening of the engine to its close. */
export interface Tenure {
  readonly commit_log: CommitLogSource
  readonly stop: Stop
  /** The engine that serves; undefined once the tenure begins to end. */
  use(engine: Engine | undefined): void
  /** The engine for reads while this node is a standby; undefined once it ends. */
  read(reader: Engine | undefined): void
}

/** Undefined without --commit-log. Chooses the ports that are 0, for all tenures. */
export async function nodeOf(given: Given, asked: WantedServers): Promise<ServedNode | undefined> {
  const url = text(given, 'commit-log')
  if (url === undefined) {
    const texts = ['node', 'address', 'partition', 'lease-ms', 'stale-reads-max-age']
    const flag = isOn(given, 'stale-reads')
      ? 'stale-reads'
      : texts.find((name) => text(given, name))
    if (flag !== undefined && given.env.CONVEYOR_COMMIT_LOG === undefined) {
      throw usageError(`--${flag} is for --commit-log URL`)
    }
    return undefined
  }
  if (isOn(given, 'demo')) throw usageError('--demo is for a data file of its own')
  if (asked.http?.fd !== undefined || asked.http_sync?.fd !== undefined) {
    throw usageError(
      'with --commit-log the socket cannot be handed in (fd): the kernel would take connections ' +
        'that a standby does not answer; name HOST:PORT',
    )
  }
  const wanted = await withPorts(asked)
  const address = addressOf(given, wanted)
  const [partition, lease_ms] = ['partition', 'lease-ms'].map((flag) => {
    const value = text(given, flag)
    return value === undefined ? undefined : wholeNumber(flag, value)
  })
  try {
    const log = postgresLog({
      ...{ url, address, node: text(given, 'node') ?? hostname() },
      ...defined({ partition, lease_ms }),
      unsafe: isOn(given, 'unsafe-commit-log'),
    })
    return { log, wanted, address }
  } catch (error) {
    throw isFault(error) ? usageError(error.message) : error
  }
}

/** Serves tenure after tenure; `serveTenure` resolves with the failure that ended one, if any. */
export async function serveNode(
  { log, wanted, address }: ServedNode,
  { given, io, stop, log: { emit } }: { given: Given; io: Io; stop: Stop; log: ServeLog },
  limits: Limits,
  serveTenure: (tenure: Tenure) => Promise<Fault | undefined>,
): Promise<Exit> {
  // A standby that cannot serve fails now, not at the takeover.
  const tls = text(given, 'tls')
  if (wanted.grpc !== undefined && tls !== undefined) await checkCertificates(tls)
  const urls = urlsOf(wanted)
  const operator = await openOperator(log, wanted, { emit, limits }, urls)
  const printer = rolePrinter(given, io, log)
  try {
    const { url, page, link } = operator ?? {}
    await printNode(given, io, { node: log.node, address }, { ...urls, operator: url, page, link })
    let is_stopped = false
    void stop.reason.then(() => {
      is_stopped = true
      log.leave()
    })
    for (;;) {
      const failure = await oneTenure(stop, log, () => is_stopped, {
        use(engine) {
          operator?.use(engine)
          if (engine !== undefined) printer.print()
        },
        read: (reader) => operator?.read(reader),
        serveTenure,
      })
      if (failure !== undefined) return exits.unreachable
      if (is_stopped) return exits.done
    }
  } finally {
    await operator?.drain()
    await printer.end()
  }
}

async function oneTenure(
  stop: Stop,
  log: PostgresLog,
  isStopped: () => boolean,
  {
    use,
    read,
    serveTenure,
  }: Pick<Tenure, 'use' | 'read'> & { serveTenure: (tenure: Tenure) => Promise<Fault | undefined> },
): Promise<Fault | undefined> {
  let end = (): void => {}
  const ended = new Promise<undefined>((resolve) => {
    end = () => resolve(undefined)
  })
  const forget = log.onHandOver(end)
  const commit_log: CommitLogSource = {
    ...log,
    open(opening) {
      const opened = log.open(opening)
      // A signal before the open could not end its wait.
      if (isStopped()) log.leave()
      return opened
    },
  }
  try {
    return await serveTenure({
      ...{ commit_log, use, read },
      stop: {
        reason: Promise.race([stop.reason, ended]),
        fail: (failure) => (isOwnershipLost(failure) ? end() : stop.fail(failure)),
        failure: stop.failure,
        dispose() {},
      },
    })
  } catch (error) {
    if (isStopped() && isFault(error) && error.code === 'shutting_down') return undefined
    // Another node has taken over while the engine opened.
    if (isOwnershipLost(error)) return undefined
    // The database did not answer for a whole lease: the node waits for it as a standby.
    if ((error as { code?: unknown } | null)?.code === 'overloaded') return undefined
    throw error
  } finally {
    forget()
  }
}

async function openOperator(
  log: PostgresLog,
  { operator }: WantedServers,
  source: { readonly emit: Emit; readonly limits: Limits },
  { http, grpc }: ReturnType<typeof urlsOf>,
) {
  if (operator === undefined) return undefined
  const servers = { ...(http && { http }), ...(grpc && { grpc }) }
  const { serveNodeOperator } = await import('../../server/operator/server.ts')
  return listen('operator', operator, () =>
    serveNodeOperator(log, source, { ...operator, servers }),
  )
}

/** Prints each change of role; `print` prints that to the owner once it serves. */
function rolePrinter(given: Given, io: Io, log: PostgresLog) {
  let printed = Promise.resolve()
  const print = (status = log.status()): void => {
    printed = printed.then(() => printRole(given, io, status))
  }
  const forget = log.onRole((status) => {
    if (status.role !== 'owner') print(status)
  })
  return {
    print: () => print(),
    end(): Promise<void> {
      forget()
      return printed
    },
  }
}

/** Checks that each port is free, and chooses those that are 0. */
async function withPorts(asked: WantedServers): Promise<WantedServers> {
  const flags = { http: 'http', http_sync: 'http-sync', grpc: 'grpc' } as const
  const wanted: Record<string, unknown> = { ...asked }
  for (const [name, flag] of Object.entries(flags)) {
    const place = asked[name as keyof typeof flags]
    if (place !== undefined) wanted[name] = { ...place, port: await freePortOf(flag, place) }
  }
  return wanted
}

async function freePortOf(flag: ServerFlag, place: ListenAddress): Promise<number> {
  return listen(flag, place, async () => {
    const server = createServer().listen({ host: place.host, port: place.port })
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    server.close()
    await once(server, 'close')
    return port
  })
}

const any_hosts: readonly string[] = ['0.0.0.0', '::']

function addressOf(given: Given, { http, grpc }: WantedServers): string {
  const named = text(given, 'address')
  const place = named === undefined ? (http ?? grpc) : listenAddressOf('address', named)
  if (place === undefined || place.port === 0) {
    if (named !== undefined) throw usageError('--address takes HOST:PORT, such as 10.0.0.1:8080')
    return ''
  }
  return hostAndPort(any_hosts.includes(place.host) ? hostname() : place.host, place.port)
}

function urlsOf({ http, http_sync, grpc }: WantedServers) {
  const urlOf = (place: typeof http): string | undefined =>
    place && `http://${hostAndPort(place.host, place.port)}${place.base?.replace(/\/+$/, '') ?? ''}`
  return {
    http: urlOf(http),
    http_sync: urlOf(http_sync),
    grpc: grpc && hostAndPort(grpc.host, grpc.port),
  }
}
