/**
 * A node of a cluster: `conveyor serve` with a file of its own, in a process that is killed,
 * stopped, cut off and given another time of day.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Backend } from './haproxy.ts'

export interface NodeOptions extends Backend {
  /** Where its data file and its lines are. */
  readonly folder: string
  /** The words that run the program `conveyor`, such as `node child.mjs`. */
  readonly program: readonly string[]
  /** What runs the program: `ip netns exec NAME`. */
  readonly within: readonly string[]
  /** The database; without one it is a node of its own with its file. */
  readonly commit_log?: string
  readonly lease_ms: number
  /** Of the certificates for gRPC. */
  readonly tls: string
  readonly token_file: string
  readonly env: Readonly<Record<string, string>>
  /** More of the command line. */
  readonly flags?: readonly string[]
}

export interface ClusterNode {
  readonly name: string
  readonly options: NodeOptions
  /** Its data file. */
  readonly path: string
  start(): void
  /** Undefined before it is started. */
  pid(): number | undefined
  /** SIGTERM, and SIGKILL for one that does not end; resolves once it has ended. */
  stop(): Promise<void>
  kill(): Promise<void>
  signal(name: NodeJS.Signals): void
  /** `owner` answers callers, `standby` waits, `none` does not answer at all. */
  role(): Promise<'owner' | 'standby' | 'none'>
  /** Moves its time of day, not its monotonic clock; false where libfaketime is missing. */
  setClock(offset_s: number): boolean
}

/** After so long systemd and Kubernetes kill as well, or later. */
const stop_ms_max = 15_000

const libfaketime = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path))

export function newNode(options: NodeOptions): ClusterNode {
  const { name, host, folder, within, program, commit_log, lease_ms } = options
  const path = join(folder, `${name}.lmdb`)
  const clock = join(folder, `${name}.clock`)
  writeFileSync(clock, '+0')
  const cluster_flags =
    commit_log === undefined
      ? []
      : [
          ...['--commit-log', commit_log, '--node', name],
          ...['--address', `${host}:${options.http}`, '--lease-ms', String(lease_ms)],
        ]
  const flags = [
    ...['--json', '--db', path, ...cluster_flags, '--window', '0'],
    ...['--http', `${host}:${options.http}`, '--grpc', `${host}:${options.grpc}`],
    ...['--tls', options.tls, '--operator', `${host}:${options.operator}`],
    ...['--operator-token-file', options.token_file, ...(options.flags ?? [])],
  ]
  const faked = {
    LD_PRELOAD: libfaketime,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: '1',
    DONT_FAKE_MONOTONIC: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
  const env = { ...process.env, ...options.env, ...(libfaketime === undefined ? {} : faked) }
  const [command = '', ...args] = [...within, 'setpriv', '--pdeathsig=KILL', ...program, 'serve']
  let child: ChildProcess | undefined

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    child.kill('SIGCONT')
    await ended
  }
  return {
    ...{ name, options, path },
    start() {
      const lines = openSync(join(folder, `${name}.log`), 'a')
      child = spawn(command, [...args, ...flags], { env, stdio: ['ignore', lines, lines] })
      closeSync(lines)
    },
    pid: () => child?.pid,
    async stop() {
      const killing = setTimeout(() => void end('SIGKILL'), stop_ms_max)
      await end('SIGTERM')
      clearTimeout(killing)
    },
    kill: () => end('SIGKILL'),
    signal: (signal) => void child?.kill(signal),
    async role() {
      const url = `http://${host}:${options.operator}/readyz`
      try {
        const { ok } = await fetch(url, { signal: AbortSignal.timeout(1_000) })
        return ok ? 'owner' : 'standby'
      } catch {
        return 'none'
      }
    },
    setClock(offset_s) {
      if (libfaketime === undefined) return false
      writeFileSync(clock, offset_s < 0 ? `${offset_s}` : `+${offset_s}`)
      return true
    },
  }
}
