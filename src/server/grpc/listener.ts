/**
 * Accepts the sockets of the gRPC server: listens, performs the TLS handshake, bounds connections
 * and passes verified ones to grpc-js, whose own listener does neither.
 *
 * Mutual TLS 1.2 or newer. A connection without a verified client certificate never reaches HTTP/2.
 * Session resumption is off, because a resumed session is not verified again.
 */
import { once } from 'node:events'
import {
  type AddressInfo,
  createServer as createPlainServer,
  type Server,
  type Socket,
} from 'node:net'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import type { Emit } from '../../core/events.ts'
import type { Limits } from '../../core/limits.ts'
import { destroyLater, linger_ms, newAddressConnections } from '../http/connection.ts'
import { type CertificateReader, refuseHandshakes } from '../tls/client-certificates.ts'
import { secureOptions, type TlsSet } from '../tls/tls-files.ts'
import { type Authenticator, anonymous } from './authenticate.ts'
import { newRepeatedCheck } from './receive-bounds.ts'

export interface Listener {
  readonly address: AddressInfo
  /** Replaces the certificates for later handshakes. */
  use(set: TlsSet): void
  /** Stops listening; open connections stay. Resolves when the last has closed. */
  close(): Promise<void>
  /** Connections so far. */
  seen(): number
  /** Destroys every connection. */
  destroyAll(): void
}

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** Undefined for no TLS. */
  readonly tls: TlsSet | undefined
  readonly limits: Limits
  readonly authenticator: Authenticator
  readonly readCertificate: CertificateReader
  readonly emit: Emit
  readonly onConnection: (socket: Socket) => void
  readonly onBug: (error: unknown) => void
}

/** Rejects with the system's error where it cannot listen. */
export async function listen(how: ListenOptions): Promise<Listener> {
  const { tls, limits } = how
  const ended = newEndedSockets(Math.min(linger_ms, limits.header_ms_max))
  const served = {
    ...how,
    onConnection(socket: Socket) {
      ended.watch(socket)
      how.onConnection(socket)
    },
  }
  const server = tls === undefined ? plainServer(served) : tlsServer(served, tls)
  server.maxConnections = limits.connections_max
  const sockets = new Set<Socket>()
  let seen = 0
  const addresses = newAddressConnections(limits.address_connections_max)
  const emitOverloaded = (address: string | undefined): void =>
    how.emit('request_refused', { server: 'grpc', code: 'overloaded', address })
  // Runs before the handshake, for which the server listens already.
  server.prependListener('connection', (socket: Socket) => {
    seen++
    if (!addresses.enter(socket)) {
      emitOverloaded(socket.remoteAddress)
      return void socket.destroy()
    }
    sockets.add(socket)
    socket.on('error', ignore)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('drop', (from) => emitOverloaded(from?.remoteAddress))
  server.listen({ host: how.host, port: how.port })
  await once(server, 'listening')
  server.on('error', how.onBug)
  return {
    address: server.address() as AddressInfo,
    use: (set) => (server as TlsServer).setSecureContext(secureOptions(set)),
    close: () => new Promise((resolve) => server.close(() => resolve())),
    seen: () => seen,
    destroyAll() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

/**
 * Destroys connections that HTTP/2 has ended on our side only, because they were idle or too old: a
 * peer that does not read would keep them for ever.
 */
function newEndedSockets(ms_max: number): { watch(socket: Socket): void } {
  const sockets = new Set<Socket>()
  const check = newRepeatedCheck(ms_max, () => {
    for (const socket of sockets) {
      if (!socket.writableEnded) continue
      sockets.delete(socket)
      if (!socket.destroyed) destroyLater(socket, ms_max)
    }
    return sockets.size > 0
  })
  return {
    watch(socket) {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      check()
    },
  }
}

function plainServer({ authenticator, onConnection }: ListenOptions): Server {
  return createPlainServer({ noDelay: true }, (socket) => {
    if (socket.destroyed) return
    authenticator.connected(socket, anonymous)
    onConnection(socket)
  })
}

function tlsServer(
  { limits, authenticator, readCertificate, emit, onConnection }: ListenOptions,
  tls: TlsSet,
): TlsServer {
  const server = createTlsServer({
    ...secureOptions(tls),
    requestCert: true,
    // Refused below: node would forget the address of whom it refuses.
    rejectUnauthorized: false,
    ALPNProtocols: ['h2'],
    handshakeTimeout: limits.header_ms_max,
    noDelay: true,
  })
  const refuse = refuseHandshakes(server, 'grpc', emit)
  server.on('secureConnection', (socket) => {
    socket.on('error', ignore)
    const names = readCertificate(socket)
    if (typeof names === 'string') return refuse(socket, names)
    if (socket.alpnProtocol !== 'h2') return refuse(socket, 'no_protocol')
    authenticator.connected(socket, names)
    onConnection(socket)
  })
  return server
}

function ignore(): void {}
