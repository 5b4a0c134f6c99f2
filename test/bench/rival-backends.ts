/**
 * Temporary backends for the rivals, each on a free port of this machine and in a folder that is
 * removed with it. Each is configured to sync a write before it answers.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
  /** The user that runs it and owns its folder. */
  readonly owner?: Owner
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

type CommandOf = (folder: string, port: number, admin_port: number, inside?: Namespace) => Command

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

  postgres(folder, port, _admin_port, inside) {
    const owner = postgresOwner()
    const data = join(folder, 'data')
    if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
    execFileSync(programOf('postgres', 'initdb'), ['-D', data, '-A', 'trust', '-U', 'bench'], {
      stdio: 'ignore',
      cwd: folder,
      ...owner,
    })
    // fsync and synchronous_commit are on by default.
    const bound_to = inside?.server_host ?? host
    const args = ['-D', data, '-p', String(port), '-h', bound_to, '-k', '']
    const program = programOf('postgres')
    if (inside === undefined) return { program, args, ...(owner === undefined ? {} : { owner }) }
    appendFileSync(join(data, 'pg_hba.conf'), `host all all ${inside.client_host}/32 trust\n`)
    // Only root enters a namespace, which is not what PostgreSQL may run as.
    const as = owner === undefined ? [] : ['--reuid', `${owner.uid}`, '--regid', `${owner.gid}`]
    const [enter = '', ...entering] = inside.enter
    const command = [...entering, 'setpriv', ...as, '--clear-groups', program, ...args]
    return { program: enter, args: command }
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

/** `inside`: of PostgreSQL only, the network namespace that it runs in. */
export async function startBackend(name: BackendName, inside?: Namespace): Promise<RunningBackend> {
  const folder = mkdtempSync(join(tmpdir(), `conveyor-bench-${name}-`))
  const [port, admin_port] = [await freePort(), await freePort()]
  const { program, args, env, owner } = commands[name](folder, port, admin_port, inside)
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
  const address = { host: inside?.server_host ?? host, port }
  await untilListening(name === 'restate' ? { host, port: admin_port } : address, name, child)
  return {
    ...address,
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

interface Address {
  readonly host: string
  readonly port: number
}

async function untilListening(address: Address, name: string, child: ChildProcess): Promise<void> {
  let stderr = ''
  child.stderr?.on('data', (bytes) => {
    stderr = `${stderr}${bytes}`.slice(-2_000)
  })
  for (const until_ms = Date.now() + start_ms_max; Date.now() < until_ms; ) {
    if (child.exitCode !== null) break
    if (await isListening(address)) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${name} does not start: ${stderr}`)
}

function isListening(address: Address): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address)
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
