/**
 * The three files that make a server of mutual TLS, read whole and taken up anew when they change.
 *
 * A set is used only where it is complete: the key belongs to the certificate, and there is an
 * authority, for without one node would trust every public one. Files are looked at by their bytes
 * now and then rather than watched, which works on every file system and for links that are
 * swapped. A change is taken up once two looks have seen the same, so that a set that is being
 * written is not taken for a broken one; while it is broken the old one stays in use.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { systemClock } from '../../core/clock.ts'

export type TlsOptions =
  | { readonly ca_path: string; readonly cert_path: string; readonly key_path: string }
  /** Holds `ca.crt`, `server.crt` and `server.key`. */
  | { readonly folder: string }

export interface TlsSet {
  readonly ca: Buffer
  readonly cert: Buffer
  readonly key: Buffer
}

/** Rejects with the system's error for a missing file, else with an Error that says what it is. */
export async function readTls(options: TlsOptions): Promise<TlsSet> {
  const set = await readSet(options)
  checkSet(set)
  return set
}

/**
 * Calls `use` with each new set, `onBroken` once for each that cannot be used; looks every
 * `every_ms` until the answer is called.
 */
export function watchTls(
  options: TlsOptions,
  first: TlsSet,
  every_ms: number,
  use: (set: TlsSet) => void,
  onBroken: (error: Error) => void,
): () => void {
  let used = first
  let seen: TlsSet | string = first
  let told: TlsSet | string = first
  let stopped = false
  let cancel = (): void => {}

  const look = async (): Promise<void> => {
    const found = await readSet(options).catch((error: Error) => error.message)
    const settled = isSame(found, seen)
    seen = found
    if (stopped || !settled || isSame(found, used) || isSame(found, told)) return
    told = found
    try {
      if (typeof found === 'string') throw new Error(found)
      checkSet(found)
      use(found)
      used = found
    } catch (cause) {
      const why = (cause as Error).message
      const text = `the certificate files have changed and cannot be used: ${why}`
      onBroken(Object.assign(new Error(text, { cause }), { code: 'bad_certificates' }))
    }
  }
  const arm = (): void => {
    if (stopped) return
    cancel = systemClock.wake_at(systemClock.now_ms() + every_ms, () => void look().finally(arm))
  }
  arm()
  return () => {
    stopped = true
    cancel()
  }
}

async function readSet(options: TlsOptions): Promise<TlsSet> {
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

function isSame(one: TlsSet | string, other: TlsSet | string): boolean {
  if (typeof one === 'string' || typeof other === 'string') return one === other
  return one.ca.equals(other.ca) && one.cert.equals(other.cert) && one.key.equals(other.key)
}
