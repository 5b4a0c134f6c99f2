/**
 * Readers of the members that logics share. A wrong value is reported as a mistake and read as
 * absent. `conv_id`, `ref` and `node_id` become texts; a process that the definition names is
 * reported to the compiler, one that a template gives is not (`TargetProcess` in logic.ts).
 */
import { isObject } from '../../codec/json.ts'
import { inStage } from '../../core/alias.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { id_chars_max } from '../definition-limits.ts'
import type { TargetProcess } from '../logic.ts'
import { expected, type MistakeReport, quoted, type Report } from '../report.ts'
import type { Expansion } from '../templates/parser.ts'
import { compileTemplate, type Template } from '../templates/template.ts'
import { idText, isIdLength, isValueType, processId, textOf, type ValueType } from '../values.ts'
import { failConversion } from './failures.ts'

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
    expected(report, name, value, 'true or false')
  }
  return false
}

/** One of two words, by default the first. */
export function readWord<Word extends string>(
  raw: JsonObject,
  name: string,
  [first, second]: readonly [Word, Word],
  report: MistakeReport,
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
  if (typeof value !== 'string') expected(report, name, value, 'a text')
  return compileTemplate(typeof value === 'string' ? value : '', report, name)
}

/** An object. Some editors write an empty one as an empty array. */
export function readObject(raw: JsonObject, name: string, report: Report): JsonObject {
  const value = raw[name]
  if (isObject(value)) return value
  const is_empty = value === undefined || value === null || (Array.isArray(value) && !value.length)
  if (!is_empty) expected(report, name, value, 'an object')
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
    expected(report, place, raw, 'an object')
    return []
  })
}

/** The process for one task; undefined where the expansion failed. */
export type TargetProcessTerm = (expansion: Expansion) => TargetProcess | undefined

/** A ref or a node id for one task; undefined where it is missing or the expansion failed. */
export type IdTerm = (expansion: Expansion) => string | undefined

/**
 * Reads `conv_id`, and the `stage_id` in which an alias is looked up. A template that gives no
 * process id fails the expansion.
 */
export function readTargetProcess(
  { conv_id, stage_id }: JsonObject,
  report: Report,
): TargetProcessTerm {
  const stage = idText(stage_id)
  const staged = (id: string): string =>
    id.startsWith('@') && stage !== undefined && /^[1-9][0-9]*$/.test(stage)
      ? `@${inStage(id.slice(1), stage)}`
      : id
  const text = idText(conv_id)
  if (text === undefined) {
    expected(report, 'conv_id', conv_id, 'the id of a process')
    return () => undefined
  }
  const template = compileTemplate(text, report, 'conv_id')
  if (template.constant !== undefined) {
    const target = { conv_id: staged(template.constant), is_from_template: false }
    if (processId(text) !== undefined) report.targetProcess(staged(text))
    else report.mistake(`conv_id ${quoted(text)} is no id of a process`)
    return () => target
  }
  return (expansion) => {
    const value = template.value(expansion)
    if (expansion.failure !== undefined) return undefined
    const id = processId(value)
    if (id === undefined) return failConversion(expansion, 'conv_id', value ?? text, 'conv_id')
    return { conv_id: staged(id), is_from_template: true }
  }
}

/** Reads a ref or a node id. One that is too long fails the expansion. */
export function readId(raw: JsonObject, member: string, report: Report): IdTerm {
  const given = raw[member]
  if (isAbsent(given)) return () => undefined
  const text = idText(given)
  if (text === undefined) {
    expected(report, member, given, 'a text')
    return () => undefined
  }
  const template = compileTemplate(text, report, member)
  if (template.constant !== undefined && !isIdLength(text)) {
    report.mistake(`${member} ${quoted(text)} is longer than ${id_chars_max} characters`)
  }
  return (expansion) => {
    const value = template.value(expansion)
    if (expansion.failure !== undefined || isAbsent(value)) return undefined
    const id = textOf(value)
    return isIdLength(id) ? id : failConversion(expansion, member, id, member)
  }
}
