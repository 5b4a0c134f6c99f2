/**
 * What the command line has of the outside: its streams, time, and being told to stop. Handed in,
 * so that a test runs a verb in its own process. Nothing else in this folder touches `process`.
 */
import type { Clock } from '../core/clock.ts'

export interface Output {
  write(text: string, done: (error?: Error | null) => void): unknown
  readonly isTTY?: boolean
}

export interface Io {
  readonly stdin: AsyncIterable<Uint8Array>
  readonly stdout: Output
  readonly stderr: Output
  readonly clock: Clock
  readonly pid: number
  sleep_ms(ms: number): Promise<void>
  /** Calls `fn` once, when the process is asked to end; the answer takes it back. */
  onStop(fn: () => void): () => void
  /** Ends the process at once, whatever its threads wait for. */
  kill(): void
}

/** Environment variables by name. */
export type Env = Readonly<Record<string, string | undefined>>

/** Resolves when the text has been taken, which is what holds a fast writer back. */
export function print(output: Output, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    output.write(text, (error) => (error ? reject(error) : resolve()))
  })
}

/** All of a stream as bytes. */
export async function readAll(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}
