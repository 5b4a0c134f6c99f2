/**
 * `set_param`: sets keys of the data. Keys and values may hold templates, each value is converted
 * to the type that `extra_type` has for its key. Every template of one `set_param` sees the data as
 * it was before it, so the order of `extra` does not matter, but that the last of two keys that
 * come out alike holds. A key is one key of the data, dots and all.
 *
 * A value that is missing leaves its key alone where no type is asked for, and cannot be converted
 * where one is. A failed conversion, a key that is missing and an expansion beyond the size of a
 * task fail the logic and set nothing.
 */
import { docOfValue, isObject, objectOf, setMember, stringifyJson } from '../../bytes/json.ts'
import type { JsonObject, JsonValue } from '../../words/model.ts'
import { value_bounds } from '../bounds.ts'
import { convert, isValueType, textOf, type ValueType } from '../convert.ts'
import type { LogicKind, Move, Report, Scope } from '../logic.ts'
import { cut, quoted } from '../quoted.ts'
import { compileTemplate, looksTemplated, type Template } from '../template.ts'
import { jsonTemplate } from '../template-json.ts'
import { type Expansion, expansionOf, failWith } from '../template-source.ts'

interface SetParam {
  readonly settings: readonly Setting[]
  readonly err_node_id: string | undefined
}

interface Setting {
  key(run: Expansion): string | undefined
  /** Undefined where the key is left alone or the run failed. */
  value(run: Expansion, key: string): JsonValue | undefined
}

export const setParam: LogicKind<SetParam> = {
  type: 'set_param',
  parse(raw, report) {
    const types = objectIn(raw, 'extra_type', report)
    const extra = objectIn(raw, 'extra', report)
    const settings = Object.keys(extra).map((key) => parseSetting(key, extra, types, report))
    return { settings, err_node_id: errNode(raw, report) }
  },
  run(definition, scope) {
    const run = expansionOf(scope)
    const data: JsonObject = { ...objectOf(scope.doc) }
    for (const setting of definition.settings) {
      const key = setting.key(run)
      const value = key === undefined ? undefined : setting.value(run, key)
      if (run.failure !== undefined) return failed(definition, run, scope)
      if (key === undefined || value === undefined) continue
      run.left_chars -= key.length + charsOf(value, run)
      if (run.left_chars < 0) failWith(run, 'overflow', '')
      if (run.failure !== undefined) return failed(definition, run, scope)
      setMember(data, key, value)
    }
    return { move: 'set', doc: docOfValue(data), err_node_id: definition.err_node_id }
  },
}

function errNode(raw: JsonObject, report: Report): string | undefined {
  const { err_node_id } = raw
  if (err_node_id === undefined || err_node_id === null || err_node_id === '') return undefined
  return report.target('err_node_id', err_node_id)
}

function objectIn(raw: JsonObject, name: string, report: Report): JsonObject {
  const value = raw[name]
  if (value === undefined || value === null) return {}
  // An empty map comes as an array from some editors.
  if (Array.isArray(value) && value.length === 0) return {}
  if (isObject(value)) return value
  report.mistake(`${name} is ${quoted(value)}, an object was expected`)
  return {}
}

function parseSetting(key: string, extra: JsonObject, types: JsonObject, report: Report): Setting {
  const place = `extra[${quoted(key)}]`
  const type = Object.hasOwn(types, key) ? types[key] : undefined
  if (type !== undefined && type !== null && type !== '' && !isValueType(type)) {
    const known = 'string number boolean array object'
    report.mistake(`extra_type[${quoted(key)}] ${quoted(type)} is none of ${known}`)
  }
  const name = compileTemplate(key, report, 'the key')
  return {
    key(run) {
      const made = name.value(run)
      if (made !== undefined) return textOf(made)
      return failWith(run, 'convert', `the key ${cut(key)} is missing`)
    },
    value: parseValue(extra[key], isValueType(type) ? type : undefined, report, place),
  }
}

function parseValue(
  raw: JsonValue | undefined,
  type: ValueType | undefined,
  report: Report,
  place: string,
): Setting['value'] {
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
): Setting['value'] {
  const value = type === undefined ? constant : convert(constant, type)
  if (value !== undefined) return () => value
  report.warning(`${place} ${quoted(constant)} cannot be converted to ${type}`)
  return (run, key) => refuse(run, key, constant, type)
}

function templateValue(
  template: Template,
  source: string,
  type: ValueType | undefined,
): Setting['value'] {
  if (type === undefined) return (run) => template.value(run)
  const is_json = (type === 'array' || type === 'object') && template.parts.length > 1
  const read = is_json ? jsonTemplate(template) : template.value
  return (run, key) => {
    const value = read(run)
    if (run.failure !== undefined) return undefined
    const converted = value === undefined ? undefined : convert(value, type)
    return converted ?? refuse(run, key, value ?? source, type)
  }
}

function refuse(
  run: Expansion,
  key: string,
  value: JsonValue,
  type: ValueType | undefined,
): undefined {
  const text = `Param: ${cut(key)}, Value: ${cut(textOf(value))}, Try convert to: ${type}`
  return failWith(run, 'convert', text)
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

function failed(definition: SetParam, run: Expansion, scope: Scope): Move {
  const is_overflow = run.failure?.why === 'overflow'
  return {
    move: 'fail',
    kind: 'set_param',
    error_type: 'software',
    tag: is_overflow ? 'set_param_task_size_overflow' : 'set_param_wrong_convert_param',
    description: is_overflow
      ? `the values are longer than ${scope.task_bytes_max} bytes`
      : (run.failure?.description ?? ''),
    err_node_id: definition.err_node_id,
  }
}
