/**
 * Facts of the machine for `doctor`: the certificates of a folder as `serve --tls` reads it, and
 * the limits of open files and memory that the system sets to a process (on Linux). No key is kept.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isOpenToOthers } from '../../store/disk/file-system.ts'

export interface CertificateFacts {
  readonly path: string
  readonly error?: string
  readonly from_ms: number
  readonly until_ms: number
  /** The names of a server, as `DNS:localhost, IP Address:127.0.0.1`. */
  readonly names: string
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
  if (typeof found === 'string') return { ...none, error: found }
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

async function certificateAt(path: string): Promise<X509Certificate | string> {
  try {
    return new X509Certificate(await readFile(path))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT' ? 'is missing' : 'is no certificate that can be read'
  }
}

export interface SystemLimits {
  readonly files_max?: number
  /** How many the process that holds the file has open. */
  readonly files_open?: number
  readonly memory_bytes_max?: number
}

export async function systemLimits(pid: number | undefined): Promise<SystemLimits> {
  const process = `/proc/${pid ?? 'self'}`
  const [limits, group] = await Promise.all([
    systemText(`${process}/limits`),
    systemText(`${process}/cgroup`),
  ])
  const [, soft, hard] = /^Max open files\s+(\d+|unlimited)\s+(\d+|unlimited)/m.exec(limits) ?? []
  // Node raises its own limit to the hard one at the start.
  const files_max = Number(pid === undefined ? hard : soft)
  const open = pid === undefined ? [] : await readdir(`${process}/fd`).catch(() => [])
  const [, path = '/'] = /^0::(\/.*)$/m.exec(group) ?? []
  const found = await Promise.all(
    [`/sys/fs/cgroup${path}/memory.max`, '/sys/fs/cgroup/memory.max', v1_path].map(systemText),
  )
  const memory = found.map((text) => Number.parseInt(text, 10)).find((one) => one > 0)
  return {
    ...(Number.isFinite(files_max) ? { files_max } : {}),
    ...(open.length > 0 ? { files_open: open.length } : {}),
    ...(memory === undefined || memory > no_limit_bytes ? {} : { memory_bytes_max: memory }),
  }
}

const v1_path = '/sys/fs/cgroup/memory/memory.limit_in_bytes'
/** Control groups v1 report no limit as a number near 2⁶³. */
const no_limit_bytes = 2 ** 50

async function systemText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}
