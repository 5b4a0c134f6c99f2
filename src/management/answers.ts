/**
 * The answers to ops on other objects than tasks, as JSON text. Both versions list the same
 * members; they differ in the place of `proc` and in an `id` that was not sent.
 */
import { isNumberToken, numberText, stringifyJson } from '../codec/json.ts'
import { type Fault, isOpFaultCode } from '../core/faults.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import type { Refusal } from './act.ts'

/** The members of an answer after `proc`; `obj_id` stands before it, by default as asked. */
export type Answer = JsonObject

export function doneText(version: 1 | 2, op: JsonObject, answer: Answer): string {
  const { obj_id = op.obj_id, ...rest } = answer
  const head = members({ obj: op.obj, obj_id: idIn(obj_id) })
  const more = members(rest)
  const ok = '"proc":"ok"'
  const parts = version === 2 ? [idOf(op, '""'), ok, head, more] : [idOf(op), head, ok, more]
  return `{${parts.filter((part) => part !== '').join(',')}}`
}

export function refusedText(version: 1 | 2, op: JsonObject, refused: Fault): string {
  const { key, errors, warned } = refused as Refusal
  const about = { obj: op.obj, obj_id: idIn(op.obj_id), proc: procOf(version, refused) }
  const mistakes = errors as JsonObject | undefined
  const warnings = warned as JsonObject | undefined
  const why = { description: refused.message, key, errors: mistakes, warnings }
  const parts = [idOf(op, version === 2 ? '""' : ''), members(about), members(why)]
  return `{${parts.filter((part) => part !== '').join(',')}}`
}

/** In the form by which tools recognise an object that this service does not have. */
export function unknownText(version: 1 | 2, op: JsonObject): string {
  return refusedText(version, { id: op.id as JsonValue, obj: op.obj as JsonValue }, bad_object)
}

const bad_object = { message: 'bad object', code: 'error' } as Fault

export function procOf(version: 1 | 2, refused: Fault): string {
  if ((refused as Refusal).is_missing) return version === 1 ? 'obj_id_not_found' : 'error'
  return isOpFaultCode(refused.code) ? refused.code : 'error'
}

function members(of: Readonly<Record<string, JsonValue | undefined>>): string {
  return Object.entries(of)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}:${stringifyJson(value as JsonValue)}`)
    .join(',')
}

function idIn(value: JsonValue | undefined): JsonValue | undefined {
  const is_id = typeof value === 'string' || typeof value === 'number' || isNumberToken(value)
  return is_id ? value : undefined
}

function idOf({ id }: JsonObject, otherwise = ''): string {
  if (typeof id === 'string') return `"id":${JSON.stringify(id)}`
  const is_number = typeof id === 'number' || isNumberToken(id)
  if (is_number) return `"id":${numberText(id)}`
  return otherwise === '' ? '' : `"id":${otherwise}`
}
