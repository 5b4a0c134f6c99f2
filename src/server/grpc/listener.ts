/**
 * Accepts the sockets of the gRPC server: listens, performs the TLS handshake, bounds connections
 * and passes verified ones to grpc-js, whose own listener offers neither.
 *
 * Mutual TLS 1.2 or newer. A connection without a verified client certificate never reaches HTTP/2.
 * Session resumption is off: a resumed session is not verified again and may outlive its
 * certificate.
 */
import { constants } from 'node:crypto'
import { once } from 'node:events'
import {
  type AddressInfo,
  createServer as createPlainServer,
  type Server,
  type Socket,
} from 'node:net'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import type { Limits } from '../../core/limits.ts'
import {
  type Authenticator,
  anonymous,
  type Certificate,
  type CertificateNames,
} from './authenticate.ts'
import type { TlsSet } from './tls-files.ts'

export interface Listener {
  readonly address: AddressInfo
  /** Uses other certificates for handshakes from now on. */
  use(set: TlsSet): void
  /** Stops listening; open connections stay. Resolves when the last has closed. */
  close(): Promise<void>
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
  readonly onConnection: (socket: Socket) => void
  readonly onError: (error: unknown) => void
}

/** Rejects with the system's error where it cannot listen. */
export async function listen(how: ListenOptions): Promise<Listener> {
  const { tls, limits } = how
  const server = tls === undefined ? plainServer(how) : tlsServer(how, tls)
  server.maxConnections = limits.connections_max
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', ignore)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen({ host: how.host, port: how.port })
  await once(server, 'listening')
  server.on('error', how.onError)
  return {
    address: server.address() as AddressInfo,
    use: (set) => (server as TlsServer).setSecureContext(contextOf(set)),
    close: () => new Promise((resolve) => server.close(() => resolve())),
    destroyAll() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

function plainServer({ authenticator, onConnection }: ListenOptions): Server {
  return createPlainServer({ noDelay: true }, (socket) => {
    authenticator.connected(socket, anonymous)
    onConnection(socket)
  })
}

function tlsServer({ limits, authenticator, onConnection }: ListenOptions, tls: TlsSet): TlsServer {
  const server = createTlsServer({
    ...contextOf(tls),
    requestCert: true,
    rejectUnauthorized: true,
    ALPNProtocols: ['h2'],
    handshakeTimeout: limits.header_ms_max,
    noDelay: true,
  })
  // After a handshake timeout node leaves the socket open.
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.on('secureConnection', (socket) => {
    socket.on('error', ignore)
    const names = clientNames(authenticator, socket.getPeerCertificate() as Partial<Certificate>)
    if (!socket.authorized || socket.alpnProtocol !== 'h2' || names === undefined) {
      return void socket.destroy()
    }
    authenticator.connected(socket, names)
    onConnection(socket)
  })
  return server
}

/** OpenSSL rejects a certificate of another usage and accepts one without any, which is refused. */
function clientNames(
  authenticator: Authenticator,
  certificate: Partial<Certificate>,
): CertificateNames | undefined {
  if (certificate.raw === undefined) return undefined
  try {
    const names = authenticator.read(certificate as Certificate)
    return names.is_client ? names : undefined
  } catch {
    return undefined
  }
}

function contextOf({ ca, cert, key }: TlsSet): {
  readonly ca: Buffer
  readonly cert: Buffer
  readonly key: Buffer
  readonly minVersion: 'TLSv1.2'
  readonly secureOptions: number
} {
  return { ca, cert, key, minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_TICKET }
}

function ignore(): void {}
