/**
 * How a verb ends: the exit codes (wire 3), which fault leads to which, and the faults that only
 * the command line knows. A fault is told by its `code`, as everywhere.
 */
import { isFault } from '../core/faults.ts'

export const exits = { done: 0, refused: 1, usage: 2, unreachable: 3, unauthenticated: 4 } as const

export type Exit = (typeof exits)[keyof typeof exits]

/** How a failed verb is told: on stderr, and as the exit code. */
export interface Failure {
  readonly exit: Exit
  readonly code: string
  /** One sentence that says what to do. */
  readonly description: string
  readonly mistakes: readonly string[]
}

/** The words on the command line are wrong. */
export function usage(text: string): Error {
  return Object.assign(new Error(text), { code: 'usage', exit: exits.usage })
}

/** The file or the server cannot be had; `code` says why, where a fault did. */
export function unreachable(text: string, code = 'unreachable'): Error {
  return Object.assign(new Error(text), { code, exit: exits.unreachable })
}

/** Any error as a failure; what is no fault and no system error is a bug, and says so. */
export function failureOf(error: unknown): Failure {
  const description = error instanceof Error ? error.message : String(error)
  const { code, exit } = (error ?? {}) as { code?: unknown; exit?: Exit }
  if (typeof code === 'string' && exit !== undefined) {
    return { exit, code, description, mistakes: [] }
  }
  if (isFault(error)) {
    const { mistakes = [] } = error
    const says = mistakes.length === 0 ? description : mistakesText(mistakes.length)
    return {
      exit: exit_of_code.get(error.code) ?? exits.refused,
      code: error.code,
      description: says,
      mistakes,
    }
  }
  if (typeof code === 'string' && (error as NodeJS.ErrnoException).syscall !== undefined) {
    return { exit: exits.unreachable, code, description, mistakes: [] }
  }
  const bug = `this is a bug of conveyor, please report it: ${description}`
  return { exit: exits.unreachable, code: 'internal_error', description: bug, mistakes: [] }
}

/** What is not listed is a refusal. */
const exit_of_code: ReadonlyMap<string, Exit> = new Map([
  ['file_held', exits.unreachable],
  ['not_a_database', exits.unreachable],
  ['newer_format', exits.unreachable],
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

/** An option that makes no sense, which its maker says in a sentence. */
export function isRangeError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'RangeError'
}
