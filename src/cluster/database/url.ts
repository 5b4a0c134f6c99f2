/**
 * The database url, as libpq has it, with the parameters listed here:
 * `postgres://USER@HOST1:5432,HOST2:5432/DATABASE?sslmode=verify-full`. A host is a name, an
 * address (`[::1]`) or the folder of a Unix socket (`%2Frun%2Fpostgresql`). Beyond this machine TLS
 * with a verified server is required, unless `sslmode=disable`. Certificate files are read per
 * connection.
 *
 * The password is never in the url or a message. It comes from PGPASSWORD, or from the file at
 * PGPASSFILE or `~/.pgpass` with lines `HOST:PORT:DATABASE:USER:PASSWORD`, where `*` matches
 * anything, and is read for each connection that needs one.
 */
import { readFileSync, statSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import { type Fault, fault } from '../../core/faults.ts'
import { hostAndPort, isLoopback } from '../../core/host.ts'

export interface Database {
  readonly hosts: readonly Host[]
  readonly node: string
  /** Accepts settings that can lose what was answered. */
  readonly unsafe: boolean
  /** Throws `not_possible` for an unreadable file of the url. */
  configOf(host: Host): DatabaseLogin
  /** Free of secrets. */
  readonly url: string
  /** Whether a connection has succeeded before, so that a refusal may be temporary. */
  readonly found: { was_right: boolean }
}

export interface Login {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string | undefined
}

export interface DatabaseLogin extends Login {
  /** Certificate texts; false without TLS. */
  readonly ssl: Record<string, string> | false
  password(): string
}

export interface Host {
  readonly host: string
  readonly port: number
  /** As messages name it. */
  readonly name: string
  readonly has_tls: boolean
}

const url_pattern = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^/?#@]*)\/([^/?#]+)(?:\?([^#]*))?$/
const host_pattern = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+)|((?:%2f|\/)[^:]*))(?::(\d{1,5}))?$/i
const files = { sslrootcert: 'ca', sslcert: 'cert', sslkey: 'key' } as const
const form = 'postgres://USER@HOST:PORT/DATABASE'
const hosts_max = 16

/** Throws `not_possible`, without repeating the url, which may hold a secret. */
export function databaseOf(url: string, node: string, unsafe = false): Database {
  const [whole, user = '', hosts = '', database = '', query = ''] = url_pattern.exec(url) ?? []
  if (whole === undefined) throw wrong(`is not one of PostgreSQL: write ${form}`)
  const parameters = new URLSearchParams(query)
  if (user.includes(':') || parameters.has('password')) {
    throw wrong('must not hold a password: set PGPASSWORD, or PGPASSFILE to a file with it')
  }
  const known = ['sslmode', 'target_session_attrs', ...Object.keys(files)]
  for (const name of parameters.keys()) {
    if (known.includes(name)) continue
    throw wrong(`has an unknown parameter: the known ones are ${known.join(', ')}`)
  }
  // Default: a primary.
  const attrs = parameters.get('target_session_attrs') ?? 'primary'
  if (!/^(?:primary|read-write)$/.test(attrs))
    throw wrong('must ask for a primary: leave target_session_attrs out')
  const mode = parameters.get('sslmode') ?? undefined
  if (mode !== undefined && mode !== 'disable' && mode !== 'verify-full') {
    throw wrong('has an unknown sslmode: set verify-full, which knows who answers, or disable')
  }
  const parsed = hosts.split(',').map((host) => hostOf(host, mode))
  if (parsed.length > hosts_max) throw wrong(`has more than ${hosts_max} hosts`)
  const login = { user: decoded(user) || undefined, database: decoded(database) }
  return {
    hosts: parsed,
    node,
    unsafe,
    configOf: ({ host, port, has_tls }) => ({
      ...{ ...login, host, port },
      ssl: has_tls ? tlsOf(parameters) : false,
      password: () => passwordFor({ host, port, ...login }),
    }),
    url,
    found: { was_right: false },
  }
}

function hostOf(text: string, mode: string | undefined): Host {
  const [whole, v6, name, folder, digits = '5432'] = host_pattern.exec(text) ?? []
  const host = v6 ?? name ?? decoded(folder ?? '')
  const port = Number(digits)
  if (whole === undefined || port === 0 || port > 65_535) {
    throw wrong(`has a host that cannot be: write ${form}`)
  }
  const is_near = folder !== undefined || isLoopback(host)
  const has_tls = folder === undefined && (mode ?? (is_near ? 'disable' : '')) !== 'disable'
  return { host, port, name: hostAndPort(host, port), has_tls }
}

function tlsOf(parameters: URLSearchParams): Record<string, string> {
  const tls: Record<string, string> = {}
  for (const [parameter, member] of Object.entries(files)) {
    const path = parameters.get(parameter)
    if (path === null) continue
    try {
      tls[member] = readFileSync(path, 'utf8')
    } catch (error) {
      const { code = String(error) } = error as { code?: string }
      throw wrong(`names ${path} as ${parameter}, which cannot be read (${code})`)
    }
  }
  return tls
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw wrong('has a % that begins no character: write %25 for it')
  }
}

function wrong(text: string): Fault {
  return fault('not_possible', `the address of the commit log ${text}`)
}

/** Throws `not_possible` without a password. */
export function passwordFor(
  { host, port, database, user }: Login,
  variables: Readonly<Record<string, string | undefined>> = env,
): string {
  const { PGPASSWORD, PGPASSFILE, PGUSER } = variables
  if (PGPASSWORD !== undefined && PGPASSWORD !== '') return PGPASSWORD
  const path = PGPASSFILE ?? join(homedir(), '.pgpass')
  const name = host.startsWith('/') ? 'localhost' : host
  const wanted = [name, String(port), database, user ?? PGUSER ?? userInfo().username]
  for (const line of linesOf(path, PGPASSFILE !== undefined)) {
    const [fields, password] = fieldsOf(line)
    if (password === '' || fields.length !== wanted.length) continue
    if (fields.every((field, at) => field === '*' || field === wanted[at])) return password
  }
  throw none(`${path} has no line for ${wanted.slice(0, 3).join(':')} and this user`)
}

function linesOf(path: string, is_named: boolean): string[] {
  try {
    const { mode } = statSync(path)
    if ((mode & 0o077) !== 0) throw none(`others may read ${path}, so it is not used: chmod 600 it`)
    return readFileSync(path, 'utf8').split(/\r?\n/)
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'not_possible') throw error
    throw none(is_named ? `${path} cannot be read (${code})` : 'there is none')
  }
}

/** The fields, and the password: the rest of the line. `\` escapes the next character. */
function fieldsOf(line: string): [fields: string[], password: string] {
  const fields = line.startsWith('#') ? [] : (line.match(/(?:\\.|[^:\\])*(?::|$)/g) ?? [])
  const taken = fields.slice(0, 4)
  const unescaped = (text: string): string => text.replaceAll(/\\(.)/g, '$1')
  const password = unescaped(line.slice(taken.join('').length))
  return [taken.map((field) => unescaped(field.slice(0, -1))), password]
}

function none(text: string): Fault {
  const says = 'the database wants a password'
  return fault('not_possible', `${says}: set PGPASSWORD, or PGPASSFILE to a file with it; ${text}`)
}
