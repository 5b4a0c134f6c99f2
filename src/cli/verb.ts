/**
 * The row of a verb: its words, flags and function, which parsing, help and execution read; and the
 * readers of what was given, which throw usage faults.
 */
import { defined } from '../core/defined.ts'
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

/** A flag by its name and, unless it is a switch, its placeholder: `flag('tls DIR', …)`. */
export function flag(form: string, says: string, more: Pick<Flag, 'many' | 'no_env'> = {}): Flag {
  const [name = '', value] = form.split(' ')
  return { name, ...defined({ value }), says, ...more }
}

function wordOf(form: string): Word {
  const [, optional, name = '', many] = /^(\[)?([^\]…]+)\]?(…)?$/.exec(form) ?? []
  return { name, ...(optional && { optional: true }), ...(many && { many: true }) }
}

export const db_flag = flag('db FILE', 'the data file (default ./conveyor.lmdb)')
export const json_flag = flag('json', 'print JSON, for programs')

/** Of a verb that needs nothing but the data file. */
export const file_flags: readonly Flag[] = [db_flag, json_flag]

export interface Verb {
  /** One or two words: `process import`. */
  readonly name: string
  readonly words: readonly Word[]
  readonly flags: readonly Flag[]
  readonly says: string
  readonly notes?: readonly string[]
  run(given: Given, io: Io): Promise<Exit>
}

/** A verb by its form in the help: `user sign ID HOW`, `task list [CONV]`, `certs init DIR`. */
export function verbOf(form: string, row: Omit<Verb, 'name' | 'words'>): Verb {
  const [, name = '', words] = /^([a-z -]+?)(?: ([A-Z[].*))?$/.exec(form) ?? []
  return { ...row, name, words: words?.split(' ').map(wordOf) ?? [] }
}

/** The words and flags that were given. */
export interface Given {
  readonly verb: Verb
  readonly words: readonly string[]
  readonly flags: Readonly<Record<string, string | boolean | readonly string[]>>
  readonly env: Env
}

export const word = (given: Given, at: number): string => given.words[at] as string

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

export const isOn = (given: Given, name: string): boolean => given.flags[name] === true

export function list(given: Given, name: string): readonly string[] {
  const value = given.flags[name]
  return Array.isArray(value) ? value : []
}

export const dbOf = (given: Given): string => text(given, 'db') ?? './conveyor.lmdb'

const unit_ms: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** `90s`, `15m`, `24h`, `7d` in milliseconds. */
export function durationMs(given: string): number {
  const [, digits, unit] = /^([0-9]{1,9})([smhd])$/.exec(given) ?? []
  if (digits === undefined || unit === undefined) {
    throw usageError('a time is a whole number and s, m, h or d, such as 24h')
  }
  return Number(digits) * (unit_ms[unit] as number)
}

/**
 * In milliseconds since 1970: a date, a date and time with an offset (without one it would be the
 * time of this machine), milliseconds, `24h` ago, or `+24h` from now. `what` is the flag.
 */
export function timeMs(what: string, given: string, now_ms: number): number {
  if (/^[0-9]+$/.test(given)) return Number(given)
  if (/^\+?[0-9]+[smhd]$/.test(given)) {
    const ms = durationMs(given.replace('+', ''))
    return given.startsWith('+') ? now_ms + ms : now_ms - ms
  }
  const is_time = /^\d{4}-\d{2}-\d{2}(T[0-9:.]+(Z|[+-]\d{2}:?\d{2}))?$/.test(given)
  const ms = is_time ? Date.parse(given) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  const forms = 'such as 2026-01-31T08:05:00Z, or 24h for a day ago, or +24h'
  throw usageError(`${what} is a time and its offset, ${forms}`)
}
