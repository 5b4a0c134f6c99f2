/**
 * Reads the databases that the operator gave. A wrong one is a RangeError with a sentence that
 * names its place and never quotes a password.
 */
import { readFileSync, statSync } from 'node:fs'
import { isLoopback } from '../../core/host.ts'
import type { DatabaseOptions, GivenDatabases } from '../../engine/api/database-api.ts'
import type { DbCallKinds, SqlDialect } from '../../process/logic.ts'
import { dbCallKinds } from '../../process/logics/db-call.ts'

export interface DatabaseInstance extends Required<Omit<DatabaseOptions, Secret>> {
  /** Throws a sentence where its file cannot be read. */
  login(): { readonly password: string | undefined; readonly ca: string | undefined }
}

type Secret = 'password' | 'password_file' | 'ca_file'
export type Instances = ReadonlyMap<string, DatabaseInstance>

const ports: Readonly<Record<SqlDialect, number>> = { postgres: 5432, mysql: 3306 }
const others = ['mssql', 'mongo', 'oracle']

type Form = 'text' | 'flag' | 'count'
const members: Readonly<Record<keyof DatabaseOptions, Form>> = {
  driver: 'text',
  host: 'text',
  port: 'count',
  database: 'text',
  user: 'text',
  password: 'text',
  password_file: 'text',
  ssl: 'flag',
  ca_file: 'text',
  max: 'count',
  timeout_ms: 'count',
  rows_max: 'count',
}
const required = ['driver', 'host', 'database', 'user'] as const

const forms: Readonly<Record<Form, readonly [is: (value: unknown) => boolean, says: string]>> = {
  text: [(value) => typeof value === 'string' && value !== '', 'a text'],
  flag: [(value) => typeof value === 'boolean', 'true or false'],
  count: [
    (value) => Number.isSafeInteger(value) && (value as number) > 0,
    'a whole number of 1 or more',
  ],
}

/** The parts of an engine with these databases. */
export function databasesOf(given: GivenDatabases): {
  readonly instances: Instances
  readonly db_call: DbCallKinds
} {
  const instances = readDatabases(given)
  const dialects = [...instances].map(([name, { driver }]) => [name, driver] as const)
  return { instances, db_call: dbCallKinds(new Map(dialects)) }
}

export function readDatabases(given: GivenDatabases): Instances {
  if (!isRecord(given)) throw new RangeError('databases: an object was expected')
  return new Map(Object.entries(given).map(([name, one]) => [name, readDatabase(name, one)]))
}

function readDatabase(name: string, given: unknown): DatabaseInstance {
  const wrong = (text: string) => new RangeError(`databases[${JSON.stringify(name)}]${text}`)
  if (!isRecord(given)) throw wrong(': an object was expected')
  for (const [member, value] of Object.entries(given)) {
    const is_known = Object.hasOwn(members, member)
    const form = is_known ? members[member as keyof DatabaseOptions] : undefined
    if (form === undefined) throw wrong(` has no member ${member}`)
    const [is, says] = forms[form]
    if (value !== undefined && !is(value)) throw wrong(`.${member}: ${says} was expected`)
  }
  for (const member of required) {
    if (given[member] === undefined) throw wrong(`.${member} is missing`)
  }
  // The loops above have checked each member.
  const one = given as { readonly [Name in keyof DatabaseOptions]: DatabaseOptions[Name] }
  const { driver, host, database, user, password, password_file, ca_file } = one
  if (driver !== 'postgres' && driver !== 'mysql') {
    const known = others.includes(driver) ? 'is not run here' : 'is not known'
    throw wrong(`.driver ${JSON.stringify(driver)} ${known}: only postgres and mysql are`)
  }
  const { port = ports[driver], max = 8, timeout_ms = 30_000, rows_max = 10_000 } = one
  if (port > 65_535) throw wrong('.port: a number up to 65535 was expected')
  if (password !== undefined && password_file !== undefined) {
    throw wrong(' has a password and a password_file: give one of them')
  }
  const { ssl = !(host.startsWith('/') || isLoopback(host)) } = one
  if (ca_file !== undefined && !ssl) throw wrong('.ca_file is for `"ssl": true`')
  const login = () => ({
    password: password ?? secretIn(password_file)?.replace(/\r?\n$/, ''),
    ca: ca_file === undefined ? undefined : textIn('ca_file', ca_file),
  })
  try {
    login()
  } catch (error) {
    throw wrong(`: ${(error as Error).message}`)
  }
  return { driver, host, port, database, user, ssl, max, timeout_ms, rows_max, login }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function secretIn(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  const text = textIn('password_file', path)
  const { mode } = statSync(path)
  if ((mode & 0o007) === 0) return text
  throw new Error(`others may read the password_file ${path}: chmod 600 it`)
}

function textIn(member: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException
    throw new Error(`the ${member} ${path} cannot be read (${code})`)
  }
}
