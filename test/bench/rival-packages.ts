/**
 * The rivals that need servers: their packages and backends, whether this machine has them, and how
 * `--rivals` installs them. The packages of each rival go into a folder of their own below the
 * system's temp folder and stay there for the next run; they never touch this project's.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bin, no_postgres } from '../support/postgres.ts'

/** Those of whole lives beside servers; pg-boss and graphile-worker take part on one PostgreSQL only. */
export const server_rivals = ['bullmq', 'dbos', 'restate'] as const
export type ServerRivalName = (typeof server_rivals)[number]
export type RivalName = ServerRivalName | 'pg-boss' | 'graphile-worker'

export type BackendName = 'redis' | 'postgres' | 'restate'

export interface RivalPackages {
  readonly name: RivalName
  readonly backend: BackendName
  readonly packages: Readonly<Record<string, string>>
}

const rival_packages: readonly RivalPackages[] = [
  { name: 'bullmq', backend: 'redis', packages: { bullmq: '6.7.0', ioredis: '5.11.1' } },
  // The last one for Node 20.
  { name: 'pg-boss', backend: 'postgres', packages: { 'pg-boss': '10.4.2' } },
  // The last one for Node 20.
  { name: 'graphile-worker', backend: 'postgres', packages: { 'graphile-worker': '0.17.3' } },
  { name: 'dbos', backend: 'postgres', packages: { '@dbos-inc/dbos-sdk': '5.3.0' } },
  {
    name: 'restate',
    backend: 'restate',
    // A newer SDK needs Node 22.
    packages: { '@restatedev/restate-sdk': '1.9.0', '@restatedev/restate-server': '1.7.12' },
  },
]

/** The Debian packages of the backends; that of Restate comes from npm. */
const debian: Readonly<Partial<Record<BackendName, string>>> = {
  redis: 'redis-server',
  postgres: 'postgresql',
}

export interface Found<N extends RivalName> {
  readonly usable: readonly N[]
  /** For each other rival, why it is missing. */
  readonly missing: readonly string[]
}

/** Finds which of these can run here; with `install`, installs what is missing first. */
export function findRivals<N extends RivalName>(
  names: readonly N[],
  install: boolean,
  print: (text: string) => void,
): Found<N> {
  const usable: N[] = []
  const missing: string[] = []
  for (const name of names) {
    const kind = rivalPackages(name)
    try {
      if (install) installPackages(kind, print)
      if (!hasPackages(kind)) throw new Error('not installed; --rivals installs it')
      if (install) installBackend(kind.backend, print)
      if (backendProgram(kind.backend) === undefined)
        throw new Error(`${kind.backend} is not installed`)
      usable.push(name)
    } catch (error) {
      missing.push(`${name}: ${error instanceof Error ? firstLine(error.message) : error}`)
    }
  }
  return { usable, missing }
}

export function rivalPackages(name: RivalName): RivalPackages {
  const found = rival_packages.find((one) => one.name === name)
  if (found === undefined) throw new Error(`${name} is not a rival`)
  return found
}

/** The folder that a rival's packages are resolved from. */
export function packagesOf(name: string): string {
  return join(rivalsFolder(), name)
}

/** It has no types here: each caller declares the part of it that it uses. */
export function loadPackage<T>(folder: string, name: string): T {
  return createRequire(join(folder, 'package.json'))(name) as T
}

/** The program of a backend, or PostgreSQL's folder of them; undefined if it is not installed. */
export function backendProgram(server: BackendName): string | undefined {
  if (server === 'postgres') return no_postgres === undefined ? bin() : undefined
  const folders = (process.env.PATH ?? '').split(':')
  if (server === 'restate') folders.unshift(join(packagesOf('restate'), 'node_modules/.bin'))
  return folders.map((folder) => join(folder, programs[server])).find((path) => existsSync(path))
}

const programs: Readonly<Record<Exclude<BackendName, 'postgres'>, string>> = {
  redis: 'redis-server',
  restate: 'restate-server',
}

function rivalsFolder(): string {
  const uid = process.getuid?.() ?? 0
  const folder = join(tmpdir(), `conveyor-bench-rivals-${uid}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const { uid: owner, mode } = statSync(folder)
  // Code is run from this folder: nobody else may write to it.
  if (owner !== uid || (mode & 0o022) !== 0) throw new Error(`${folder} may be written by others`)
  return folder
}

/** The packages of a folder, by its name. */
type Packages = Pick<RivalPackages, 'packages'> & { readonly name: string }

function hasPackages({ name, packages }: Packages): boolean {
  const modules = join(packagesOf(name), 'node_modules')
  return Object.entries(packages).every(([of, wanted]) => {
    const manifest = join(modules, of, 'package.json')
    return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version === wanted
  })
}

export function installPackages(kind: Packages, print: (text: string) => void): void {
  if (hasPackages(kind)) return
  const folder = packagesOf(kind.name)
  print(`installing ${Object.keys(kind.packages).join(' and ')} into ${folder}`)
  mkdirSync(folder, { recursive: true })
  const manifest = { name: `rival-${kind.name}`, private: true, dependencies: kind.packages }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  runQuietly('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], folder)
}

function installBackend(server: BackendName, print: (text: string) => void): void {
  const wanted = debian[server]
  if (wanted === undefined || backendProgram(server) !== undefined) return
  if (process.getuid?.() !== 0)
    throw new Error(`${wanted} is not installed, and only root can install it`)
  print(`installing ${wanted}`)
  const install = ['install', '-y', '-qq', '--no-install-recommends', wanted]
  runQuietly('apt-get', ['update', '-qq'], '/')
  runQuietly('apt-get', install, '/')
}

export function runQuietly(program: string, args: readonly string[], cwd: string): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  execFileSync(program, args, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] })
}

function firstLine(text: string): string {
  return text.split('\n')[0] as string
}
