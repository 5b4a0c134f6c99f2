/**
 * The command line's access to the outside: streams, files named as arguments, time and stop
 * signals. It is passed in, so that tests run verbs in their own process; nothing else in this
 * folder touches `process`. Input text is UTF-8 or refused, because replaced characters would be
 * stored.
 */
import { readFile } from 'node:fs/promises'
import type { Clock } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import { usageError } from './exit-codes.ts'
import type { LineStream } from './line-stream.ts'

export interface Output {
  write(text: string, done: (error?: Error | null) => void): unknown
  readonly isTTY?: boolean
  /** Of a terminal: its size in characters. */
  readonly columns?: number
  readonly rows?: number
}

export interface Io {
  readonly stdin: AsyncIterable<Uint8Array>
  readonly stdout: Output
  readonly stderr: Output
  /** Opens standard error for the lines of a log. Throws where it is gone. */
  readonly lines: () => LineStream
  readonly clock: Clock
  readonly pid: number
  /** The words that run this program again, as `npm run -s conveyor --`; see program.ts. */
  readonly program: string
  /** What starts this program again: Node, its flags and the script. */
  readonly command: readonly string[]
  /** The version of Node, as `v20.20.2`. */
  readonly node: string
  isAlive(pid: number): boolean
  sleep_ms(ms: number): Promise<void>
  /** Calls `fn` once when the process is asked to end; the returned function removes it. */
  onStop(fn: () => void): () => void
  /**
   * Calls `onKey` with each key that is pressed; the returned function ends that. Undefined where
   * no terminal is at standard input.
   */
  readonly keys?: (onKey: (key: string) => void) => () => void
  /** Ends the process at once, whatever its threads wait for. */
  kill(): void
}

export type Env = Readonly<Record<string, string | undefined>>

/** Resolves when the stream has taken the text, which slows a fast writer down. */
export function print(output: Output, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    output.write(text, (error) => (error ? reject(error) : resolve()))
  })
}

/** All bytes of a stream. Rejects with a usage fault for more than `bytes_max`. */
export async function readAll(
  stream: AsyncIterable<Uint8Array>,
  bytes_max = Infinity,
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes > bytes_max) throw usageError(`more than ${bytes_max} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The bytes of a file, or of standard input for `-`. Rejects with a usage fault. */
export async function readInput(path: string, io: Io): Promise<Buffer> {
  if (path === '-') return readAll(io.stdin)
  try {
    return await readFile(path)
  } catch (error) {
    throw unreadable(path, error)
  }
}

/** Bytes as text without a byte order mark. Throws `format_error` for bytes that are not UTF-8. */
export function decodeText(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw fault('format_error', `${what} is not UTF-8 text`)
  }
}

export function unreadable(path: string, error: unknown): Error {
  const { code, message } = error as NodeJS.ErrnoException
  const why = code === 'ENOENT' ? 'there is no such file' : message
  return usageError(`cannot read ${path}: ${why}`)
}

/** A line, or what is wrong with it; numbers start at 1. */
export type Line =
  | { readonly number: number; readonly text: string }
  | { readonly number: number; readonly mistake: string }

/**
 * The lines of a stream of any length, one in memory at a time. A line over `bytes_max` is skipped
 * and yields a mistake. The last line needs no line end.
 */
export async function* linesOf(
  stream: AsyncIterable<Uint8Array>,
  bytes_max: number,
): AsyncGenerator<Line> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let parts: Uint8Array[] = []
  let bytes = 0
  let number = 0
  const take = (): Line => {
    const taken = parts
    const is_long = bytes > bytes_max
    parts = []
    bytes = 0
    number++
    if (is_long) return { number, mistake: `longer than ${bytes_max} bytes` }
    try {
      return { number, text: decoder.decode(taken.length === 1 ? taken[0] : Buffer.concat(taken)) }
    } catch {
      return { number, mistake: 'not UTF-8 text' }
    }
  }
  for await (const chunk of stream) {
    let from = 0
    for (;;) {
      const end = chunk.indexOf(0x0a, from)
      const part = chunk.subarray(from, end === -1 ? chunk.length : end)
      bytes += part.length
      if (bytes > bytes_max) parts = []
      else parts.push(part)
      if (end === -1) break
      yield take()
      from = end + 1
    }
  }
  if (bytes > 0) yield take()
}

/** Asks for the number of what a command changes; true if the next line of input is this number. */
export async function isConfirmed(io: Io, asks: string, number: number): Promise<boolean> {
  await print(io.stderr, asks)
  for await (const line of linesOf(io.stdin, 100)) {
    if ('text' in line && line.text.trim() === String(number)) return true
    break
  }
  await print(io.stderr, 'that is not the number, nothing was changed\n')
  return false
}
