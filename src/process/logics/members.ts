/**
 * Readers of the members that logics share. A wrong value is reported as a mistake and read as
 * absent.
 */
import { isObject } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { quoted, type Report } from '../report.ts'
import { compileTemplate, type Template } from '../templates/template.ts'
import { isValueType, type ValueType } from '../values.ts'

/** Editors write an empty text for a member that has no value. */
export function isAbsent(value: JsonValue | undefined): value is undefined | null | '' {
  return value === undefined || value === null || value === ''
}

/** The node of `err_node_id`; undefined where there is none. */
export function readErrorNode(raw: JsonObject, report: Report): string | undefined {
  const { err_node_id } = raw
  return isAbsent(err_node_id) ? undefined : report.targetNode('err_node_id', err_node_id)
}

/** Whether a flag is set. Any other value leaves it off. */
export function isOn(value: JsonValue | undefined): boolean {
  return value === true || value === 'true'
}

/** A boolean, which some editors write as text. */
export function readFlag(raw: JsonObject, name: string, report: Report): boolean {
  const value = raw[name]
  if (isOn(value)) return true
  if (value !== false && value !== 'false' && !isAbsent(value)) {
    report.mistake(`${name} is ${quoted(value)}, true or false was expected`)
  }
  return false
}

/** One of two words, by default the first. */
export function readWord<Word extends string>(
  raw: JsonObject,
  name: string,
  [first, second]: readonly [Word, Word],
  report: Report,
): Word {
  const value = raw[name]
  if (value === second) return second
  if (value !== first && !isAbsent(value)) {
    report.mistake(`${name} ${quoted(value)} is neither "${first}" nor "${second}"`)
  }
  return first
}

/** A text that may contain templates, by default the empty text. */
export function readTemplate(raw: JsonObject, name: string, report: Report): Template {
  const value = raw[name] ?? ''
  if (typeof value !== 'string') report.mistake(`${name} is ${quoted(value)}, a text was expected`)
  return compileTemplate(typeof value === 'string' ? value : '', report, name)
}

/** An object. Some editors write an empty one as an empty array. */
export function readObject(raw: JsonObject, name: string, report: Report): JsonObject {
  const value = raw[name]
  if (isObject(value)) return value
  const is_empty = value === undefined || value === null || (Array.isArray(value) && !value.length)
  if (!is_empty) report.mistake(`${name} is ${quoted(value)}, an object was expected`)
  return {}
}

/** The type that a definition asks for; undefined where it asks for none, or for one not known. */
export function readType(
  type: JsonValue | undefined,
  report: Report,
  place: string,
): ValueType | undefined {
  if (isValueType(type)) return type
  if (!isAbsent(type)) {
    const names = 'string number boolean array object'
    report.warning(`${place} ${quoted(type)} is none of ${names}: nothing is converted`)
  }
  return undefined
}

/** Maps the objects of a list, each with its place `name[at]`. Any other entry is a mistake. */
export function mapObjects<Made>(
  list: readonly JsonValue[],
  name: string,
  report: Report,
  make: (raw: JsonObject, place: string) => Made,
): Made[] {
  return list.flatMap((raw, at) => {
    const place = `${name}[${at}]`
    if (isObject(raw)) return [make(raw, place)]
    report.mistake(`${place} is ${quoted(raw)}, an object was expected`)
    return []
  })
}
