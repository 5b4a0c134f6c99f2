/**
 * `conveyor serve` in a process of its own, over a file on a disk that a proof makes fail: where it
 * listens, the lines of its log, its memory and its end.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { LimitName } from '../../../src/core/limits.ts'

export type Limits = Partial<Record<LimitName, number>>
export type Listener = 'http' | 'http-sync' | 'grpc' | 'operator'

export interface ServeSetup {
  /** The built program. */
  readonly script: string
  readonly path: string
  readonly listeners: readonly Listener[]
  /** The folder of certificates. */
  readonly tls?: string
  readonly limits: Limits
  readonly env?: NodeJS.ProcessEnv
}

/** A line of its log. */
export interface LogLine {
  readonly event: string
  readonly time: string
  readonly is_under_way?: boolean
  readonly what?: string
}

/** By listener, its url or address. */
export type Listening = Readonly<Record<'http' | 'http_sync' | 'grpc' | 'operator', string>>

export interface Serving {
  readonly child: ChildProcess
  /** Undefined where it ended before it listened. */
  readonly listening: Promise<Listening | undefined>
  /** The lines of its log so far. */
  lines(): readonly LogLine[]
  /** What it has written to standard error, which LMDB writes to as well. */
  said(): string
  rss_mb(): number
  /** With the time of day. */
  readonly ended: Promise<{ code: number | null; signal: string | null; ended_ms: number }>
}

/** The words after `node` that serve a file. */
export function serveWords({ script, path, listeners, tls, limits }: ServeSetup): string[] {
  const flags = Object.entries(limits).flatMap(([name, value]) => [
    `--${name.replaceAll('_', '-')}`,
    String(value),
  ])
  return [
    ...[script, 'serve', '--json', '--db', path, ...(tls === undefined ? [] : ['--tls', tls])],
    ...listeners.flatMap((listener) => [`--${listener}`, '127.0.0.1:0']),
    ...flags,
  ]
}

export function startServing(setup: ServeSetup): Serving {
  const child = spawn(process.execPath, serveWords(setup), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...setup.env },
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text
  })
  const exited = once(child, 'exit').then(() => timeOfDay())
  const closed = once(child, 'close')
  const line = once(createInterface({ input: child.stdout }), 'line')
  return {
    child,
    listening: Promise.race([
      line.then(([text]) => JSON.parse(text as string) as Listening),
      closed.then(() => undefined),
    ]),
    lines: () => said.split('\n').flatMap(lineOf),
    said: () => said,
    rss_mb: () => rssOf(child.pid),
    ended: (async () => {
      const ended_ms = await exited
      const [code, signal] = await closed
      return { code, signal, ended_ms }
    })(),
  }
}

/** Rejects where the program ends before it listens. */
export async function addressesOf({ listening, ended, said }: Serving): Promise<Listening> {
  const at = await listening
  if (at === undefined) throw new Error(`serve ended with ${(await ended).code}: ${said()}`)
  return at
}

export const timeOfDay = (): number => performance.timeOrigin + performance.now()

function lineOf(text: string): LogLine[] {
  return text.startsWith('{') && text.endsWith('}') ? [JSON.parse(text) as LogLine] : []
}

/** 0 where the process has ended. */
export function rssOf(pid: number | undefined): number {
  try {
    const [, kb] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Math.round(Number(kb ?? 0) / 1_024)
  } catch {
    return 0
  }
}
