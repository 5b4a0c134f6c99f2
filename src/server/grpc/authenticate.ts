/**
 * Authenticates a call by the verified client certificate of its connection, as the caller to which
 * the names in it are bound (wire 2).
 *
 * The names and the expiry of a certificate are read once and cached. The bindings and the expiry
 * are checked again for each message, because a call may be open for long.
 */
import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import { loadX509, type X509 } from '../../certs/x509.ts'
import { systemClock } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import type { Caller } from '../../core/model.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import type { AnswerAccount } from '../../engine/unread-answers.ts'

export interface Authenticator {
  /** The names in a certificate. Throws what the parser throws for malformed bytes. */
  read(certificate: Certificate): CertificateNames
  /** Registers an accepted connection with its certificate's names until the socket closes. */
  connected(socket: Socket, names: Pick<CertificateNames, 'names' | 'ends_ms'>): void
  /** The peer at `address` (`host:port`). Throws `access_denied` where its connection is gone. */
  peerAt(address: string): Peer
  /**
   * Throws `bad_signature` for an expired certificate, and `access_denied` where its names are
   * refused, are bound to different users or, under `strict`, are not bound at all.
   */
  requireCaller(peer: Peer): Caller
}

/** The caller of a peer. Throws `shutting_down`, or what `Authenticator.requireCaller` throws. */
export function authenticate(
  server: { readonly authenticator: Authenticator; readonly draining: boolean },
  peer: Peer,
): Caller {
  if (server.draining) throw fault('shutting_down')
  return server.authenticator.requireCaller(peer)
}

/** The client side of a connection. */
export interface Peer extends Pick<CertificateNames, 'names' | 'ends_ms'> {
  readonly answers: AnswerAccount
}

/** As node's TLS socket gives it: the DER bytes and their fingerprint. */
export interface Certificate {
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

/** The names of a caller on a server without TLS. */
export const anonymous = { names: [], ends_ms: Number.POSITIVE_INFINITY }

const cache_entries_max = 1_024

export async function newAuthenticator(
  engine: ServedEngine,
  strict: boolean,
): Promise<Authenticator> {
  const x509 = await loadX509()
  /** By fingerprint. */
  const cache = new Map<string, CertificateNames>()
  /** HTTP/2 forbids renegotiation, so a connection keeps its certificate. */
  const peers = new Map<string, Peer>()

  return {
    read({ raw, fingerprint256 }) {
      const cached = cache.get(fingerprint256)
      if (cached !== undefined) return cached
      const names = certificateNames(x509, raw)
      // Evicts the oldest entry; a certificate still in use is read again.
      if (cache.size >= cache_entries_max) cache.delete(cache.keys().next().value as string)
      cache.set(fingerprint256, names)
      return names
    },
    connected(socket, { names, ends_ms }) {
      // The form in which grpc-js names a peer.
      const address = `${socket.remoteAddress}:${socket.remotePort}`
      const peer = { names, ends_ms, answers: engine.answerAccount() }
      peers.set(address, peer)
      socket.once('close', () => {
        if (peers.get(address) === peer) peers.delete(address)
      })
    },
    peerAt(address) {
      const peer = peers.get(address)
      if (peer === undefined) throw fault('access_denied', 'no certificate')
      return peer
    },
    requireCaller({ names, ends_ms }) {
      if (systemClock.now_ms() >= ends_ms) {
        throw fault('bad_signature', 'the certificate has expired')
      }
      const caller = engine.callerOf(names, strict)
      if (caller === undefined) {
        throw fault('access_denied', 'this certificate is not allowed to call')
      }
      return caller
    },
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
