/**
 * Runs the command line in this process, with captured streams, its own file and only the given
 * environment. Pauses are short, and a stop signal is a call.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import type { Env, Io, Output } from '../../src/cli/io.ts'
import { main } from '../../src/cli/main.ts'
import { systemClock } from '../../src/core/clock.ts'
import { node_args } from './cli-serve.ts'

export interface Ran {
  readonly exit: number
  readonly out: string
  readonly err: string
}

export interface RunOptions {
  readonly env?: Env
  readonly stdin?: string | Uint8Array | AsyncIterable<Uint8Array>
  /** The words that run the program; default `conveyor`. */
  readonly program?: string
  /** Called when the verb waits for a stop signal, with the function that sends it. */
  readonly onWait?: (stop: () => void) => void
  /** Called with each text printed on stdout. */
  readonly onOut?: (text: string) => void
  /** The same for stderr. */
  readonly onErr?: (text: string) => void
  /** Standard input and output are a terminal of this size; `onKeys` gets what presses a key. */
  readonly terminal?: {
    readonly columns: number
    readonly rows: number
    onKeys(press: (key: string) => void): void
  }
}

export async function run(argv: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const out: string[] = []
  const err: string[] = []
  const io: Io = {
    stdin: streamOf(options.stdin ?? ''),
    stdout: { ...outputTo(out, options.onOut), ...sizeOf(options.terminal) },
    stderr: outputTo(err, options.onErr),
    lines: () => ({ stream: linesTo(outputTo(err, options.onErr)), holds_thread: false }),
    clock: systemClock,
    pid: process.pid,
    command: [process.execPath, ...node_args],
    node: process.version,
    isAlive: (pid) => pid === process.pid,
    program: options.program ?? 'conveyor',
    sleep_ms: () => new Promise((resolve) => setImmediate(resolve)),
    kill() {},
    ...(options.terminal && {
      keys(onKey: (key: string) => void) {
        options.terminal?.onKeys(onKey)
        return () => {}
      },
    }),
    onStop(fn) {
      options.onWait?.(fn)
      return () => {}
    },
  }
  const exit = await main(argv, options.env ?? {}, io)
  return { exit, out: out.join(''), err: err.join('') }
}

/** A folder for one test file, and the function that removes it. */
export function tempFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'conveyor-test-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Rows of NDJSON. */
export function rowsOf(text: string): Record<string, unknown>[] {
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

function outputTo(parts: string[], onText: (text: string) => void = () => {}): Output {
  return {
    write(text, done) {
      parts.push(text)
      onText(text)
      done()
    },
  }
}

function sizeOf(terminal: RunOptions['terminal']): Partial<Output> {
  if (terminal === undefined) return {}
  return { isTTY: true, columns: terminal.columns, rows: terminal.rows }
}

function linesTo(output: Output): Writable {
  return new Writable({
    decodeStrings: false,
    write: (line: string, _encoding, done) => void output.write(line, done),
  })
}

async function* streamOf(
  given: string | Uint8Array | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (typeof given === 'string') yield Buffer.from(given)
  else if (given instanceof Uint8Array) yield given
  else yield* given
}
