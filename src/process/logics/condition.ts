/**
 * One condition of `go_if_const`: reads `{param, fun, const, cast}` and compiles it to a closure.
 *
 * A side that is missing or cannot be read as the cast makes `not_eq` hold and all else not. What a
 * template puts into a pattern is matched as the text it is: data never becomes a pattern's source.
 */
import { isNumberToken, numberText, objectOf } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import type { EvaluationContext } from '../logic.ts'
import { compilePattern, literalPattern } from '../pattern.ts'
import type { Report } from '../report.ts'
import { quoted } from '../report.ts'
import { type Expansion, expansionOf, joinParts, type Term } from '../templates/parser.ts'
import { plainName } from '../templates/path.ts'
import { compilePath, compileTemplate, type Template } from '../templates/template.ts'
import { jsonTemplate } from '../templates/template-json.ts'
import { isValueType, textOf, type ValueType } from '../values.ts'
import {
  type Comparand,
  type Compare,
  type Comparison,
  comparandOf,
  comparisonTable,
} from './comparisons.ts'

export type Condition = (context: EvaluationContext) => boolean

/** What is no path by itself: `items[{{n}}]` is one, `{{items}}` is none. */
const opens_template = /^\s*(?:\{\{|\$\.[A-Za-z_][A-Za-z0-9_]*\()/

/** Reads a condition; mistakes go to `report` behind `place`. */
export function compileCondition(raw: JsonObject, report: Report, place: string): Condition {
  const row = comparisonOf(raw, report, place)
  const param = raw.param
  if (typeof param !== 'string') {
    report.mistake(`${place} param is ${quoted(param)}, a name was expected`)
    return () => false
  }
  const constant = constantOf(raw.const, report, `${place} const`)
  if (row === undefined || constant === undefined) return () => false
  const value = opens_template.test(param)
    ? compileTemplate(param, report, `${place} param`).value
    : compilePath(param, report, `${place} param`)
  if (row.compare === undefined) return patternCondition(value, constant, report, `${place} const`)
  if (constant.constant === undefined) return templateCondition(row, row.compare, value, constant)
  const comparand = comparandOf(constant.constant, row.cast)
  if (comparand === undefined) {
    report.warning(`${place} const ${quoted(constant.constant)} is no ${row.cast}`)
  }
  const name = plainName(param)
  if (name !== undefined && row.cast === 'string' && row.fun === 'eq') {
    return (context) => isMember(objectOf(context.doc), name, constant.constant as string)
  }
  return constantCondition(row, row.compare, value, comparand)
}

function comparisonOf(raw: JsonObject, report: Report, place: string): Comparison | undefined {
  const { fun, cast } = raw
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
  if (typeof raw === 'string') return compileTemplate(raw, report, place)
  if (typeof raw === 'boolean' || typeof raw === 'number') return writtenAs(String(raw))
  if (isNumberToken(raw)) return writtenAs(numberText(raw))
  report.mistake(`${place} is ${quoted(raw)}, a text was expected`)
  return undefined
}

function writtenAs(constant: string): Template {
  return { constant, parts: [constant], value: () => constant, text: () => constant }
}

function isMember(data: JsonObject, name: string, text: string): boolean {
  if (!Object.hasOwn(data, name)) return false
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
  const is_json = (row.cast === 'array' || row.cast === 'object') && constant.parts.length > 1
  const read = is_json ? jsonTemplate(constant) : constant.value
  return (context) => {
    const run = expansionOf(context)
    const found = valueIn(value, run, row.cast)
    const wanted = found === undefined ? undefined : valueIn(read, run, row.cast)
    return found === undefined || wanted === undefined ? otherwise : compare(found, wanted)
  }
}

function patternCondition(
  value: Term,
  constant: Template,
  report: Report,
  place: string,
): Condition {
  const fixed = constant.constant === undefined ? undefined : compilePattern(constant.constant)
  if (typeof fixed === 'object')
    report.mistake(`${place} ${quoted(constant.constant)}: ${fixed.mistake}`)
  return (context) => {
    const run = expansionOf(context)
    const text = valueIn(value, run, 'string')
    if (text === undefined) return false
    const pattern = fixed ?? patternWith(constant, run)
    return typeof pattern === 'function' && pattern(String(text))
  }
}

function patternWith(
  constant: Template,
  run: Expansion,
): ReturnType<typeof compilePattern> | undefined {
  const source = joinParts(constant.parts, run, (value) =>
    value === undefined ? '' : literalPattern(textOf(value)),
  )
  return source === undefined ? undefined : compilePattern(source)
}

function valueIn(value: Term, run: Expansion, cast: ValueType): Comparand | undefined {
  const found = value(run)
  return run.failure === undefined ? comparandOf(found, cast) : undefined
}
