/**
 * The clients of a TLS server: the names in their certificates, and the refusal of bad certificates
 * and failed handshakes. Names and expiry are parsed once per certificate and cached.
 */

import { createHash } from 'node:crypto'
import type { Server, TLSSocket } from 'node:tls'
import { loadX509, type X509 } from '../../certs/x509.ts'
import type { Emit } from '../../core/events.ts'

/** As a TLS socket returns it: DER bytes and fingerprint. */
interface Certificate {
  readonly raw: Buffer
  readonly fingerprint256: string
}

export interface CertificateNames {
  readonly names: readonly string[]
  /** The first millisecond at which the certificate is no longer valid. */
  readonly ends_ms: number
  /** Whether the certificate names TLS client authentication among its usages. */
  readonly is_client: boolean
}

/** Why a certificate is refused. */
export type CertificateRefusal =
  | 'no_certificate'
  | 'unknown_authority'
  | 'expired'
  | 'not_yet_valid'
  | 'not_for_clients'

/** By the codes of OpenSSL; any other code concerns the authority. */
const refusals: Readonly<Record<string, CertificateRefusal>> = {
  CERT_HAS_EXPIRED: 'expired',
  CERT_NOT_YET_VALID: 'not_yet_valid',
  INVALID_PURPOSE: 'not_for_clients',
}

/** Reads the certificate of a connection whose handshake is done. */
export type CertificateReader = (socket: TLSSocket) => CertificateNames | CertificateRefusal

const cache_entries_max = 1_024

export async function newCertificateReader(): Promise<CertificateReader> {
  const x509 = await loadX509()
  /** By fingerprint. */
  const cache = new Map<string, CertificateNames>()

  /** Throws what the parser throws for malformed bytes. */
  function read({ raw, fingerprint256 }: Certificate): CertificateNames {
    const cached = cache.get(fingerprint256)
    if (cached !== undefined) return cached
    const names = certificateNames(x509, raw)
    // Evicts the oldest entry; a certificate still in use is read again.
    if (cache.size >= cache_entries_max) cache.delete(cache.keys().next().value as string)
    cache.set(fingerprint256, names)
    return names
  }

  return (socket) => {
    const certificate = socket.getPeerCertificate() as Partial<Certificate>
    if (certificate.raw === undefined) return 'no_certificate'
    if (!socket.authorized) {
      // Declared as an Error, but node sets the code.
      return refusals[String(socket.authorizationError)] ?? 'unknown_authority'
    }
    try {
      const names = read(certificate as Certificate)
      // OpenSSL accepts a certificate without usages.
      return names.is_client ? names : 'not_for_clients'
    } catch {
      return 'unknown_authority'
    }
  }
}

/**
 * The names in a certificate, from its DER: `uri:` and `dns:` from its alternative names, `cn:`
 * only where it has no alternative names at all, and `sha256:` with its fingerprint. Alternative
 * names of other kinds yield no name and still suppress the common name.
 *
 * Node's own text form of the names is ambiguous (a name may contain its separator), hence DER.
 * Throws what the parser throws for malformed bytes.
 */
function certificateNames(x509: X509, der: Buffer): CertificateNames {
  const certificate = new x509.X509Certificate(der)
  const usage = certificate.getExtension(x509.ExtendedKeyUsageExtension)
  const alternative = certificate.getExtension(x509.SubjectAlternativeNameExtension)
  const names =
    alternative === null
      ? certificate.subjectName.getField('CN').map((cn) => `cn:${cn}`)
      : alternative.names.items.flatMap(({ type, value }) =>
          type === 'url' ? [`uri:${value}`] : type === 'dns' ? [`dns:${value}`] : [],
        )
  return {
    names: [...names, `sha256:${createHash('sha256').update(der).digest('hex')}`],
    ends_ms: certificate.notAfter.getTime(),
    is_client: usage?.usages.includes(x509.ExtendedKeyUsage.clientAuth) ?? false,
  }
}

/** Why a handshake failed; `broken_off` by the peer. */
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

/**
 * Logs and ends failed handshakes; the returned function refuses a connection after its handshake.
 * Nothing of a certificate is logged, because its sender chooses the content.
 */
export function refuseHandshakes(
  server: Server,
  name: 'grpc' | 'operator',
  emit: Emit,
): RefuseConnection {
  const refuse: RefuseConnection = (socket, code) => {
    const address = socket.remoteAddress
    // A peer that leaves, such as a port probe, was not refused.
    if (code !== 'broken_off') emit('certificate_refused', { server: name, code, address })
    socket.destroy()
  }
  // After a handshake timeout node leaves the socket open.
  server.on('tlsClientError', ({ code = '' }: NodeJS.ErrnoException, socket) =>
    refuse(socket, failures[code] ?? 'broken_off'),
  )
  return refuse
}
