/** The row of a verb: its words, flags and function, which parsing, help and execution read. */
import { type Exit, usageError } from './exit-codes.ts'
import type { Flag, Word } from './flag.ts'
import type { Env, Io } from './io.ts'

export interface Verb {
  /** One or two words: `process import`. */
  readonly name: string
  readonly words: readonly Word[]
  readonly flags: readonly Flag[]
  readonly says: string
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

export function dbOf(given: Given): string {
  return text(given, 'db') ?? './conveyor.lmdb'
}
