/**
 * Tells of each TLS connection that is refused, once, with why and from where, and ends it. Nothing
 * of a certificate is told, because whoever connects chooses what stands in it.
 */
import type { Server, TLSSocket } from 'node:tls'
import type { Emit } from '../../core/events.ts'
import type { CertificateRefusal } from './client-certificates.ts'

/** Why a handshake has failed; `broken_off` by the peer, or by a version of TLS of its own. */
type HandshakeFailure = 'plain_text' | 'old_tls' | 'no_protocol' | 'timeout' | 'broken_off'

/** By the codes of OpenSSL and node. */
const failures: Readonly<Record<string, HandshakeFailure | CertificateRefusal>> = {
  ERR_SSL_HTTP_REQUEST: 'plain_text',
  ERR_SSL_HTTPS_PROXY_REQUEST: 'plain_text',
  ERR_SSL_WRONG_VERSION_NUMBER: 'plain_text',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'old_tls',
  ERR_SSL_NO_APPLICATION_PROTOCOL: 'no_protocol',
  ERR_TLS_HANDSHAKE_TIMEOUT: 'timeout',
}

export type RefuseConnection = (
  socket: TLSSocket,
  code: HandshakeFailure | CertificateRefusal,
) => void

/** Refuses the handshakes that fail; the returned function refuses a connection after its own. */
export function refuseHandshakes(
  server: Server,
  name: 'grpc' | 'operator',
  emit: Emit,
): RefuseConnection {
  const refuse: RefuseConnection = (socket, code) => {
    const address = socket.remoteAddress
    // A peer that goes away, such as a probe of the port, is no refusal of ours.
    if (code !== 'broken_off') emit('certificate_refused', { server: name, code, address })
    socket.destroy()
  }
  // After a handshake timeout node leaves the socket open.
  server.on('tlsClientError', ({ code = '' }: NodeJS.ErrnoException, socket) =>
    refuse(socket, failures[code] ?? 'broken_off'),
  )
  return refuse
}
