/**
 * The gRPC server: sets the bounds of a grpc-js server from the limits, listens and drains. Sockets
 * come from our own listener; the service definition has our own codec. It installs no process-wide
 * handler and never exits the process.
 */
import {
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptor,
  type ServiceDefinition,
} from '@grpc/grpc-js'
import { keepAlive, systemClock, within } from '../../core/clock.ts'
import { bugReporter } from '../../core/events.ts'
import { fault } from '../../core/faults.ts'
import { hostAndPort, isLoopback } from '../../core/host.ts'
import { limitsWith } from '../../core/limits.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import { linger_ms } from '../http/connection.ts'
import { drainOnce, inputRead, newUnderway, type ServerOptions } from '../http/underway.ts'
import { newCertificateReader } from '../tls/client-certificates.ts'
import { readTls, type TlsOptions, watchTls } from '../tls/tls-files.ts'
import { newAuthenticator } from './authenticate.ts'
import { listenerFor, passedOn, type Received, type Rpc, type ServerContext } from './call.ts'
import { addHealth } from './health.ts'
import { type Listener, listen } from './listener.ts'
import { newReceiveBounds, newReception } from './receive-bounds.ts'
import { loadSchema, type Schema, service_name } from './schema.ts'
import { newAnswerTurns, newUnreadAnswers } from './sent-answers.ts'
import { stream_rpc } from './stream.ts'
import { json_rpc, search_rpcs, unary_rpcs, wait_rpc } from './unary.ts'
import { watch_rpc } from './watch.ts'

export interface GrpcOptions extends ServerOptions {
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** 0 picks a free one. */
  readonly port: number
  /** The certificate files, reloaded when they change. Required unless `plain`. */
  readonly tls?: TlsOptions
  /** Refuses certificates without a binding, which may otherwise use every process. */
  readonly strict?: boolean
  /** Serves gRPC reflection. */
  readonly reflection?: boolean
  /** No TLS, for tests on loopback: every caller may use every process. */
  readonly plain?: true
}

export interface GrpcServer {
  /** `host:port` for a client, such as `127.0.0.1:41234`. */
  readonly address: string
  /**
   * Refuses new connections and calls, ends streams once their begun batches are answered, gives
   * calls under way `drain_ms_max`, then closes every connection. Resolves when the port is free;
   * the engine stays open.
   */
  drain(): Promise<void>
}

/**
 * Starts the server. Rejects with the system's error where it cannot listen or a file is missing,
 * with an Error that describes unusable certificates, and with a RangeError for invalid options.
 */
export async function serveGrpc(engine: Engine, options: GrpcOptions): Promise<GrpcServer> {
  const { host = '127.0.0.1', port, strict = false } = options
  const plain = options.plain === true
  if (plain === (options.tls !== undefined)) throw new RangeError('either tls or plain')
  if (plain && !isLoopback(host)) throw new RangeError('plain is for loopback alone')
  const limits = limitsWith({ ...engine.limits, ...options.limits })
  const tls = options.tls === undefined ? undefined : await readTls(options.tls)
  const served = servedEngine(engine)
  const onBug = bugReporter(served.emit, options.onBug)
  const receive_bounds = newReceiveBounds(limits)
  const authenticator = newAuthenticator(served, strict, receive_bounds)
  const context: ServerContext = {
    engine: served,
    limits,
    authenticator,
    onBug,
    drain_callbacks: new Set(),
    underway: newUnderway(),
    reception: newReception(limits.request_ms_max, (call) => call.giveUp(fault('request_timeout'))),
    receive_bounds,
    unread: newUnreadAnswers(limits.idle_ms_max, ({ remoteAddress: address }) =>
      served.emit('request_refused', { server: 'grpc', code: 'request_timeout', address }),
    ),
    answer: newAnswerTurns(),
    draining: false,
  }

  const schema = loadSchema()
  const server = newServer(context, schema)
  if (options.reflection) {
    const { ReflectionService } = await import('@grpc/reflection')
    new ReflectionService(schema.package).addToServer(server)
  }
  const endHealth = addHealth(server, context)
  const sockets = server.createConnectionInjector(ServerCredentials.createInsecure())
  let listener: Listener
  try {
    listener = await listen({
      host,
      port,
      tls,
      limits,
      authenticator,
      readCertificate: await newCertificateReader(),
      emit: served.emit,
      onConnection(socket) {
        // The handshake ended after the drain began; grpc-js would begin a session.
        if (context.draining) socket.destroy()
        else sockets.injectConnection(socket)
      },
      onBug,
    })
  } catch (error) {
    endHealth()
    throw error
  }
  const unwatchTls =
    tls === undefined || options.tls === undefined
      ? () => {}
      : watchTls({
          ...{ options: options.tls, first: tls, every_ms: limits.tls_reload_ms },
          ...{ server: 'grpc', emit: served.emit, counters: served.counters },
          use: listener.use,
        })

  const drain = async (): Promise<void> => {
    context.draining = true
    unwatchTls()
    endHealth()
    await inputRead(listener.seen)
    const closed = listener.close()
    for (const end of [...context.drain_callbacks]) end()
    // Calls back before calls on injected connections have ended, so these are counted.
    server.tryShutdown(() => {})
    await Promise.race([closed, context.underway.quiet(limits.drain_ms_max)])
    // Vanished callers do not close their side.
    await within(systemClock, Math.min(linger_ms, limits.drain_ms_max), closed).finally(keepAlive())
    server.forceShutdown()
    listener.destroyAll()
    await closed
  }
  const address = hostAndPort(host, listener.address.port)
  served.emit('listening', { server: 'grpc', address })
  return {
    address,
    drain: drainOnce(drain),
  }
}

const rpcs: Readonly<Record<string, Rpc>> = {
  ...unary_rpcs,
  ...search_rpcs,
  StreamOps: stream_rpc,
  ApplyJson: json_rpc,
  WaitTask: wait_rpc,
  WatchTasks: watch_rpc,
}

/** Serves the calls of our service, and passes all others on to their handlers. */
function newInterceptor(context: ServerContext): ServerInterceptor {
  const by_path = new Map(
    Object.entries(rpcs).map(([name, rpc]) => [`/${service_name}/${name}`, rpc]),
  )
  return (method, call) => {
    const rpc = by_path.get(method.path)
    if (rpc === undefined) return passedOn(context, call, method)
    return Object.assign(new ServerInterceptingCall(call), {
      start: () => call.start(listenerFor(context, call, rpc, method)),
    })
  }
}

function newServer(context: ServerContext, { service }: Schema): Server {
  const { limits } = context
  const server = new Server({
    interceptors: [newInterceptor(context)],
    'grpc.max_receive_message_length': limits.body_bytes_max,
    // `answer_bytes_max` bounds responses before they are encoded.
    'grpc.max_send_message_length': -1,
    'grpc.max_concurrent_streams': limits.grpc_streams_max,
    'grpc-node.max_session_memory': Math.max(1, Math.ceil(limits.grpc_session_bytes_max / 1e6)),
    'grpc.max_connection_idle_ms': limits.grpc_idle_ms_max,
    'grpc.max_connection_age_ms': limits.grpc_age_ms_max,
    // Gives a stream opened at the last moment its full age.
    'grpc.max_connection_age_grace_ms': limits.grpc_age_ms_max,
    'grpc.keepalive_time_ms': limits.grpc_ping_ms,
    'grpc.keepalive_timeout_ms': limits.header_ms_max,
    'grpc.enable_channelz': 0,
  })
  const definition: Record<string, object> = {}
  for (const [name, { read }] of Object.entries(rpcs)) {
    const requestDeserialize = (bytes: Buffer): Received => ({
      message: read(bytes, limits.ops_max),
      bytes,
    })
    // Responses are encoded already.
    const codec = { requestDeserialize, responseSerialize: (bytes: Buffer) => bytes }
    definition[name] = { ...service[name as keyof typeof service], ...codec }
  }
  // The interceptor serves these calls; handlers are not called.
  server.addService(definition as ServiceDefinition, {})
  return server
}
