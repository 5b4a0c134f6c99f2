/**
 * A folder of certificates, as `certs init` and `certs client` make it and `serve --tls` reads it:
 * `ca.crt ca.key server.crt server.key` and a `NAME.crt NAME.key` for each client.
 *
 * A file that is there is never written over: each is made O_EXCL, and what one call made goes
 * again where it could not make all. Keys are 0600 and the folder, where it is made here, is 0700.
 * Where `ca.key` has been taken away the folder still serves, and makes no more certificates.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { Chance } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import {
  clientUri,
  fingerprintOf,
  issueClient,
  issueServer,
  type KeyPair,
  newAuthority,
} from './issue.ts'

export interface IssueOptions {
  readonly now_ms: number
  readonly chance: Chance
  /** How long the server's or client's certificate holds; default 365. */
  readonly days?: number
}

/** What `serve --tls` needs. */
export const serverFiles = ['ca.crt', 'server.crt', 'server.key'] as const

const authority_days = 3_650
const leaf_days = 365
const local_hosts = ['localhost', '127.0.0.1', '::1'] as const

/**
 * Makes an authority and a server's certificate for localhost and `hosts`. In a folder with an
 * authority and no server's certificate, only that is made: how one is renewed. Answers the names
 * of the files. Rejects with `not_possible` where a file is there already or a host is no name and
 * no address.
 */
export async function initFolder(
  folder: string,
  hosts: readonly string[],
  making: IssueOptions,
): Promise<string[]> {
  for (const host of hosts) demandHost(host)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const { days = leaf_days } = making
  const found = await readPair(folder, 'ca')
  const is_set_up = await isThere(join(folder, 'server.crt'))
  if (is_set_up || (await isThere(join(folder, 'server.key')))) throw taken(folder, 'server')
  const authority = found ?? (await newAuthority({ ...making, days: authority_days }))
  const names = [...new Set([...local_hosts, ...hosts])]
  const server = await issueServer(authority, names, { ...making, days })
  const pairs: [string, KeyPair][] = [['server', server]]
  if (found === undefined) pairs.unshift(['ca', authority])
  return write(folder, pairs)
}

export interface ClientFiles {
  readonly files: readonly string[]
  /** What `user bind` takes: the name it carries, and the fingerprint. */
  readonly names: readonly string[]
}

/**
 * Makes the certificate of the client `name`. Rejects with `not_possible` where the name is not 1
 * to 64 of `A-Z a-z 0-9 . _ -` opening with a letter or digit, its file is there already, or the
 * folder holds no authority.
 */
export async function addClient(
  folder: string,
  name: string,
  making: IssueOptions,
): Promise<ClientFiles> {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    throw fault(
      'not_possible',
      'a client name is 1 to 64 letters, digits, dots, dashes and underscores',
    )
  }
  const authority = await readPair(folder, 'ca')
  if (authority === undefined) {
    throw fault(
      'not_possible',
      `${folder} holds no ca.crt and ca.key: \`conveyor certs init ${folder}\` makes them`,
    )
  }
  const { days = leaf_days } = making
  const client = await issueClient(authority, name, { ...making, days })
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

/** Undefined where neither file is there; half a pair is refused, for it may be somebody's. */
async function readPair(folder: string, name: string): Promise<KeyPair | undefined> {
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

/** Keys first: a certificate without its key would be of no use to anybody. */
async function write(
  folder: string,
  pairs: readonly (readonly [string, KeyPair])[],
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
  return fault(
    'not_possible',
    `${folder} holds ${files} already, and nothing is written over: move both away first`,
  )
}

function demandHost(host: string): void {
  const is_name = /^[A-Za-z0-9_*]([A-Za-z0-9_.*-]{0,251}[A-Za-z0-9])?$/.test(host)
  if (isIP(host) !== 0 || is_name) return
  throw fault('not_possible', `--host takes a name or an IP address, not ${JSON.stringify(host)}`)
}
