/**
 * One condition of `go_if_const` as a closure. `param` is a template, a path with a bracket, a
 * field of the task (`root.ref`), or else the name of one member, dots included. With cast string a
 * missing side is the empty text; otherwise `not_eq` holds and every other comparison fails. A
 * value that a template inserts into a pattern is quoted: data never becomes part of a pattern.
 */
import { isNumberToken, isObject, numberText, objectOf, stringifyJson } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { takeSteps } from '../definition-limits.ts'
import { type EvaluationContext, rootNames } from '../logic.ts'
import { compilePattern, keepPattern, literalPattern } from '../pattern.ts'
import { expected, quoted, type Report } from '../report.ts'
import { type Expansion, expansionOf, joinParts, type Term } from '../templates/parser.ts'
import { nameTerm } from '../templates/path.ts'
import {
  compilePath,
  compileTemplate,
  constantTemplate,
  type Template,
} from '../templates/template.ts'
import { isValueType, textOf, type ValueType } from '../values.ts'
import { typedTerm } from './assignments.ts'
import {
  type Comparand,
  type Compare,
  type Comparison,
  comparandOf,
  comparisonTable,
} from './comparisons.ts'
import { isAbsent } from './members.ts'

/** Undefined where a pattern takes more steps than are left. */
export type Condition = (context: EvaluationContext) => boolean | undefined

/** A param that is a template and no path: `items[{{n}}]` is a path, `{{items}}` is not. */
const opens_template = /^\s*(?:\{\{|\$\.[A-Za-z_][A-Za-z0-9_]*\()/
const opens_index = /(?<!\\)\[/

export function compileCondition(raw: JsonObject, report: Report, place: string): Condition {
  const row = comparisonOf(raw, report, place)
  const param = raw.param
  if (typeof param !== 'string') {
    expected(report, `${place} param`, param, 'a name')
    return () => false
  }
  const constant = constantOf(raw.const, report, `${place} const`)
  if (row === undefined || constant === undefined) return () => false
  const given = readParam(param, report, `${place} param`)
  const value = typeof given === 'string' ? nameTerm(given) : given
  if (row.compare === undefined) {
    return patternCondition(value, row.cast, constant, report, `${place} const`)
  }
  if (constant.constant === undefined) return templateCondition(row, row.compare, value, constant)
  const comparand = comparandOf(constant.constant, row.cast)
  if (comparand === undefined) {
    report.warning(`${place} const ${quoted(constant.constant)} is no ${row.cast}`)
  }
  if (typeof given === 'string' && row.cast === 'string' && row.fun === 'eq') {
    return (context) => isMember(objectOf(context.doc), given, constant.constant as string)
  }
  return constantCondition(row, row.compare, value, comparand)
}

/** A term, or the name of one member of the data. */
function readParam(param: string, report: Report, place: string): Term | string {
  if (opens_template.test(param)) return compileTemplate(param, report, place).value
  const name = param.trim()
  if (opens_index.test(name) || rootNames.some((field) => name === `root.${field}`)) {
    return compilePath(name, report, place)
  }
  if (name.includes('{{')) return compileTemplate(param, report, place).value
  if (name === '') report.warning(`${place} is empty, which is always missing`)
  else if (/(?<!\\)\./.test(name)) {
    report.warning(`${place} ${quoted(name)} is one name, a path is written in braces`)
  }
  return name.replace(/\\(.)/gs, '$1')
}

function comparisonOf(raw: JsonObject, report: Report, place: string): Comparison | undefined {
  const { fun } = raw
  const cast = isAbsent(raw.cast) ? 'string' : raw.cast
  if (!isValueType(cast)) {
    report.mistake(`${place} cast ${quoted(cast)} is none of string number boolean array object`)
    return undefined
  }
  const known = comparisonTable.filter((row) => row.cast === cast)
  const row = known.find((comparison) => comparison.fun === fun)
  if (row === undefined) {
    const names = known.map((comparison) => comparison.fun).join(' ')
    report.mistake(`${place} fun ${quoted(fun)} with cast "${cast}" is none of ${names}`)
  }
  return row
}

function constantOf(
  raw: JsonValue | undefined,
  report: Report,
  place: string,
): Template | undefined {
  if (raw === undefined || raw === null) return constantTemplate('')
  if (typeof raw === 'string') return compileTemplate(raw, report, place)
  if (typeof raw === 'boolean' || typeof raw === 'number') return constantTemplate(String(raw))
  if (isNumberToken(raw)) return constantTemplate(numberText(raw))
  if (Array.isArray(raw) || isObject(raw)) return compileTemplate(stringifyJson(raw), report, place)
  return expected(report, place, raw, 'a text')
}

function isMember(data: JsonObject, name: string, text: string): boolean {
  if (!Object.hasOwn(data, name)) return text === ''
  const value = data[name] as JsonValue
  return (typeof value === 'string' ? value : textOf(value)) === text
}

function constantCondition(
  row: Comparison,
  compare: Compare,
  value: Term,
  constant: Comparand | undefined,
): Condition {
  const otherwise = row.fun === 'not_eq'
  if (constant === undefined) return () => otherwise
  return (context) => {
    const found = valueIn(value, expansionOf(context), row.cast)
    return found === undefined ? otherwise : compare(found, constant)
  }
}

function templateCondition(
  row: Comparison,
  compare: Compare,
  value: Term,
  constant: Template,
): Condition {
  const otherwise = row.fun === 'not_eq'
  const read = typedTerm(constant, row.cast)
  return (context) => {
    const expansion = expansionOf(context)
    const found = valueIn(value, expansion, row.cast)
    const wanted = found === undefined ? undefined : valueIn(read, expansion, row.cast)
    return found === undefined || wanted === undefined ? otherwise : compare(found, wanted)
  }
}

function patternCondition(
  value: Term,
  cast: ValueType,
  constant: Template,
  report: Report,
  place: string,
): Condition {
  const fixed = constant.constant === undefined ? undefined : keepPattern(constant.constant)
  if (typeof fixed === 'object') {
    report.mistake(`${place} ${quoted(constant.constant)}: ${fixed.mistake}`)
  }
  return (context) => {
    const expansion = expansionOf(context)
    const found = value(expansion)
    if (expansion.failure !== undefined || comparandOf(found, cast) === undefined) return false
    const pattern = fixed ?? patternWith(constant, expansion)
    return typeof pattern === 'function' ? pattern(textOf(found ?? ''), context.steps) : false
  }
}

/** Steps of compiling one character of a pattern. */
const compile_steps = 200

function patternWith(
  constant: Template,
  expansion: Expansion,
): ReturnType<typeof compilePattern> | undefined {
  const source = joinParts(constant.parts, expansion, (value) =>
    value === undefined ? '' : literalPattern(textOf(value)),
  )
  if (source === undefined) return undefined
  takeSteps(expansion.context.steps, compile_steps * source.length)
  return compilePattern(source)
}

/** One side, read as the cast. What the task may not read is missing. */
function valueIn(value: Term, expansion: Expansion, cast: ValueType): Comparand | undefined {
  const found = value(expansion)
  if (expansion.failure?.why === 'denied') expansion.failure = undefined
  return expansion.failure === undefined ? comparandOf(found, cast) : undefined
}
