/**
 * The type of a verb: its words, its flags and its function. Parsing, help and execution all read
 * the same row.
 */

import { type Exit, usageError } from './exit-codes.ts'
import type { Env, Io } from './io.ts'

export interface Flag {
  /** Without dashes. Its environment variable: `--secret-file` is CONVEYOR_SECRET_FILE. */
  readonly name: string
  /** The placeholder in the help, such as `FILE`. A flag without one is a switch. */
  readonly value?: string
  readonly says: string
  /** May be repeated; has no environment variable. */
  readonly many?: true
  /** Has no environment variable. */
  readonly no_env?: true
}

export interface Word {
  readonly name: string
  readonly optional?: true
  /** May be repeated; only the last word. */
  readonly many?: true
}

export interface Verb {
  /** One or two words: `process import`. */
  readonly name: string
  readonly words: readonly Word[]
  readonly flags: readonly Flag[]
  readonly says: string
  /** More lines of its own help. */
  readonly notes?: readonly string[]
  run(given: Given, io: Io): Promise<Exit>
}

/** The words and flags that were given. */
export interface Given {
  readonly verb: Verb
  readonly words: readonly string[]
  readonly flags: Readonly<Record<string, string | boolean | readonly string[]>>
  readonly env: Env
}

/** A required word. */
export function word(given: Given, at: number): string {
  return given.words[at] as string
}

export function text(given: Given, name: string): string | undefined {
  const value = given.flags[name]
  return typeof value === 'string' ? value : undefined
}

/** The value, which must be one of these. Throws a usage fault. */
export function oneOf<Value extends string>(
  what: string,
  value: string | undefined,
  values: readonly Value[],
): Value | undefined {
  const known = values.find((one) => one === value)
  if (known === value) return known
  throw usageError(`${what} is one of ${values.join(', ')}`)
}

export function isOn(given: Given, name: string): boolean {
  return given.flags[name] === true
}

export function list(given: Given, name: string): readonly string[] {
  const value = given.flags[name]
  return Array.isArray(value) ? value : []
}

export const db_flag: Flag = {
  name: 'db',
  value: 'FILE',
  says: 'the data file (default ./conveyor.lmdb)',
}

export const json_flag: Flag = { name: 'json', says: 'print JSON, for programs' }

export function dbOf(given: Given): string {
  return text(given, 'db') ?? './conveyor.lmdb'
}
