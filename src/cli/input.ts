/**
 * Files named on the command line; `-` is standard input. Text is UTF-8 or refused: half-read
 * characters would be stored.
 */
import { readFile } from 'node:fs/promises'
import { fault } from '../core/faults.ts'
import { usage } from './exit-codes.ts'
import { type Io, readAll } from './io.ts'

/** The bytes of a file, or of standard input. A usage fault where it cannot be read. */
export async function readInput(path: string, io: Io): Promise<Buffer> {
  if (path === '-') return readAll(io.stdin)
  try {
    return await readFile(path)
  } catch (error) {
    throw unreadable(path, error)
  }
}

/** Bytes as text, without a byte order mark. `format_error` where they are not UTF-8. */
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
  return usage(`cannot read ${path}: ${why}`)
}
