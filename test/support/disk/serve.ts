/**
 * `conveyor serve` and other scripts in a process of their own: the first line that it prints, its
 * log, its memory and its end.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { LimitName } from '../../../src/core/limits.ts'

export type Limits = Partial<Record<LimitName, number>>

export interface Running {
  readonly child: ChildProcess
  /** Undefined where it ends before it prints one. */
  readonly first_line: Promise<string | undefined>
  /** What it has written to standard error, which LMDB writes to as well. */
  said(): string
  /** With the time of day. */
  readonly ended: Promise<{ code: number | null; signal: string | null; ended_ms: number }>
}

/** Starts `node` with these words, under the command `tracer` where there is one. */
export function startNode(
  words: readonly string[],
  env: NodeJS.ProcessEnv = {},
  tracer: readonly string[] = [],
): Running {
  const [command = '', ...args] = [...tracer, process.execPath, ...words]
  const stdio = ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe']
  const child = spawn(command, args, { stdio, env: { ...process.env, ...env } })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text
  })
  const exited = once(child, 'exit').then(() => timeOfDay())
  const closed = once(child, 'close')
  const line = once(createInterface({ input: child.stdout }), 'line')
  return {
    child,
    first_line: Promise.race([line.then(([text]) => text as string), closed.then(() => undefined)]),
    said: () => said,
    ended: (async () => {
      const ended_ms = await exited
      const [code, signal] = await closed
      return { code, signal, ended_ms }
    })(),
  }
}

/** The first line, of JSON. Rejects where the process ends before it prints one. */
export async function firstLine<Line>({ first_line, ended, said }: Running): Promise<Line> {
  const line = await first_line
  if (line === undefined) throw new Error(`the process ended with ${(await ended).code}: ${said()}`)
  return JSON.parse(line) as Line
}

export interface ServeSetup {
  /** The built program. */
  readonly script: string
  readonly path: string
  readonly listeners: readonly ('http' | 'http-sync' | 'grpc' | 'operator')[]
  /** The folder of certificates. */
  readonly tls?: string
  readonly limits: Limits
}

/** A line of its log. */
export interface LogLine {
  readonly event: string
  readonly time: string
  readonly is_under_way?: boolean
  readonly what?: string
}

/** By listener, its url or address. */
export type Listening = Readonly<Record<'http' | 'http_sync' | 'grpc' | 'operator', string>> & {
  readonly pid: number
}

export interface Serving extends Running {
  /** The lines of its log so far. */
  lines(): readonly LogLine[]
  rss_mb(): number
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

export function startServing(setup: ServeSetup, env?: NodeJS.ProcessEnv): Serving {
  const running = startNode(serveWords(setup), env)
  return {
    ...running,
    lines: () => running.said().split('\n').flatMap(lineOf),
    rss_mb: () => rssOf(running.child.pid),
  }
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
