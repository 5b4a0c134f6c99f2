/**
 * Temporary backends for the rivals, each on a free port of this machine and in a folder that is
 * removed with it. Each is configured to sync a write before it answers.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BackendName, backendProgram } from './rival-packages.ts'

export interface RunningBackend {
  readonly port: number
  /** Of Restate's admin API; the others do not listen on it. */
  readonly admin_port: number
  stop(): Promise<void>
}

interface Command {
  readonly program: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** The user that runs it and owns its folder. */
  readonly owner?: Owner
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

type CommandOf = (folder: string, port: number, admin_port: number) => Command

/** A backend that accepts no connection by then has failed. */
const start_ms_max = 60_000

const commands: Readonly<Record<BackendName, CommandOf>> = {
  redis: (folder, port) => ({
    program: programOf('redis'),
    args: [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''],
      ...['--appendonly', 'yes', '--appendfsync', 'always'],
    ],
  }),

  postgres(folder, port) {
    const owner = postgresOwner()
    const data = join(folder, 'data')
    if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
    execFileSync(programOf('postgres', 'initdb'), ['-D', data, '-A', 'trust', '-U', 'bench'], {
      stdio: 'ignore',
      cwd: folder,
      ...owner,
    })
    // fsync and synchronous_commit are on by default.
    const args = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', '']
    return { program: programOf('postgres'), args, ...(owner === undefined ? {} : { owner }) }
  },

  restate: (folder, port, admin_port) => ({
    program: programOf('restate'),
    args: ['--base-dir', folder, '--no-logo', '--use-random-ports', 'true', '--bind-ip', host],
    env: {
      RESTATE_INGRESS__BIND_ADDRESS: `${host}:${port}`,
      RESTATE_ADMIN__BIND_ADDRESS: `${host}:${admin_port}`,
      RESTATE_DISABLE_TELEMETRY: 'true',
      RESTATE_LISTEN_MODE: 'tcp',
      RUST_LOG: 'error',
    },
  }),
}

const host = '127.0.0.1'

export async function startBackend(name: BackendName): Promise<RunningBackend> {
  const folder = mkdtempSync(join(tmpdir(), `conveyor-bench-${name}-`))
  const [port, admin_port] = [await freePort(), await freePort()]
  const { program, args, env, owner } = commands[name](folder, port, admin_port)
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...owner,
  })
  const killAndRemove = (): void => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', killAndRemove)
  await untilListening(name === 'restate' ? admin_port : port, name, child)
  return {
    port,
    admin_port,
    async stop() {
      const exited = once(child, 'exit')
      // For PostgreSQL SIGINT is the fast shutdown, which does not wait for its clients.
      child.kill(name === 'postgres' ? 'SIGINT' : 'SIGTERM')
      await exited
      process.off('exit', killAndRemove)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function programOf(server: BackendName, program?: string): string {
  const path = backendProgram(server, program)
  if (path === undefined) throw new Error(`${program ?? server} is not installed`)
  return path
}

/** PostgreSQL refuses to run as root; Debian's package creates a user for it. */
function postgresOwner(): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (flag: string): number =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
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
