/**
 * Assignments: `key: value` lists with types (`extra`/`extra_type`, `data`/`data_type`,
 * `res_data`/`res_data_type`), and `set_param`, which sets one in the data. All templates see the
 * data before the list, so order matters only for equal keys: the last one wins.
 *
 * A missing value leaves its key unchanged where no type is given, is the empty text for type
 * string, and fails any other conversion. A failure discards the whole list.
 */
import { docOfValue, objectOf, setMember, stringifyJson } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { value_bounds } from '../definition-limits.ts'
import type { LogicKind } from '../logic.ts'
import { quoted, type Report, truncated } from '../report.ts'
import { type Expansion, failWith, jsonTemplate, type Term } from '../templates/parser.ts'
import { member } from '../templates/path.ts'
import { compileTemplate, looksTemplated, type Template } from '../templates/template.ts'
import { charsOf, convert, type ValueType } from '../values.ts'
import { type DataKey, isDeep, type MadeHere, readDataKey, setAtPath } from './data-key.ts'
import { expanding, failConversion } from './failures.ts'
import { readErrorNode, readObject, readType } from './members.ts'

export interface Assignment extends DataKey {
  /** Undefined where the key is left unchanged or the expansion failed. */
  value(expansion: Expansion, key: string): JsonValue | undefined
}

/**
 * Reads `raw[values]` with the types of `raw[types]`; mistakes go to `report`. The keys are those
 * of a task's data, unless `keyOf` reads them otherwise.
 */
export function readAssignments(
  raw: JsonObject,
  values: string,
  types: string,
  report: Report,
  keyOf = readDataKey,
): readonly Assignment[] {
  const asked = readObject(raw, types, report)
  const given = readObject(raw, values, report)
  return Object.keys(given).map((key) => {
    const name = quoted(key)
    const type = readType(member(asked, key), report, `${types}[${name}]`)
    const value = readValue(given[key] ?? null, type, report, `${values}[${name}]`)
    const { key: keyIn, steps } = keyOf(key, report)
    const is_path = steps.length > 0
    // Written out: V8 reads the members of an object made by a spread half as fast.
    return { key: keyIn, steps, value: is_path ? (expansion) => value(expansion, key) : value }
  })
}

/** The keys, over the task's data if `is_over_data`; undefined where the expansion has failed. */
export function assignedData(
  assignments: readonly Assignment[],
  expansion: Expansion,
  is_over_data = false,
): JsonObject | undefined {
  const data: JsonObject = is_over_data ? { ...objectOf(expansion.context.doc) } : {}
  let made: MadeHere | undefined
  for (const assignment of assignments) {
    const key = assignment.key(expansion)
    const value = key === undefined ? undefined : assignment.value(expansion, key)
    if (expansion.failure !== undefined) return namedFailure(expansion, key)
    if (key === undefined || value === undefined) continue
    expansion.left_chars -= key.length + charsOf(value)
    if (expansion.left_chars < 0) return failWith(expansion, 'overflow', '')
    if (assignment.steps.length === 0) setMember(data, key, value)
    else {
      made ??= new Set()
      setAtPath(data, key, assignment.steps, value, expansion, made)
    }
  }
  return expansion.failure === undefined ? data : undefined
}

/** A denied read names the key that asks for it. */
function namedFailure(expansion: Expansion, key: string | undefined): undefined {
  const { failure } = expansion
  if (failure?.why !== 'denied' || key === undefined) return
  const description = `Param: ${truncated(key)}, ${failure.description}`
  expansion.failure = { ...failure, description }
}

/** The assignment of a key of the task's own data to the same key. */
export function readOwnKey(key: string, type: ValueType | undefined): Assignment {
  const value = ({ context }: Expansion) => member(objectOf(context.doc), key)
  return {
    key: () => key,
    steps: [],
    value: type === undefined ? value : typedValue(value, type, ''),
  }
}

/** A template whose text is read as a type: as JSON for an array or an object built from parts. */
export function typedTerm(template: Template, type: ValueType): Term {
  const is_json = (type === 'array' || type === 'object') && template.parts.length > 1
  return is_json ? jsonTemplate(template.parts) : template.value
}

function readValue(
  raw: JsonValue,
  type: ValueType | undefined,
  report: Report,
  place: string,
): Assignment['value'] {
  if (typeof raw === 'string') {
    const template = compileTemplate(raw, report, place)
    if (template.constant !== undefined) {
      return constantValue(template.constant, type, report, place)
    }
    return type === undefined ? template.value : typedValue(typedTerm(template, type), type, raw)
  }
  if (isDeep(raw, value_bounds.nesting_max)) {
    report.mistake(`${place} is nested deeper than ${value_bounds.nesting_max}`)
  } else if (looksTemplated(stringifyJson(raw))) {
    const template = compileTemplate(stringifyJson(raw), report, place)
    if (template.constant === undefined) {
      report.warning(`${place} holds a template inside ${quoted(raw)}: it is read as its JSON text`)
      const own_type = Array.isArray(raw) ? 'array' : 'object'
      return typedValue(jsonTemplate(template.parts), type ?? own_type, stringifyJson(raw))
    }
  }
  return constantValue(raw, type, report, place)
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
  return (expansion, key) => failConversion(expansion, key, constant, type)
}

/** The value of the term, converted; a failure shows `missing` in place of a missing value. */
function typedValue(term: Term, type: ValueType, missing: string): Assignment['value'] {
  return (expansion, key) => {
    const value = term(expansion)
    if (expansion.failure !== undefined) return undefined
    return convert(value, type) ?? failConversion(expansion, key, value ?? missing, type)
  }
}

export const setParam: LogicKind = {
  type: 'set_param',
  compile(raw, report) {
    const assignments = readAssignments(raw, 'extra', 'extra_type', report)
    const err_node_id = readErrorNode(raw, report)
    return expanding('set_param', err_node_id, (expansion) => {
      const data = assignedData(assignments, expansion, true)
      return data && { command: 'set', doc: docOfValue(data), err_node_id }
    })
  },
}
