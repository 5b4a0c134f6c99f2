/**
 * The servers that `serve` starts: parses the addresses from the flags, starts the wanted servers
 * and drains them together, so that a signal gives every caller the same time. gRPC and the
 * operator's listener are loaded only if they are wanted.
 */
import { readFileSync } from 'node:fs'
import { missingOf, serverFiles } from '../../certs/folder.ts'
import { defined } from '../../core/defined.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { type HttpOptions, serveHttp } from '../../server/http/server.ts'
import type { OperatorOptions, OperatorServer } from '../../server/operator/server.ts'
import { isRangeError, unreachableError, usageError } from '../exit-codes.ts'
import { withFile, withProgram } from '../program.ts'
import { type Given, isOn, text } from '../verb.ts'

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

type HttpAddress = ListenAddress & Pick<HttpOptions, 'fd' | 'base' | 'public_url' | 'sync'>

type OperatorFlags = Pick<
  OperatorOptions,
  'tls' | 'token' | 'read_only' | 'console_plain_http' | 'command_line'
>

export interface WantedServers {
  readonly http?: HttpAddress
  readonly http_sync?: HttpAddress
  readonly operator?: ListenAddress & OperatorFlags
  readonly grpc?: ListenAddress & { readonly strict: boolean; readonly reflection: boolean }
}

/** The wanted servers. Throws a usage fault for flags that do not go together. */
export function wantedServers(given: Given, program: string): WantedServers {
  const http = httpAddressOf('http', text(given, 'http') ?? '127.0.0.1:8080')
  const http_sync = httpAddressOf('http-sync', text(given, 'http-sync') ?? 'off')
  const grpc = listenAddressOf('grpc', text(given, 'grpc') ?? 'off')
  const operator_default = isOn(given, 'demo') ? '127.0.0.1:8081' : 'off'
  const operator = listenAddressOf('operator', text(given, 'operator') ?? operator_default)
  const guard =
    ['operator-tls', 'operator-token-file'].find((name) => text(given, name)) ??
    ['operator-read-only', 'console-plain-http'].find((name) => isOn(given, name))
  if (operator === undefined && guard !== undefined) {
    throw usageError(`--${guard} is for --operator HOST:PORT`)
  }
  const base = text(given, 'base')
  const public_url = text(given, 'public-url')
  if (grpc !== undefined && text(given, 'tls') === undefined && !isOn(given, 'demo')) {
    throw usageError(
      '--grpc needs --tls DIR: `npx conveyor certs init DIR` makes these certificates',
    )
  }
  const command_line = withProgram(withFile('`npx conveyor VERB`', given), program).slice(1, -1)
  const paths = { ...defined({ base, public_url }) }
  return {
    ...(http === undefined ? {} : { http: { ...http, ...paths } }),
    ...(http_sync === undefined ? {} : { http_sync: { ...http_sync, ...paths, sync: true } }),
    ...(operator === undefined
      ? {}
      : { operator: { ...operator, ...guardsOf(given), command_line } }),
    ...(grpc === undefined
      ? {}
      : {
          grpc: {
            ...grpc,
            strict: isOn(given, 'grpc-strict'),
            reflection: isOn(given, 'reflection'),
          },
        }),
  }
}

/** What protects the operator's listener and its page. A token is never an argument. */
function guardsOf(given: Given): OperatorFlags {
  const folder = text(given, 'operator-tls')
  const file = text(given, 'operator-token-file')
  const token = file === undefined ? given.env.CONVEYOR_OPERATOR_TOKEN : tokenIn(file)
  return {
    ...(folder === undefined ? {} : { tls: { folder } }),
    ...(token === undefined || token === '' ? {} : { token }),
    read_only: isOn(given, 'operator-read-only'),
    console_plain_http: isOn(given, 'console-plain-http'),
  }
}

function tokenIn(file: string): string {
  try {
    const token = readFileSync(file, 'utf8').trim()
    if (token !== '') return token
  } catch (error) {
    throw usageError(`--operator-token-file: ${(error as Error).message}`)
  }
  throw usageError(`--operator-token-file: ${file} is empty`)
}

export type ServerFlag = 'http' | 'http-sync' | 'operator' | 'grpc' | 'address'

/** `127.0.0.1:8080`, `[::1]:0`; undefined for `off`. Throws a usage fault. */
export function listenAddressOf(flag: ServerFlag, given: string): ListenAddress | undefined {
  if (given === 'off') return undefined
  const [, six, name, digits] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):([0-9]{1,5})$/.exec(given) ?? []
  const host = six ?? name
  if (host === undefined || Number(digits) > 65_535) {
    throw usageError(`--${flag} takes HOST:PORT, such as 127.0.0.1:8080, or off`)
  }
  return { host, port: Number(digits) }
}

/** Also `fd:3`, a socket that the process was started with. */
function httpAddressOf(flag: ServerFlag, given: string): HttpAddress | undefined {
  const address = listenAddressOf(flag, given)
  return address?.host === 'fd' ? { ...address, fd: address.port } : address
}

export interface RunningServers {
  readonly http: string | undefined
  readonly http_sync: string | undefined
  readonly operator: string | undefined
  /** The operator's page, and what makes a one-time link to it. */
  readonly page: string | undefined
  readonly link: OperatorServer['link'] | undefined
  readonly grpc: string | undefined
  /** Drains all, each within the engine's `drain_ms_max` from now. */
  drain(): Promise<void>
}

/**
 * Starts all wanted servers or none: where one cannot listen, the others are drained. `tls` is the
 * folder of certificates, set where a gRPC server is wanted; `limits` are those of the servers.
 */
export async function startServers(
  engine: Engine,
  wanted: WantedServers,
  tls: string | undefined,
  limits: NonNullable<HttpOptions['limits']> = {},
): Promise<RunningServers> {
  const started: { drain(): Promise<void> }[] = []
  const drain = async (): Promise<void> => {
    await Promise.all(started.map((server) => server.drain()))
  }
  const start = async <Place extends ListenAddress, Server extends { drain(): Promise<void> }>(
    flag: ServerFlag,
    place: Place | undefined,
    open: (place: Place) => Promise<Server>,
  ): Promise<Server | undefined> => {
    if (place === undefined) return undefined
    const server = await listen(flag, place, () => open(place))
    started.push(server)
    return server
  }
  /** The addresses that the page shows, once each server listens. */
  const served: { http?: string; grpc?: string } = {}
  const openHttp = (place: HttpAddress) => serveHttp(engine, { ...place, limits })
  try {
    const http = await start('http', wanted.http, openHttp)
    const http_sync = await start('http-sync', wanted.http_sync, openHttp)
    const operator = await start('operator', wanted.operator, async (place) => {
      const { serveOperator } = await import('../../server/operator/server.ts')
      return serveOperator(engine, { ...place, servers: served })
    })
    const grpc = await start('grpc', wanted.grpc, async (place) => {
      const { serveGrpc } = await import('../../server/grpc/server.ts')
      return serveGrpc(engine, { ...place, limits, tls: { folder: tls as string } })
    })
    if (http !== undefined) served.http = http.url
    if (grpc !== undefined) served.grpc = grpc.address
    const urls = { http: http?.url, http_sync: http_sync?.url, operator: operator?.url }
    return { ...urls, page: operator?.page, link: operator?.link, grpc: grpc?.address, drain }
  } catch (error) {
    await drain()
    throw error
  }
}

export async function listen<Server>(
  flag: ServerFlag,
  { host, port }: ListenAddress,
  open: () => Promise<Server>,
): Promise<Server> {
  try {
    return await open()
  } catch (error) {
    if (isRangeError(error)) throw usageError(error.message)
    const { code, message } = error as NodeJS.ErrnoException
    const is_taken = code === 'EADDRINUSE' || /\bEADDRINUSE\b/.test(message)
    const why = is_taken ? `the port is taken, name another with --${flag}` : message
    throw unreachableError(`cannot listen on ${host} port ${port}: ${why}`)
  }
}

/** Throws for a folder that lacks a file of a server. */
export async function checkCertificates(folder: string): Promise<void> {
  const missing = await missingOf(folder, serverFiles)
  if (missing.length === 0) return
  throw unreachableError(
    `${folder} holds no ${missing.join(', ')}: \`npx conveyor certs init ${folder}\` makes them`,
  )
}
