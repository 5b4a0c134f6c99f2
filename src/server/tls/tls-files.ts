/**
 * Reads the files of a TLS server and reloads them when they change.
 *
 * A set is used only if the key matches the certificate and a CA certificate is present, without
 * which node would trust every public CA. An unusable set leaves the old one in use.
 */
import { constants, createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { systemClock } from '../../core/clock.ts'
import type { Counters } from '../../core/counters.ts'
import type { Emit } from '../../core/events.ts'
import { poll } from '../../core/poll.ts'

export type TlsOptions =
  | { readonly ca_path: string; readonly cert_path: string; readonly key_path: string }
  /** Holds `ca.crt`, `server.crt` and `server.key`. */
  | { readonly folder: string }

export interface TlsSet {
  /** Undefined if no client certificates are requested. */
  readonly ca: Buffer | undefined
  readonly cert: Buffer
  readonly key: Buffer
}

/**
 * Rejects with the system's error for a missing file, or an Error that names the defect.
 * `needs_ca`: the server requests client certificates.
 */
export async function readTls(options: TlsOptions, needs_ca = true): Promise<TlsSet> {
  const set = await readSet(options, needs_ca)
  checkSet(set)
  return set
}

export interface WatchedTls {
  readonly options: TlsOptions
  readonly first: TlsSet
  readonly every_ms: number
  /** The server's name in events. */
  readonly server: 'grpc' | 'operator'
  readonly emit: Emit
  /** Receives the expiry of the certificate. */
  readonly counters: Pick<Counters, 'setCertificate'>
  use(set: TlsSet): void
}

/**
 * Polls every `every_ms`. Calls `use` with each new set and logs it; logs each unusable set once.
 * The returned function stops it.
 */
export function watchTls(watched: WatchedTls): () => void {
  const { options, first, every_ms, server, emit, counters } = watched
  const validUntil = ({ cert }: TlsSet): string => {
    const { validTo } = new X509Certificate(cert)
    counters.setCertificate(server, Date.parse(validTo))
    return validTo
  }
  validUntil(first)
  return poll<TlsSet>({
    clock: systemClock,
    every_ms,
    first,
    read: () => readSet(options, first.ca !== undefined),
    isSame: ({ ca, cert, key }, other) =>
      isSame(ca, other.ca) && cert.equals(other.cert) && key.equals(other.key),
    use(set) {
      checkSet(set)
      watched.use(set)
      emit('certificates_reloaded', { server, valid_until: validUntil(set) })
    },
    onBroken(cause) {
      emit('certificates_unusable', { server, error: cause.message })
    },
  })
}

function isSame(one: Buffer | undefined, other: Buffer | undefined): boolean {
  return one === undefined || other === undefined ? one === other : one.equals(other)
}

async function readSet(options: TlsOptions, needs_ca: boolean): Promise<TlsSet> {
  for (const [name, path] of Object.entries(options)) {
    if (typeof path !== 'string') throw new TypeError(`tls: ${name} is no path: ${String(path)}`)
  }
  const paths =
    'folder' in options
      ? ['ca.crt', 'server.crt', 'server.key'].map((name) => join(options.folder, name))
      : [options.ca_path, options.cert_path, options.key_path]
  const [ca, cert, key] = await Promise.all(
    paths.map(async (path, at) => (at > 0 || needs_ca ? readFile(path) : undefined)),
  )
  return { ca, cert, key } as TlsSet
}

const pem_certificate = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

function checkSet({ ca, cert, key }: TlsSet): void {
  if (ca !== undefined) {
    const authorities = ca.toString('latin1').match(pem_certificate) ?? []
    if (authorities.length === 0) throw new Error('the file of the authority holds no certificate')
    for (const pem of authorities) new X509Certificate(pem)
  }
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error('the key does not belong to the certificate')
  }
  createSecureContext(secureOptions({ ca, cert, key }))
}

/** No tickets, because a resumed session is not verified again. */
export function secureOptions(set: TlsSet): SecureContextOptions {
  const { ca, cert, key } = set
  const files = ca === undefined ? { cert, key } : { ca, cert, key }
  return { ...files, minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_TICKET }
}
