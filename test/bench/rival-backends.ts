/**
 * Temporary backends for the rivals, each on a free port of this machine and in a folder that is
 * removed with it. Each is configured to sync a write before it answers.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { startPostgres } from '../support/postgres.ts'
import type { Namespace } from './cluster/network.ts'
import { type BackendName, backendProgram } from './rival-packages.ts'

export interface RunningBackend {
  readonly host: string
  readonly port: number
  /** Of Restate's admin API; the others do not listen on it. */
  readonly admin_port: number
  stop(): Promise<void>
}

interface Command {
  readonly program: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

type CommandOf = (folder: string, port: number, admin_port: number) => Command

/** A backend that accepts no connection by then has failed. */
const start_ms_max = 60_000

const commands: Readonly<Record<Exclude<BackendName, 'postgres'>, CommandOf>> = {
  redis: (folder, port) => ({
    program: programOf('redis'),
    args: [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''],
      ...['--appendonly', 'yes', '--appendfsync', 'always'],
    ],
  }),

  restate: (folder, port, admin_port) => ({
    program: programOf('restate'),
    args: ['--base-dir', folder, '--no-logo', '--use-random-ports', 'true', '--bind-ip', host],
    env: {
      RESTATE_INGRESS__BIND_ADDRESS: `${host}:${port}`,
      RESTATE_ADMIN__BIND_ADDRESS: `${host}:${admin_port}`,
      RESTATE_DISABLE_TELEMETRY: 'true',
      RESTATE_LISTEN_MODE: 'tcp',
      // A run that waits keeps its slot for a minute: with the default of 1,000 slots, no resume got
      // one while thousands of tasks waited, and none was answered.
      RESTATE_WORKER__INVOKER__CONCURRENT_INVOCATIONS_LIMIT: '100000',
      RUST_LOG: 'error',
    },
  }),
}

const host = '127.0.0.1'

/** A PostgreSQL that answers what it has synced, in a network of its own where `within` it is given. */
export async function startPostgresBackend(within?: Namespace): Promise<RunningBackend> {
  const postgres = await startPostgres(
    within === undefined ? {} : { host: within.server_host, within: within.enter },
  )
  const { host, port, folder } = postgres
  const killAndRemove = (): void => {
    postgres.signal('SIGKILL')
    rmSync(dirname(folder), { recursive: true, force: true })
  }
  process.once('exit', killAndRemove)
  const stop = async (): Promise<void> => {
    process.off('exit', killAndRemove)
    await postgres.remove()
  }
  return { host, port, admin_port: 0, stop }
}

export async function startBackend(name: BackendName): Promise<RunningBackend> {
  if (name === 'postgres') return startPostgresBackend()
  const folder = mkdtempSync(join(tmpdir(), `conveyor-bench-${name}-`))
  const [port, admin_port] = [await freePort(), await freePort()]
  const { program, args, env } = commands[name](folder, port, admin_port)
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const killAndRemove = (): void => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', killAndRemove)
  await untilListening(name === 'restate' ? admin_port : port, name, child)
  return {
    host,
    port,
    admin_port,
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      process.off('exit', killAndRemove)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function programOf(server: BackendName): string {
  const path = backendProgram(server)
  if (path === undefined) throw new Error(`${server} is not installed`)
  return path
}

async function untilListening(port: number, name: string, child: ChildProcess): Promise<void> {
  let stderr = ''
  child.stderr?.on('data', (bytes) => {
    stderr = `${stderr}${bytes}`.slice(-2_000)
  })
  for (const until_ms = Date.now() + start_ms_max; Date.now() < until_ms; ) {
    if (child.exitCode !== null) break
    if (await isListening(port)) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${name} does not start: ${stderr}`)
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    const answer = (is_up: boolean): void => {
      socket.destroy()
      resolve(is_up)
    }
    socket.on('connect', () => answer(true))
    socket.on('error', () => answer(false))
  })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}
