/**
 * An engine in memory with an HTTP and a gRPC server, and a client for each.
 */
import { join } from 'node:path'
import { addClient, initFolder } from '../../src/certs/folder.ts'
import { type Client, connect, type GrpcTarget, type HttpTarget } from '../../src/client.ts'
import { systemChance, systemClock } from '../../src/core/clock.ts'
import { type ServedEngine, servedEngine } from '../../src/engine/served-engine.ts'
import { serveGrpc } from '../../src/grpc.ts'
import { serveHttp } from '../../src/http.ts'
import { openEngine } from '../../src/open.ts'
import { conv_id, process_definition, user } from './http-server.ts'

export const transports = ['http', 'grpc'] as const
export type TransportName = (typeof transports)[number]

export interface ClientServers extends AsyncDisposable {
  readonly engine: ServedEngine
  readonly clients: Readonly<Record<TransportName, Client>>
  /** What the clients were made with, for others with other options. */
  readonly targets: {
    readonly http: HttpTarget & { readonly url: string }
    readonly grpc: GrpcTarget & { readonly address: string }
  }
  /** Drains both servers. */
  drain(): Promise<void>
  close(): Promise<void>
}

/** `over` replaces members of the engine that the servers see; certificates go into `folder`. */
export async function openClientServers(
  folder: string,
  over: (engine: ServedEngine) => Partial<ServedEngine> = () => ({}),
): Promise<ClientServers> {
  const making = { now_ms: systemClock.now_ms(), chance: systemChance }
  await initFolder(folder, [], making)
  const { names } = await addClient(folder, 'billing', making)
  const engine = servedEngine(await openEngine(':memory:'))
  await engine.processes.put(process_definition)
  const { secret } = await engine.users.add({ id: user })
  await engine.processes.share(conv_id, user)
  await engine.users.bind(user, names[0] as string)
  const seen = { ...engine, ...over(engine) }
  const http = await serveHttp(seen, { port: 0 })
  const grpc = await serveGrpc(seen, { host: '127.0.0.1', port: 0, tls: { folder } })
  const targets = {
    http: { url: http.url, user, secret },
    grpc: {
      address: grpc.address,
      ca: join(folder, 'ca.crt'),
      cert: join(folder, 'billing.crt'),
      key: join(folder, 'billing.key'),
    },
  }
  const clients = { http: await connect(targets.http), grpc: await connect(targets.grpc) }
  const drain = async () => void (await Promise.all([http.drain(), grpc.drain()]))
  const close = async (): Promise<void> => {
    await Promise.all(transports.map((transport) => clients[transport].close()))
    await drain()
    await engine.close()
  }
  return { engine, clients, targets, drain, close, [Symbol.asyncDispose]: close }
}
