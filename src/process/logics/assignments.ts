/**
 * Lists of `key: value` with their types, as `extra`/`extra_type`, `data`/`data_type` and
 * `res_data`/`res_data_type` have them. Keys and values may hold templates; each value is converted
 * to the type that is asked for its key. Every template of one list sees the data as it was before
 * it, so the order does not matter, but that the last of two keys that come out alike holds. A key
 * is one key of the data, dots and all.
 *
 * A value that is missing leaves its key alone where no type is asked for, and cannot be converted
 * where one is. A failed conversion, a key that is missing and an expansion beyond the size of a
 * task fail the run; what was set by then is to be thrown away.
 */
import { isObject, setMember, stringifyJson } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { value_bounds } from '../definition-limits.ts'
import type { Command, EvaluationContext } from '../logic.ts'
import type { Report } from '../report.ts'
import { quoted, truncated } from '../report.ts'
import { type Expansion, failWith } from '../templates/parser.ts'
import { compileTemplate, looksTemplated, type Template } from '../templates/template.ts'
import { jsonTemplate } from '../templates/template-json.ts'
import { convert, isValueType, textOf, type ValueType } from '../values.ts'

export interface Assignment {
  key(run: Expansion): string | undefined
  /** Undefined where the key is left alone or the run failed. */
  value(run: Expansion, key: string): JsonValue | undefined
}

/** Reads `raw[values]` with the types of `raw[types]`; mistakes go to `report`. */
export function readAssignments(
  raw: JsonObject,
  values: string,
  types: string,
  report: Report,
): readonly Assignment[] {
  const asked = objectIn(raw, types, report)
  const given = objectIn(raw, values, report)
  return Object.keys(given).map((key) => {
    const type = typeFor(key, asked, types, report)
    return readAssignment(key, given[key], type, report, `${values}[${quoted(key)}]`)
  })
}

/** Sets the keys in `data`, an object of one's own. False where the run has failed. */
export function applyAssignments(
  assignments: readonly Assignment[],
  run: Expansion,
  data: JsonObject,
): boolean {
  for (const assignment of assignments) {
    const key = assignment.key(run)
    const value = key === undefined ? undefined : assignment.value(run, key)
    if (run.failure !== undefined) return false
    if (key === undefined || value === undefined) continue
    run.left_chars -= key.length + charsOf(value, run)
    if (run.left_chars < 0) failWith(run, 'overflow', '')
    if (run.failure !== undefined) return false
    setMember(data, key, value)
  }
  return run.failure === undefined
}

/** Tags of a kind that do not follow from its name. */
export interface FailureTags {
  readonly convert?: string
  readonly overflow?: string
}

/** The command of a logic of `kind` whose run failed. */
export function failedExpansion(
  kind: string,
  run: Expansion,
  context: EvaluationContext,
  err_node_id: string | undefined,
  tags: FailureTags = {},
): Command {
  const { convert = `${kind}_wrong_convert_param`, overflow = `${kind}_task_size_overflow` } = tags
  const is_overflow = run.failure?.why === 'overflow'
  return {
    command: 'fail',
    kind,
    error_type: 'software',
    tag: is_overflow ? overflow : convert,
    description: is_overflow
      ? `the values are longer than ${context.task_bytes_max} bytes`
      : (run.failure?.description ?? ''),
    err_node_id,
  }
}

/** The node of `err_node_id`, where there is one. */
export function readErrNode(raw: JsonObject, report: Report): string | undefined {
  const { err_node_id } = raw
  if (err_node_id === undefined || err_node_id === null || err_node_id === '') return undefined
  return report.targetNode('err_node_id', err_node_id)
}

/** A flag, which some editors write as text; absent is false. */
export function readFlag(raw: JsonObject, name: string, report: Report): boolean {
  const value = raw[name]
  if (value === true || value === 'true') return true
  const is_off = value === false || value === 'false' || value === ''
  if (is_off || value === undefined || value === null) return false
  report.mistake(`${name} is ${quoted(value)}, true or false was expected`)
  return false
}

/** Fails the run as a value that is not of the type which `param` must have. */
export function failConversion(
  run: Expansion,
  param: string,
  value: JsonValue,
  type: string | undefined,
): undefined {
  const shown = truncated(textOf(value))
  return failWith(
    run,
    'convert',
    `Param: ${truncated(param)}, Value: ${shown}, Try convert to: ${type}`,
  )
}

export function objectIn(raw: JsonObject, name: string, report: Report): JsonObject {
  const value = raw[name]
  if (value === undefined || value === null) return {}
  // An empty map comes as an array from some editors.
  if (Array.isArray(value) && value.length === 0) return {}
  if (isObject(value)) return value
  report.mistake(`${name} is ${quoted(value)}, an object was expected`)
  return {}
}

/** A type as a definition names it; none is asked for where it is empty. */
export function readType(
  type: JsonValue | undefined,
  report: Report,
  place: string,
): ValueType | undefined {
  if (isValueType(type)) return type
  if (type !== undefined && type !== null && type !== '') {
    report.mistake(`${place} ${quoted(type)} is none of string number boolean array object`)
  }
  return undefined
}

function typeFor(
  key: string,
  asked: JsonObject,
  types: string,
  report: Report,
): ValueType | undefined {
  const type = Object.hasOwn(asked, key) ? asked[key] : undefined
  return readType(type, report, `${types}[${quoted(key)}]`)
}

function readAssignment(
  key: string,
  raw: JsonValue | undefined,
  type: ValueType | undefined,
  report: Report,
  place: string,
): Assignment {
  const name = compileTemplate(key, report, 'the key')
  return {
    key(run) {
      const made = name.value(run)
      if (made !== undefined) return textOf(made)
      return failWith(run, 'convert', `the key ${truncated(key)} is missing`)
    },
    value: parseValue(raw, type, report, place),
  }
}

function parseValue(
  raw: JsonValue | undefined,
  type: ValueType | undefined,
  report: Report,
  place: string,
): Assignment['value'] {
  if (typeof raw === 'string') {
    const template = compileTemplate(raw, report, place)
    if (template.constant === undefined) return templateValue(template, raw, type)
    return constantValue(template.constant, type, report, place)
  }
  if (isDeep(raw ?? null, value_bounds.nesting_max)) {
    report.mistake(`${place} is nested deeper than ${value_bounds.nesting_max}`)
  } else if (looksTemplated(stringifyJson(raw ?? null))) {
    report.mistake(`${place} holds a template inside ${quoted(raw)}: write the value as a text`)
  }
  return constantValue(raw ?? null, type, report, place)
}

function constantValue(
  constant: JsonValue,
  type: ValueType | undefined,
  report: Report,
  place: string,
): Assignment['value'] {
  const value = type === undefined ? constant : convert(constant, type)
  if (value !== undefined) return () => value
  report.warning(`${place} ${quoted(constant)} cannot be converted to ${type}`)
  return (run, key) => failConversion(run, key, constant, type)
}

function templateValue(
  template: Template,
  source: string,
  type: ValueType | undefined,
): Assignment['value'] {
  if (type === undefined) return (run) => template.value(run)
  const is_json = (type === 'array' || type === 'object') && template.parts.length > 1
  const read = is_json ? jsonTemplate(template) : template.value
  return (run, key) => {
    const value = read(run)
    if (run.failure !== undefined) return undefined
    const converted = value === undefined ? undefined : convert(value, type)
    return converted ?? failConversion(run, key, value ?? source, type)
  }
}

function charsOf(value: JsonValue, run: Expansion): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null || run.left_chars <= 0) return 1
  return stringifyJson(value).length
}

function isDeep(value: JsonValue, levels_left: number): boolean {
  if (!Array.isArray(value) && !isObject(value)) return false
  return levels_left === 0 || Object.values(value).some((member) => isDeep(member, levels_left - 1))
}
