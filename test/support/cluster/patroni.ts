/**
 * PostgreSQL servers under Patroni, each on a machine and a disk of its own: one of them is the
 * primary, and a synchronous standby takes over from it. Of Debian's packages patroni, etcd-server
 * and postgresql-15.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { mountDisk } from '../disk/small-disk.ts'
import { freePort } from '../free-port.ts'
import { bin, no_postgres, signalTree } from '../postgres.ts'
import type { Machine, Network } from './network.ts'

export interface PatroniOptions {
  readonly members?: number
  /** Patroni's own times; default as short as it allows. */
  readonly usual_times?: boolean
  /** Rows of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** Default on: what is committed is at a standby too. */
  readonly synchronous?: boolean
  /** Of each member. */
  readonly disk_megabytes?: number
}

export interface Member {
  readonly machine: Machine
  readonly disk: string
  /** Patroni and the server below it. */
  start(): void
  /** SIGKILL for Patroni and its server: the machine is gone. */
  kill(): Promise<void>
  /** SIGKILL for the server alone. */
  killServer(): void
  /** SIGSTOP or SIGCONT for both. */
  signal(name: NodeJS.Signals): void
  /** Leaves no byte free on its disk; the function that it returns frees it. */
  fillDisk(): () => void
}

export interface Database {
  readonly members: readonly Member[]
  /** Of all members, as libpq and pg take it. */
  url(database?: string): string
  /** The one that answers as the primary now. */
  primary(): Promise<Member | undefined>
  /** Resolves once there is a primary, with a synchronous standby where it should have one. */
  ready(): Promise<Member>
  sql(text: string): Promise<unknown[]>
  /** Resolves once one of them takes a commit, as durable as it is to be. */
  writable(): Promise<void>
  remove(): Promise<void>
}

export const server_port = 5432
const rest_port = 8008
/** Of a disk that is filled, what is filled by writes. */
const few_blocks = 2_000
const programs = ['patroni', 'etcd']

export function whyNoPatroni(): string | undefined {
  if (no_postgres !== undefined) return no_postgres
  const missing = programs.filter((name) => spawnSync(name, ['--version']).error !== undefined)
  return missing.length === 0 ? undefined : `${missing.join(', ')} not on this machine`
}

export async function startPatroni(
  network: Network,
  options: PatroniOptions = {},
): Promise<Database> {
  const { members: count = 3, synchronous = true, disk_megabytes = 4_000 } = options
  const home = mkdtempSync(join(tmpdir(), 'conveyor-patroni-'))
  const log = openSync(join(home, 'patroni.log'), 'a')
  const asServer = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups']
  execFileSync('chown', ['postgres:postgres', home])
  const etcd = await startEtcd(network.address, home)
  const removals: (() => Promise<void> | void)[] = []

  function addMember(n: number): Member {
    const name = `db${n}`
    const machine = network.addMachine(name)
    const disk = mountDisk('ext4', disk_megabytes)
    if (disk === undefined) throw new Error('this user may not mount a small disk here')
    execFileSync('chown', ['postgres:postgres', disk.path, join(disk.path, '..')])
    const config = join(home, `${name}.yml`)
    const { address } = machine
    // JSON is YAML.
    writeFileSync(
      config,
      JSON.stringify(configOf({ name, address, disk: disk.path, etcd, options })),
    )
    let child: ChildProcess | undefined
    const start = (): void => {
      const [program = '', ...args] = [...machine.within, ...asServer, '--pdeathsig=KILL']
      child = spawn(program, [...args, 'patroni', config], {
        cwd: home,
        stdio: ['ignore', log, log],
      })
    }
    const server = (): number | undefined => serverOf(join(disk.path, 'data'))
    const killServer = (): void => {
      const pid = server()
      if (pid !== undefined) signalTree(pid, 'SIGKILL')
    }
    async function kill(): Promise<void> {
      if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      // Patroni first, or it would start the server again.
      signalTree(child.pid, 'SIGKILL')
      killServer()
      await ended
    }
    removals.push(async () => {
      await kill()
      disk.remove()
    })
    start()
    return {
      ...{ machine, disk: disk.path, start, kill, killServer },
      signal(signal) {
        const pid = server()
        for (const one of [pid, child?.pid]) if (one !== undefined) signalTree(one, signal)
      },
      fillDisk() {
        const [filler, rest] = [join(disk.path, 'filler'), join(disk.path, 'filler-rest')]
        const { bfree, bsize } = statfsSync(disk.path)
        spawnSync('fallocate', ['-l', String((bfree - few_blocks) * bsize), filler])
        spawnSync('dd', ['if=/dev/zero', `of=${rest}`, 'bs=64K'])
        return () => {
          for (const path of [filler, rest]) rmSync(path, { force: true })
        }
      },
    }
  }

  const members = Array.from({ length: count }, (_, n) => addMember(n + 1))
  const isPrimary = ({ machine }: Member): Promise<boolean> =>
    fetch(`http://${machine.address}:${rest_port}/primary`, { signal: AbortSignal.timeout(1_000) })
      .then((answer) => answer.ok)
      .catch(() => false)
  /** Whether one may take over: PostgreSQL has it, and a while later Patroni knows it. */
  async function hasStandby(member: Member): Promise<boolean> {
    if (!synchronous || count === 1) return true
    type Cluster = { readonly members: readonly { readonly role: string }[] }
    const options = { signal: AbortSignal.timeout(1_000) }
    const followers = `select from pg_stat_replication
      where state = 'streaming' and sync_state in ('sync', 'quorum')`
    try {
      const answer = await fetch(`http://${member.machine.address}:${rest_port}/cluster`, options)
      const { members: known } = (await answer.json()) as Cluster
      if (!known.some(({ role }) => role === 'sync_standby')) return false
      return (await sqlAt(member, followers)).length > 0
    } catch {
      return false
    }
  }
  /** One that has stood still says for a moment that it is one still. */
  async function primaries(): Promise<Member[]> {
    const answers = await Promise.all(members.map(isPrimary))
    return members.filter((_, at) => answers[at])
  }
  const primary = async (): Promise<Member | undefined> => (await primaries())[0]
  const database: Database = {
    members,
    url(name = 'postgres') {
      const hosts = members.map(({ machine }) => `${machine.address}:${server_port}`)
      return `postgres://postgres@${hosts.join()}/${name}?sslmode=disable`
    },
    primary,
    async ready() {
      for (let tries = 0; tries < 1_200; tries++) {
        const [found, other] = await primaries()
        if (found !== undefined && other === undefined && (await hasStandby(found))) return found
        await sleep(100)
      }
      throw new Error(`PostgreSQL has no primary with its standby; see ${home}/patroni.log`)
    },
    async sql(text) {
      const found = await primary()
      if (found === undefined) throw new Error('there is no primary')
      return sqlAt(found, text)
    },
    async writable() {
      const commit = 'create table if not exists tried (); drop table tried'
      let is_taken = false
      const attempts = members.map(async (member) => {
        while (!is_taken) {
          try {
            await sqlAt(member, commit)
            is_taken = true
          } catch {
            await sleep(20)
          }
        }
      })
      await Promise.any(attempts)
    },
    async remove() {
      for (const removeMember of removals) await removeMember()
      etcd.kill()
      closeSync(log)
      rmSync(home, { recursive: true, force: true })
    },
  }
  return database
}

async function sqlAt({ machine }: Member, text: string): Promise<unknown[]> {
  const address = { host: machine.address, port: server_port, user: 'postgres' }
  const client = new pg.Client({ ...address, database: 'postgres', connectionTimeoutMillis: 2_000 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end().catch(() => undefined)
  }
}

interface Etcd {
  readonly address: string
  kill(): void
}

async function startEtcd(host: string, home: string): Promise<Etcd> {
  const [client_url, peer_url] = [
    `http://${host}:${await freePort()}`,
    `http://${host}:${await freePort()}`,
  ]
  const flags = {
    'data-dir': join(home, 'etcd'),
    'listen-client-urls': client_url,
    'advertise-client-urls': client_url,
    'listen-peer-urls': peer_url,
    'initial-advertise-peer-urls': peer_url,
    'initial-cluster': `default=${peer_url}`,
    'log-level': 'error',
  }
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  const child = spawn('setpriv', ['--pdeathsig=KILL', 'etcd', ...args], { stdio: 'ignore' })
  const address = client_url.slice('http://'.length)
  return { address, kill: () => void child.kill('SIGKILL') }
}

interface Configured {
  readonly name: string
  readonly address: string
  readonly disk: string
  readonly etcd: Etcd
  readonly options: PatroniOptions
}

function configOf({ name, address, disk, etcd, options }: Configured): object {
  const { usual_times = false, settings = {}, synchronous = true } = options
  const times = usual_times
    ? { ttl: 30, loop_wait: 10, retry_timeout: 10 }
    : { ttl: 5, loop_wait: 1, retry_timeout: 3 }
  const run = join(disk, 'run')
  mkdirSync(run, { recursive: true })
  execFileSync('chown', ['-R', 'postgres:postgres', run])
  return {
    scope: 'lab',
    name,
    restapi: { listen: `${address}:${rest_port}`, connect_address: `${address}:${rest_port}` },
    etcd3: { host: etcd.address },
    bootstrap: {
      dcs: {
        ...times,
        primary_start_timeout: 0,
        synchronous_mode: synchronous,
        postgresql: {
          use_pg_rewind: true,
          parameters: { max_connections: 100, wal_keep_size: '256MB', max_wal_size: '512MB' },
        },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
      pg_hba: ['local all all trust', 'host all all all trust', 'host replication all all trust'],
    },
    postgresql: {
      listen: `${address}:${server_port}`,
      connect_address: `${address}:${server_port}`,
      data_dir: join(disk, 'data'),
      bin_dir: bin(),
      pgpass: join(run, 'pgpass'),
      authentication: {
        superuser: { username: 'postgres' },
        replication: { username: 'postgres' },
        rewind: { username: 'postgres' },
      },
      parameters: { unix_socket_directories: run, ...settings },
    },
  }
}

/** The first process of the server whose data these are, while it lives. */
function serverOf(data: string): number | undefined {
  try {
    const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
    return readlinkSync(`/proc/${pid}/cwd`) === data ? pid : undefined
  } catch {
    return undefined
  }
}
