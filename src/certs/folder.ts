/**
 * A folder of certificates: `ca.crt ca.key server.crt server.key`, and `NAME.crt NAME.key` for each
 * client. `certs init` and `certs client` write it; `serve --tls` reads it. No file is overwritten,
 * and a failed call removes the files it created. Keys have mode 0600, a new folder 0700. Only
 * issuing needs `ca.key`.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { Chance } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import {
  type CertifiedKey,
  clientUri,
  fingerprintOf,
  issueClient,
  issueServer,
  newAuthority,
} from './issue.ts'

export interface CertificateOptions {
  readonly now_ms: number
  readonly chance: Chance
  /** Validity of the server's or client's certificate in days; default 365. */
  readonly days?: number
}

export const serverFiles = ['ca.crt', 'server.crt', 'server.key'] as const

const authority_days = 3_650
const leaf_days = 365
const local_hosts = ['localhost', '127.0.0.1', '::1'] as const

/**
 * Creates an authority, and a server certificate for localhost and `hosts`. In a folder that has an
 * authority but no server certificate it renews the latter. Returns the file names. Rejects with
 * `not_possible` where a file exists or a host is neither a name nor an address.
 */
export async function initFolder(
  folder: string,
  hosts: readonly string[],
  options: CertificateOptions,
): Promise<string[]> {
  for (const host of hosts) checkHost(host)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const { days = leaf_days } = options
  const found = await readPair(folder, 'ca')
  const is_set_up = await isThere(join(folder, 'server.crt'))
  if (is_set_up || (await isThere(join(folder, 'server.key')))) throw taken(folder, 'server')
  const authority = found ?? (await newAuthority({ ...options, days: authority_days }))
  const names = [...new Set([...local_hosts, ...hosts])]
  const server = await issueServer(authority, names, { ...options, days })
  const pairs: [string, CertifiedKey][] = [['server', server]]
  if (found === undefined) pairs.unshift(['ca', authority])
  return write(folder, pairs)
}

export interface ClientFiles {
  readonly files: readonly string[]
  /** The names that `user bind` accepts: the URI in the certificate, and its fingerprint. */
  readonly names: readonly string[]
}

/**
 * Creates the certificate of client `name`. Rejects with `not_possible` unless the name is 1 to 64
 * of `A-Z a-z 0-9 . _ -`, begins with a letter or digit and is new, and the folder has an
 * authority.
 */
export async function addClient(
  folder: string,
  name: string,
  options: CertificateOptions,
): Promise<ClientFiles> {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    const says = 'a client name is 1 to 64 letters, digits, dots, dashes and underscores'
    throw fault('not_possible', says)
  }
  const authority = await readPair(folder, 'ca')
  if (authority === undefined) {
    const helps = `\`npx conveyor certs init ${folder}\` makes them`
    throw fault('not_possible', `${folder} holds no ca.crt and ca.key: ${helps}`)
  }
  const { days = leaf_days } = options
  const client = await issueClient(authority, name, { ...options, days })
  const files = await write(folder, [[name, client]])
  const names = [`uri:${clientUri(name)}`, `sha256:${fingerprintOf(client.certificate)}`]
  return { files, names }
}

/** The files of `names` that the folder lacks. */
export async function missingOf(folder: string, names: readonly string[]): Promise<string[]> {
  const missing: string[] = []
  for (const name of names) if (!(await isThere(join(folder, name)))) missing.push(name)
  return missing
}

/** Undefined if neither file exists. One without the other is refused. */
async function readPair(folder: string, name: string): Promise<CertifiedKey | undefined> {
  const missing = await missingOf(folder, [`${name}.crt`, `${name}.key`])
  if (missing.length === 2) return undefined
  if (missing.length === 1) {
    throw fault('not_possible', `${folder} holds no ${missing[0]}, so nothing can be made with it`)
  }
  const read = (end: string) => readFile(join(folder, `${name}.${end}`), 'utf8')
  return { certificate: await read('crt'), key: await read('key') }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await readFile(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/** Writes keys before certificates: a certificate without its key is useless. */
async function write(
  folder: string,
  pairs: readonly (readonly [string, CertifiedKey])[],
): Promise<string[]> {
  const made: string[] = []
  try {
    for (const [name, { certificate, key }] of pairs) {
      for (const [end, text, mode] of [
        ['key', key, 0o600],
        ['crt', certificate, 0o644],
      ] as const) {
        await writeFile(join(folder, `${name}.${end}`), text, { flag: 'wx', mode })
        made.push(`${name}.${end}`)
      }
    }
  } catch (error) {
    for (const file of made) await rm(join(folder, file), { force: true })
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw taken(folder, pairs.at(-1)?.[0] as string)
  }
  return made
}

function taken(folder: string, name: string): Error {
  const files = `${name}.crt or ${name}.key`
  const says = `${folder} holds ${files} already, and nothing is written over`
  return fault('not_possible', `${says}: move both away first`)
}

function checkHost(host: string): void {
  const is_name = /^[A-Za-z0-9_*]([A-Za-z0-9_.*-]{0,251}[A-Za-z0-9])?$/.test(host)
  if (isIP(host) !== 0 || is_name) return
  throw fault('not_possible', `--host takes a name or an IP address, not ${JSON.stringify(host)}`)
}
