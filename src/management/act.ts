/**
 * What an op on another object than a task works with, and how it reads its members. An op checks
 * all before its first write and throws a `Refusal`, so that a refused op changes nothing.
 */
import { isNumberToken, isObject, numberText } from '../codec/json.ts'
import { grant_bits } from '../codec/records.ts'
import { type Fault, fault } from '../core/faults.ts'
import type { Caller, JsonObject, JsonValue } from '../core/model.ts'
import type { Ahead } from '../engine/drafts/draft-confirm.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import type { Process } from '../engine/transactions/catalog.ts'
import type { Transaction } from '../engine/transactions/transaction.ts'
import type { Tx } from '../store/store.ts'

/** A secret of an op, encrypted before the transaction. */
export interface Sealed {
  /** By which its variable finds it. */
  readonly name: string
  put(tx: Tx): void
}

export interface Act {
  readonly tx: Transaction
  readonly op: JsonObject
  readonly caller: Caller
  readonly is_administrator: boolean
  readonly engine: ServedEngine
  /** Drafts that are compiled already, by process. */
  readonly ahead: ReadonlyMap<string, Ahead>
  /** Of the request. */
  readonly spent: { compiles: number }
  readonly sealed?: Sealed | undefined
  /** Runs once the change is durable; not for one that is rolled back. */
  afterwards(run: () => void): void
}

/** A refused op: `description`, and what else its answer has. */
export interface Refusal extends Fault {
  readonly key?: string
  /** The object does not exist, which version 1 has a code for. */
  readonly is_missing?: true
  /** Mistakes by node id. */
  readonly errors?: Readonly<Record<string, readonly string[]>>
  /** What would not have refused it, by node id. */
  readonly warned?: Readonly<Record<string, readonly string[]>>
}

export function refusal(
  description: string,
  more: Pick<Refusal, 'key' | 'is_missing' | 'errors' | 'warned'> = {},
): Refusal {
  return Object.assign(fault('error', description), more)
}

export const noObject = (kind: string, id: string): Refusal =>
  refusal(`Object ${kind} with id ${id} does not exist`, { is_missing: true })

export const required = (key: string): Refusal => refusal(`Key '${key}' is required`, { key })

export const invalid = (key: string, expects: string): Refusal =>
  refusal(`Value is not valid. ${key}: ${expects}`, { key })

export function denied({ caller }: Act, conv_id: string): Fault {
  return fault('access_denied', `user: ${caller.user ?? '-'}, conv_id: ${conv_id}`)
}

/** The text of an id, sent as text or number. */
export function idOf({ op }: Pick<Act, 'op'>, key: string): string {
  const id = idText(op[key])
  if (id !== undefined) return id
  throw op[key] === undefined || op[key] === null ? required(key) : invalid(key, 'an id')
}

export function idText(value: JsonValue | undefined): string | undefined {
  const is_number = typeof value === 'number' || isNumberToken(value)
  const text = is_number ? numberText(value) : value
  return typeof text === 'string' && /^[^\p{Cc}]{1,64}$/u.test(text) ? text : undefined
}

/** An id as answers have it: a number where it is one. */
export function idValue(id: string): string | number {
  return /^(?:0|[1-9][0-9]{0,14})$/.test(id) ? Number(id) : id
}

/** Undefined where it was not sent. */
export function textIn({ op }: Act, key: string, chars_max: number): string | undefined {
  const value = op[key]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && [...value].length <= chars_max) return value
  throw invalid(key, `a text of at most ${chars_max} characters`)
}

/** A whole number from `min` to `max`; `usual` where none was sent. */
export function numberIn(
  { op }: Pick<Act, 'op'>,
  key: string,
  { min = 0, max, usual }: { readonly min?: number; readonly max: number; readonly usual: number },
): number {
  const value = op[key]
  if (value === undefined || value === null) return usual
  const number = Number(idText(value))
  if (Number.isInteger(number) && number >= min && number <= max) return number
  throw invalid(key, `a whole number from ${min} to ${max}`)
}

export function rightsIn({ tx, caller, is_administrator }: Act, conv_id: string): number {
  if (is_administrator) return all_rights
  return caller.user === undefined ? 0 : tx.grantBits(caller.user, conv_id)
}

export const all_rights = Object.values(grant_bits).reduce((sum, bit) => sum | bit, 0)

/** The process that a member names, for one who may edit it. */
export const editable = (act: Act, key: string): Process => permitted(act, key, grant_bits.edit)

/** The process that a member names, for one with the right of this bit. */
export function permitted(act: Act, key: string, right: number): Process {
  const conv_id = idOf(act, key)
  if ((rightsIn(act, conv_id) & right) === 0) throw denied(act, conv_id)
  const process = act.tx.process(conv_id)
  if (process !== undefined) return process
  throw act.is_administrator ? noObject('conv', conv_id) : denied(act, conv_id)
}

/** What is no process belongs to administrators. */
export function requireAdministrator(act: Act): void {
  if (!act.is_administrator) throw denied(act, idText(act.op.obj_id) ?? '-')
}

/** Call after the writes: the change reaches the log and the engine when it is durable. */
export function acted(act: Act, conv_id: string, version?: number): void {
  const { tx, engine, op, caller } = act
  tx.forgetProcess(conv_id)
  const name = `${op.type} ${op.obj}`
  act.afterwards(() => {
    engine.onProcessChanged(conv_id)
    engine.emit('process_managed', { act: name, user: caller.user, conv_id, version })
  })
}

export function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

export const listOf = (value: JsonValue | undefined): JsonValue[] =>
  Array.isArray(value) ? value : []

export const secondsOf = (time_ms: number | undefined): number => Math.floor((time_ms ?? 0) / 1000)
