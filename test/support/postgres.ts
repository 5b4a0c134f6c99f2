/**
 * A PostgreSQL server of a test's own, of Debian's package postgresql-15: in a new folder, on a free
 * port, with fsync on. The empty database is made once on a machine and copied for each server, so
 * a start takes a fraction of a second. Its program ends with the process that started it.
 *
 * SQL of the test goes over a Unix socket, past whatever is done to the network meanwhile.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import pg from 'pg'
import { initFolder } from '../../src/certs/folder.ts'
import { systemChance, systemClock } from '../../src/core/clock.ts'
import { freePort } from './free-port.ts'

export interface PostgresOptions {
  /** Callers over TCP say it, by scram; without one they are trusted. */
  readonly password?: string
  /** Callers over TCP must speak TLS, with the certificate that `ca` verifies. */
  readonly tls?: boolean
  /** Rows of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** Where it listens; default 127.0.0.1. */
  readonly host?: string
  /** What runs the server's program, such as `ip netns exec NAME`. */
  readonly within?: readonly string[]
  /** A folder to make the server's in, such as a small disk; default the temp folder. */
  readonly parent?: string
}

export interface Postgres {
  readonly host: string
  readonly port: number
  /** Of the data, with postgresql.conf and pg_hba.conf. */
  readonly folder: string
  /** The file of the authority that has signed its certificate, with `tls`. */
  readonly ca: string | undefined
  /** What the server has said so far. */
  said(): string
  /** Without the password. */
  url(database?: string, user?: string): string
  /** The rows of one statement, or of the last of several where there are no values. */
  sql<Row = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
    database?: string,
  ): Promise<Row[]>
  /** The same, without an answer, while this process does nothing else. */
  sqlNow(text: string): void
  /** Makes one with a name of its own; answers its url. */
  createDatabase(name?: string): Promise<string>
  /** After `stop` or `kill`, at the same port. */
  start(): Promise<void>
  /** Breaks its connections off and ends in order. */
  stop(): Promise<void>
  /** Sends all of its processes SIGKILL at once. */
  kill(): Promise<void>
  restart(): Promise<void>
  /** Sends a signal to all of its processes: SIGSTOP, SIGCONT. */
  signal(name: NodeJS.Signals): void
  /** Kills it and removes its folder. */
  remove(): Promise<void>
}

const programs = findPrograms()

/** Why there is no server here; undefined where there is one. */
export const no_postgres =
  programs === undefined ? 'PostgreSQL is not on this machine (Debian: postgresql-15)' : undefined

/** One for a whole test file, removed after it; undefined where there is none: `no_postgres`. */
export async function postgresOrSkip(options?: PostgresOptions): Promise<Postgres | undefined> {
  if (no_postgres !== undefined) return undefined
  const postgres = await startPostgres(options)
  after(() => postgres.remove())
  return postgres
}

/** The user whom the server runs as: it refuses root. */
export const server_user = userInfo().uid === 0 ? 'postgres' : userInfo().username

export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const { password, settings = {}, host = '127.0.0.1', within = [], parent } = options
  const home = newHome(parent)
  const folder = join(home, 'data')
  execFileSync('cp', ['-a', template(), folder])
  const ca = options.tls ? await certify(join(home, 'tls')) : undefined
  const tls_rows = {
    ssl: 'on',
    ssl_cert_file: '../tls/server.crt',
    ssl_key_file: '../tls/server.key',
  }
  const rows = {
    fsync: 'on',
    listen_addresses: host,
    unix_socket_directories: home,
    log_min_messages: 'log',
    // In its folder, so that a server that was killed leaves nothing elsewhere.
    dynamic_shared_memory_type: 'mmap',
    ...(options.tls ? tls_rows : {}),
    ...settings,
  }
  const lines = Object.entries(rows).map(([name, value]) => `${name} = '${value}'\n`)
  writeFileSync(join(folder, 'postgresql.conf'), lines.join(''), { flag: 'a' })
  const method = password === undefined ? 'trust' : 'scram-sha-256'
  const callers = `${options.tls ? 'hostssl' : 'host'} all all all ${method}\n`
  writeFileSync(join(folder, 'pg_hba.conf'), `local all all trust\n${callers}`)
  chown(home)
  const state: { child?: ChildProcess; said: string } = { said: '' }
  const port = await freePort()

  async function sql(text: string, values?: readonly unknown[], database = 'postgres') {
    const client = new pg.Client({ host: home, port, user: 'postgres', database })
    // A connection that is cut between two calls is told by the next call.
    client.on('error', () => undefined)
    await client.connect()
    try {
      const results = await client.query(text, values as unknown[] | undefined)
      return (Array.isArray(results) ? results.at(-1) : results).rows
    } finally {
      await client.end().catch(() => undefined)
    }
  }

  async function start(): Promise<void> {
    const asUser =
      userInfo().uid === 0 ? ['--reuid=postgres', '--regid=postgres', '--clear-groups'] : []
    const command = [...within, 'setpriv', ...asUser, '--pdeathsig=INT', join(bin(), 'postgres')]
    const args = [...command.slice(1), '-D', folder, '-p', String(port)]
    const child = spawn(command[0] as string, args, {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    state.child = child
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: child.stderr }).on('line', (line) => {
        state.said += `${line}\n`
        if (line.endsWith('database system is ready to accept connections')) resolve()
        if (line.endsWith('database system is ready to accept read-only connections')) resolve()
      })
      child.on('close', () => reject(new Error(`PostgreSQL ended:\n${state.said}`)))
    })
  }

  async function end(send: (child: ChildProcess) => void): Promise<void> {
    const { child } = state
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, 'close')
    send(child)
    await closed
  }
  const stop = () => end((child) => child.kill('SIGINT'))
  const kill = () => end((child) => signalTree(child.pid as number, 'SIGKILL'))

  const postgres: Postgres = {
    ...{ host, port, folder, ca, sql, start, stop, kill },
    said: () => state.said,
    url: (database = 'postgres', user = 'postgres') =>
      `postgres://${user}@${host}:${port}/${database}`,
    sqlNow(text) {
      const at = ['-h', home, '-p', String(port), '-U', 'postgres']
      execFileSync(join(bin(), 'psql'), [...at, '-qc', text])
    },
    async createDatabase(name = `db_${systemChance.bytes(6).toString('hex')}`) {
      await sql(`create database "${name}"`)
      return postgres.url(name)
    },
    async restart() {
      await stop()
      await start()
    },
    signal: (name) => signalTree(state.child?.pid as number, name),
    async remove() {
      await kill()
      freeMemory(folder)
      rmSync(home, { recursive: true, force: true })
    },
  }
  await start()
  if (password !== undefined) await sql(`alter role postgres password '${password}'`)
  return postgres
}

/** The segment of shared memory that a server which was killed would have freed at its next start. */
function freeMemory(folder: string): void {
  const path = join(folder, 'postmaster.pid')
  if (!existsSync(path)) return
  const [, id] = readFileSync(path, 'utf8').split('\n')[6]?.trim().split(/ +/) ?? []
  if (id !== undefined) execFileSync('ipcrm', ['--shmem-id', id])
}

/** Sends it to a process and all below it, none of which can start another meanwhile. */
export function signalTree(pid: number, name: NodeJS.Signals): void {
  process.kill(pid, 'SIGSTOP')
  for (const child of childrenOf(pid)) signalTree(child, name)
  process.kill(pid, name)
  if (name !== 'SIGSTOP' && name !== 'SIGKILL') process.kill(pid, 'SIGCONT')
}

function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`
  return readFileSync(path, 'utf8').split(' ').filter(Boolean).map(Number)
}

/** The folder of initdb, postgres and psql: of the newest version, or on PATH. */
function findPrograms(): string | undefined {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian)
    ? readdirSync(debian)
        .map(Number)
        .sort((a, b) => b - a)
    : []
  const folders = versions.map((version) => join(debian, String(version), 'bin'))
  folders.push(...(process.env.PATH ?? '').split(delimiter))
  return folders.find((folder) => existsSync(join(folder, 'initdb')))
}

export function bin(): string {
  if (programs === undefined) throw new Error(no_postgres)
  return programs
}

/** An empty database, made by the first test that needs it and kept for those to come. */
function template(): string {
  const version = execFileSync(join(bin(), 'postgres'), ['--version'], { encoding: 'utf8' })
  const name = `conveyor-${version.trim().replaceAll(/[^\w.]+/g, '-')}-${server_user}`
  const path = join(tmpdir(), name)
  if (existsSync(path)) return path
  const home = newHome()
  const made = join(home, 'data')
  chown(home)
  const args = ['--no-sync', '--no-instructions', '-D', made, '-U', 'postgres', '-A', 'trust']
  runAs([join(bin(), 'initdb'), ...args, '-E', 'UTF8', '--locale=C'])
  try {
    renameSync(made, path)
  } catch {
    // Another test file was quicker.
  }
  rmSync(home, { recursive: true, force: true })
  return path
}

function newHome(parent = tmpdir()): string {
  return realpathSync(mkdtempSync(join(parent, 'conveyor-postgres-')))
}

/** Runs a program of the package to its end as the user of the server. */
function runAs(command: readonly string[]): void {
  const asUser = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups']
  const [program = '', ...args] = userInfo().uid === 0 ? [...asUser, ...command] : command
  execFileSync(program, args, { cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] })
}

/** Gives a folder to the user of the server. */
function chown(folder: string): void {
  if (userInfo().uid === 0) execFileSync('chown', ['-R', 'postgres:postgres', folder])
}

async function certify(folder: string): Promise<string> {
  await initFolder(folder, [], { now_ms: systemClock.now_ms(), chance: systemChance })
  return join(folder, 'ca.crt')
}
