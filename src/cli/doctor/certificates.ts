/**
 * The certificates of a folder as `serve --tls` reads it: until when each is valid, what issued it,
 * whether its key is there, is its own and is closed to others. No key is kept.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isOpenToOthers } from '../../store/disk/file-system.ts'

export interface CertificateFacts {
  readonly path: string
  /** Why it cannot be read. */
  readonly trouble?: string
  readonly from_ms: number
  readonly until_ms: number
  /** The names of a server, as `DNS:localhost, IP Address:127.0.0.1`. */
  readonly names: string
  /** Whether ca.crt has issued it. */
  readonly is_issued: boolean
  /** Undefined where a key is not needed here. */
  readonly key?: 'fits' | 'another' | 'missing' | 'open'
}

const files_max = 100

export async function certificateFacts(folder: string): Promise<CertificateFacts[]> {
  const found = await readdir(folder).catch(() => [])
  const others = found.filter((name) => name.endsWith('.crt')).slice(0, files_max)
  const names = [...new Set(['ca.crt', 'server.crt', ...others])]
  const ca = await certificateAt(join(folder, 'ca.crt'))
  return Promise.all(names.map((name) => factsOf(join(folder, name), ca, name === 'server.crt')))
}

async function factsOf(
  path: string,
  ca: X509Certificate | string,
  is_server: boolean,
): Promise<CertificateFacts> {
  const found = await certificateAt(path)
  const none = { path, from_ms: 0, until_ms: 0, names: '', is_issued: false }
  if (typeof found === 'string') return { ...none, trouble: found }
  const is_issued = typeof ca !== 'string' && found.checkIssued(ca) && found.verify(ca.publicKey)
  return {
    path,
    from_ms: Date.parse(found.validFrom),
    until_ms: Date.parse(found.validTo),
    names: found.subjectAltName ?? '',
    is_issued,
    ...(is_server ? { key: await keyState(path.replace(/\.crt$/, '.key'), found) } : {}),
  }
}

async function keyState(
  path: string,
  certificate: X509Certificate,
): Promise<NonNullable<CertificateFacts['key']>> {
  try {
    const { mode } = await stat(path)
    const key = createPrivateKey(await readFile(path))
    if (!certificate.checkPrivateKey(key)) return 'another'
    return isOpenToOthers(mode) ? 'open' : 'fits'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : 'another'
  }
}

/** The certificate, or why it cannot be read. */
async function certificateAt(path: string): Promise<X509Certificate | string> {
  try {
    return new X509Certificate(await readFile(path))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT' ? 'is missing' : 'is no certificate that can be read'
  }
}
