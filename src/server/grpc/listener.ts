/**
 * Sockets for the gRPC server: listens, does the handshake, counts, and hands over what may speak
 * HTTP/2. grpc-js would listen itself, but has no say in the handshake and no count.
 *
 * Mutual TLS, 1.2 or newer, decides here and not at the first call: a connection without a verified
 * certificate that may be used by a client never reaches HTTP/2. No session is resumed, for a
 * resumed one is not verified again, and would outlive its certificate.
 */
import { constants } from 'node:crypto'
import {
  type AddressInfo,
  createServer as createPlainServer,
  type Server,
  type Socket,
} from 'node:net'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import type { Limits } from '../../core/limits.ts'
import type { CertificateNames } from './authenticate.ts'
import { type Authenticator, anonymous, type Certificate } from './authenticate.ts'
import type { TlsSet } from './tls-files.ts'

export interface Listener {
  readonly address: AddressInfo
  /** For the handshakes from now on. */
  use(set: TlsSet): void
  /** Takes no more connections; those there stay. Resolves when none is left. */
  close(): Promise<void>
  /** Ends every connection at once. */
  destroyAll(): void
}

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** Undefined: no TLS. */
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
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: how.host, port: how.port }, () => {
      server.off('error', reject)
      resolve()
    })
  })
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
  // node tells of a handshake that takes too long, and leaves the socket open.
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

/** OpenSSL refuses another usage, and takes a certificate that names none. */
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
