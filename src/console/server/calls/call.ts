/**
 * What a call is: a right, a function, and what the log says of it. Its input is unchecked JSON, so
 * each call checks every member with the functions below, which throw `bad_request` with a sentence
 * that names the member. A refused op is an outcome; other refusals are faults. All texts, inputs
 * and results are bounded.
 */

import { isObject } from '../../../codec/json.ts'
import { isName } from '../../../codec/op.ts'
import { type Fault, fault } from '../../../core/faults.ts'
import { limitTable } from '../../../core/limits.ts'
import type { BulkAction } from '../../../engine/api/search-api.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import { quoted } from '../../../process/report.ts'
import type { Drawings } from '../../diagram/drawings.ts'
import type { Overviews } from '../../overview/overview.ts'
import type { CallName, ConsoleCalls, Right } from '../messages.ts'

export interface CallContext {
  readonly engine: ServedEngine
  readonly overviews: Overviews
  readonly drawings: Drawings
}

/** What the log line has beside the call and its session: no ref, and no data. */
export interface Acted {
  readonly conv_id?: string
  readonly obj_id?: string
  /** Of a refused op; the server knows that of a fault, and otherwise it is `ok`. */
  readonly code?: string
  /** What is done to many. */
  readonly action?: BulkAction
  readonly tasks?: number
}

export interface CallRow<Name extends CallName> {
  /** The least right that may call it. */
  readonly right: Right
  /** Bytes of the input at most, where it may have more than others. */
  readonly input_bytes_max?: number
  /**
   * Of a call that may change something: called after it with its output, or without one where it
   * threw. Undefined for a call that was only to look.
   */
  readonly acts?: (input: unknown, output?: ConsoleCalls[Name]['out']) => Acted | undefined
  run(context: CallContext, input: unknown): Promise<ConsoleCalls[Name]['out']>
}

/** Of the JSON of an input, beside the data of a task with every character escaped. */
export const input_bytes_max = 1024 * 1024

export type Input<Name extends string> = Readonly<Partial<Record<Name, unknown>>>

export const badRequest = (says: string): Fault => fault('bad_request', says)

/** An object that has no members of other names. */
export function inputOf<const Name extends string>(
  given: unknown,
  names: readonly Name[],
): Input<Name> {
  const input = objectOf('the input', given)
  const other = Object.keys(input).find((name) => !names.includes(name as Name))
  if (other === undefined) return input as Input<Name>
  throw badRequest(`there is no ${quoted(other)}; the call takes ${names.join(', ') || 'nothing'}`)
}

export function objectOf(name: string, value: unknown): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value
  throw badRequest(`${name} is no object`)
}

/** Of the searches of many tasks, beside the members of their filter. */
export const cursorOf = (name: string, value: unknown): string => textOf(name, value, 4_096)

export const whereOf = (name: string, value: unknown): string => textOf(name, value, 65_536)

/** A text of 1 to `chars_max` UTF-16 units. */
export function textOf(name: string, value: unknown, chars_max: number): string {
  if (typeof value !== 'string' || value === '') throw badRequest(`${name} is no text`)
  if (value.length <= chars_max) return value
  throw badRequest(`${name} is over ${chars_max} characters long`)
}

/** The id of a process or of a node. */
export function idOf(name: string, value: unknown): string {
  const chars_max = limitTable.conv_id_chars_max.max
  if (typeof value === 'string' && isName(value, chars_max)) return value
  throw badRequest(`${name} is no text of 1 to ${chars_max} characters`)
}

const obj_id_pattern = /^[0-9a-f]{24}$/i

export function isObjId(value: unknown): value is string {
  return typeof value === 'string' && obj_id_pattern.test(value)
}

export function objIdOf(name: string, value: unknown): string {
  if (isObjId(value)) return value.toLowerCase()
  throw badRequest(`${name} is no id of a task, which has 24 hex digits`)
}

/** False where it is absent. */
export function flagOf(name: string, value: unknown = false): boolean {
  if (typeof value === 'boolean') return value
  throw badRequest(`${name} is neither true nor false`)
}

/** A whole number from 1 on. */
export function countOf(name: string, value: unknown, max = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= max) {
    return value as number
  }
  throw badRequest(`${name} is no whole number ${max < 1e9 ? `from 1 to ${max}` : 'above 0'}`)
}

/** `{ [name]: value }` where the value is there, else `{}`: to be spread. */
export function optional<Name extends string, T>(
  name: Name,
  value: unknown,
  read: (name: string, value: unknown) => T,
): { readonly [N in Name]?: T } {
  return value === undefined ? {} : ({ [name]: read(name, value) } as { [N in Name]: T })
}

/** For the log: what an input names, where it is an id. */
export function namedIn(given: unknown): { readonly conv_id?: string; readonly obj_id?: string } {
  const { conv_id, obj_id } = (given ?? {}) as Input<'conv_id' | 'obj_id'>
  const is_id = typeof conv_id === 'string' && isName(conv_id, limitTable.conv_id_chars_max.max)
  return { ...(is_id ? { conv_id } : {}), ...(isObjId(obj_id) ? { obj_id } : {}) }
}
