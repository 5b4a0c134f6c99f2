/**
 * `conveyor serve` as a separate process, for signals, the lock and the socket. Each start is slow,
 * so tests share one.
 */
import './end-soon.ts'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { codePath, node_flags } from './package-folder.ts'

export const node_args = [...node_flags, codePath('bin/conveyor')]

export interface Served {
  readonly child: ChildProcess
  /** The line it prints when it listens. */
  readonly line: Readonly<Record<string, unknown>>
  readonly url: string
  /** What it has printed so far. */
  out(): string
  err(): string
  /** Its exit code, once it has ended. */
  readonly ended: Promise<number | null>
  /** Sends SIGTERM and resolves with its exit code. */
  stop(): Promise<number | null>
}

/** Starts a command that serves with `--json`, and waits until it listens. `stderr` may be a file. */
export async function startServe(
  [command = '', ...args]: readonly string[],
  stderr: 'pipe' | number = 'pipe',
): Promise<Served> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', stderr] })
  let out = ''
  let err = ''
  child.stderr?.on('data', (chunk) => {
    err += String(chunk)
  })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  const line = await new Promise<Record<string, unknown>>((resolve, reject) => {
    child.stdout?.on('data', (chunk) => {
      out += String(chunk)
      const [first = '', ...rest] = out.split('\n')
      if (rest.length > 0) resolve(JSON.parse(first) as Record<string, unknown>)
    })
    child.on('exit', (code) => reject(new Error(`serve ended with ${code}: ${err}`)))
  })
  return {
    child,
    line,
    url: String(line.http),
    out: () => out,
    err: () => err,
    ended,
    async stop() {
      child.kill('SIGTERM')
      return ended
    },
  }
}
