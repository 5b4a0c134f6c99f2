/**
 * The exit codes (wire 3), the faults that lead to each, and the faults that only the command line
 * has. Faults are recognised by `code`.
 */
import { isFault, type Mistake } from '../core/faults.ts'

export const exits = {
  ...{ done: 0, refused: 1, usage: 2, unreachable: 3, unauthenticated: 4 },
  /** A backup was made, of data that is damaged. */
  damaged: 5,
} as const

export type Exit = (typeof exits)[keyof typeof exits]

/** The failure of a verb: its text on stderr, and the exit code. */
export interface Failure {
  readonly exit: Exit
  readonly code: string
  /** One sentence that says what to do. */
  readonly description: string
  readonly mistakes: readonly string[]
  readonly warnings?: readonly Mistake[]
}

export function usageError(text: string): Error {
  return Object.assign(new Error(text), { code: 'usage', exit: exits.usage })
}

/** The file or the server is out of reach. */
export function unreachableError(text: string, code = 'unreachable'): Error {
  return Object.assign(new Error(text), { code, exit: exits.unreachable })
}

/** Any error as a failure. An error that is neither a fault nor a system error is a bug. */
export function failureOf(error: unknown): Failure {
  const description = error instanceof Error ? error.message : String(error)
  const { code, exit } = (error ?? {}) as { code?: unknown; exit?: Exit }
  if (typeof code === 'string' && exit !== undefined) {
    return { exit, code, description, mistakes: [] }
  }
  if (isFault(error)) {
    const { mistakes = [], warnings } = error
    const says = mistakes.length === 0 ? description : mistakesText(mistakes.length)
    return {
      exit: exit_of_code.get(error.code) ?? exits.refused,
      code: error.code,
      description: says,
      mistakes,
      ...(warnings && { warnings }),
    }
  }
  if (typeof code === 'string' && (error as NodeJS.ErrnoException).syscall !== undefined) {
    return { exit: exits.unreachable, code, description, mistakes: [] }
  }
  const bug = `this is a bug of conveyor, please report it: ${description}`
  return { exit: exits.unreachable, code: 'internal_error', description: bug, mistakes: [] }
}

/** Codes without a row exit as `refused`. */
const exit_of_code: ReadonlyMap<string, Exit> = new Map([
  ['file_held', exits.unreachable],
  ['not_a_database', exits.unreachable],
  ['older_format', exits.unreachable],
  ['newer_format', exits.unreachable],
  ['native_not_loaded', exits.unreachable],
  ['shutting_down', exits.unreachable],
  ['store_failed', exits.unreachable],
  ['overloaded', exits.unreachable],
  ['no_space', exits.unreachable],
  ['internal_error', exits.unreachable],
  ['bad_signature', exits.unauthenticated],
  ['stale_timestamp', exits.unauthenticated],
])

function mistakesText(count: number): string {
  return `${count} ${count === 1 ? 'mistake' : 'mistakes'} in the definition, nothing was stored`
}

export function isRangeError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'RangeError'
}
