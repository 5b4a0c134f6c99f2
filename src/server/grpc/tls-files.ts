/**
 * Reads the three files of a mutual TLS server and reloads them when they change.
 *
 * A set is used only if the key matches the certificate and there is a CA certificate; without one
 * node would trust every public CA. An unusable set leaves the old one in use.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { systemClock } from '../../core/clock.ts'
import { poll } from '../../core/poll.ts'

export type TlsOptions =
  | { readonly ca_path: string; readonly cert_path: string; readonly key_path: string }
  /** Holds `ca.crt`, `server.crt` and `server.key`. */
  | { readonly folder: string }

export interface TlsSet {
  readonly ca: Buffer
  readonly cert: Buffer
  readonly key: Buffer
}

/** Rejects with the system's error for a missing file, or an Error that names the defect. */
export async function readTls(options: TlsOptions): Promise<TlsSet> {
  const set = await readSet(options)
  checkSet(set)
  return set
}

/**
 * Polls every `every_ms`. Calls `use` with each new set, and `onBroken` once for each unusable one.
 * The returned function stops it.
 */
export function watchTls(
  options: TlsOptions,
  first: TlsSet,
  every_ms: number,
  use: (set: TlsSet) => void,
  onBroken: (error: Error) => void,
): () => void {
  return poll<TlsSet>({
    clock: systemClock,
    every_ms,
    first,
    read: () => readSet(options),
    isSame: ({ ca, cert, key }, other) =>
      ca.equals(other.ca) && cert.equals(other.cert) && key.equals(other.key),
    use(set) {
      checkSet(set)
      use(set)
    },
    onBroken(cause) {
      const text = `the certificate files have changed and cannot be used: ${cause.message}`
      onBroken(Object.assign(new Error(text, { cause }), { code: 'bad_certificates' }))
    },
  })
}

async function readSet(options: TlsOptions): Promise<TlsSet> {
  for (const [name, path] of Object.entries(options)) {
    if (typeof path !== 'string') throw new TypeError(`tls: ${name} is no path: ${String(path)}`)
  }
  const paths =
    'folder' in options
      ? ['ca.crt', 'server.crt', 'server.key'].map((name) => join(options.folder, name))
      : [options.ca_path, options.cert_path, options.key_path]
  const [ca, cert, key] = await Promise.all(paths.map((path) => readFile(path)))
  return { ca, cert, key } as TlsSet
}

const pem_certificate = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

function checkSet({ ca, cert, key }: TlsSet): void {
  const authorities = ca.toString('latin1').match(pem_certificate) ?? []
  if (authorities.length === 0) throw new Error('the file of the authority holds no certificate')
  for (const pem of authorities) new X509Certificate(pem)
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error('the key does not belong to the certificate')
  }
  createSecureContext({ ca, cert, key })
}
