/**
 * A gRPC server over a real engine in memory, with one user and one process: start, wait for a
 * callback, end.
 */
import type { EventFields, EventName } from '../../src/core/event-table.ts'
import type { Emit } from '../../src/core/events.ts'
import type { LimitName } from '../../src/core/limits.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { type ServedEngine, servedEngine } from '../../src/engine/served-engine.ts'
import { type GrpcOptions, type GrpcServer, serveGrpc } from '../../src/grpc.ts'
import { openEngine } from '../../src/open.ts'
import { type Authority, sharedAuthority, type TestCertificate } from './grpc-certs.ts'
import { openClient, type TestClient } from './grpc-client.ts'
import { conv_id, process_definition, user } from './http-server.ts'

/** An event and its fields. */
export type EmittedEvent = { readonly event: EventName } & EventFields

export interface TestGrpc extends Authority, AsyncDisposable {
  readonly engine: ServedEngine
  readonly grpc: GrpcServer
  readonly bugs: unknown[]
  /** The events that the server has emitted. */
  readonly told: EmittedEvent[]
  /** With the shared client's certificate, or another; closed with the server. */
  connect(client?: TestCertificate, options?: object): TestClient
  close(): Promise<void>
}

export async function openGrpc(
  options: Partial<GrpcOptions> = {},
  over: Partial<ServedEngine> = {},
  authority?: Authority,
): Promise<TestGrpc> {
  const made = authority ?? (await sharedAuthority())
  const engine = servedEngine(await openEngine(':memory:', { limits: options.limits ?? {} }))
  await engine.processes.put(process_definition)
  await engine.users.add({ id: user })
  await engine.processes.share(conv_id, user)
  const bugs: unknown[] = []
  const told: EmittedEvent[] = []
  const emit: Emit = (event, fields) => void told.push({ event, ...fields })
  const tls = options.plain ? {} : { tls: { folder: made.folder } }
  const grpc = await serveGrpc(
    { ...engine, emit, ...over },
    { port: 0, ...tls, onBug: (bug) => bugs.push(bug), ...options },
  )
  const clients: TestClient[] = []
  const close = async (): Promise<void> => {
    for (const client of clients) client.close()
    await grpc.drain()
    await engine.close()
  }
  return {
    ...made,
    engine,
    grpc,
    bugs,
    told,
    connect(client = made.client, how = {}) {
      const opened = options.plain
        ? openClient(grpc.address, undefined, how)
        : openClient(grpc.address, { ca: made.ca, client }, how)
      clients.push(opened)
      return opened
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** What ends a call that waits: [with what, limits of the server, what is done, the outcome]. */
export function waitEnds(
  bound: string,
  change: (engine: Engine) => Promise<unknown>,
): readonly (readonly [
  what: string,
  limits: Partial<Record<LimitName, number>>,
  act: (server: Pick<TestGrpc, 'grpc' | 'engine'>, cancel: () => void) => unknown,
  outcome: string,
])[] {
  const shut = 'UNAVAILABLE shutting_down'
  return [
    ['its cancellation', {}, (_, cancel) => cancel(), 'CANCELLED Cancelled on client'],
    ['the drain', { drain_ms_max: 60_000 }, ({ grpc }) => void grpc.drain(), shut],
    ['its age', { grpc_age_ms_max: 1_000 }, () => {}, shut],
    ['the engine', {}, ({ engine }) => engine.close(), shut],
    [
      'the refusal of its certificate',
      {},
      async ({ engine }) => {
        await engine.users.unbind(bound)
        await change(engine)
      },
      'PERMISSION_DENIED access_denied',
    ],
  ]
}
