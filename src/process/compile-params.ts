/**
 * Compiles the parameters of a process. Those with flag `input` are checked when a task is created:
 * JSON type, and a pattern searched for in the value's text. A name may be a path into the data.
 */
import { isObject, objectOf } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { type Steps, steps_passed, takeSteps } from './definition-limits.ts'
import type { Graph, ParamMistake } from './graph.ts'
import { isAbsent } from './logics/members.ts'
import { keepPattern, type Pattern } from './pattern.ts'
import { expected, type MistakeReport, mistakesAt, quoted } from './report.ts'
import { member } from './templates/path.ts'
import { isValueType, textOf, typeTable, type ValueType } from './values.ts'

interface Param {
  readonly name: string
  readonly path: ParamPath
  readonly type: ValueType | undefined
  readonly is_required: boolean
  readonly pattern: Pattern | undefined
  readonly pattern_error: string
}

export function compileParams(
  raw: JsonValue | undefined,
  report: MistakeReport,
): Graph['checkParams'] {
  const params: Param[] = []
  const is_empty = isAbsent(raw) || (isObject(raw) && Object.keys(raw).length === 0)
  if (!is_empty && !Array.isArray(raw)) {
    report.mistake(`params: is ${quoted(raw)}, an array was expected`)
  }
  for (const [at, entry] of (Array.isArray(raw) ? raw : []).entries()) {
    const here = mistakesAt(report, `params[${at}]: `)
    if (!isObject(entry)) {
      here.mistake(`is ${quoted(entry)}, an object was expected`)
      continue
    }
    const flags = readFlags(entry, here)
    const param = readParam(entry, flags, here)
    if (param !== undefined && flags.includes('input')) params.push(param)
  }
  // Most processes check nothing; then the data is not even parsed.
  return params.length === 0
    ? () => undefined
    : (doc, steps) => firstMistake(params, objectOf(doc), steps)
}

function readParam(
  { name, type, regex, regex_error_text }: JsonObject,
  flags: readonly JsonValue[],
  report: MistakeReport,
): Param | undefined {
  if (typeof name !== 'string' || name === '') return expected(report, 'name', name, 'a text')
  if (!isAbsent(type) && !isValueType(type)) {
    const names = 'string number boolean array object'
    report.mistake(`${quoted(name)} type ${quoted(type)} is none of ${names}`)
  }
  const has_text = typeof regex_error_text === 'string' && regex_error_text !== ''
  return {
    name,
    path: readParamPath(name),
    type: isValueType(type) ? type : undefined,
    is_required: flags.includes('required'),
    pattern: readPattern(regex, mistakesAt(report, `${quoted(name)} `)),
    pattern_error: has_text ? regex_error_text : 'the value does not match the pattern',
  }
}

function readFlags({ flags }: JsonObject, report: MistakeReport): readonly JsonValue[] {
  if (Array.isArray(flags)) return flags
  if (flags !== undefined && flags !== null) expected(report, 'flags', flags, 'an array')
  return []
}

function readPattern(regex: JsonValue | undefined, report: MistakeReport): Pattern | undefined {
  if (isAbsent(regex)) return undefined
  if (typeof regex !== 'string') return expected(report, 'regex', regex, 'a text')
  const pattern = keepPattern(regex)
  if (typeof pattern === 'function') return pattern
  report.mistake(`regex ${quoted(regex)}: ${pattern.mistake}`)
  return undefined
}

const endless = `is a value on which the pattern takes ${steps_passed}`
const too_many = `is in more elements than are checked, ${steps_passed}`

function firstMistake(
  params: readonly Param[],
  data: JsonObject,
  steps: Steps,
): ParamMistake | undefined {
  for (const param of params) {
    const error = errorBelow(param, 0, data, steps)
    if (error !== undefined) return { param: param.name, error }
  }
  return undefined
}

/** The first mistake at the path from its step `at` on, in the value that it has led to. */
function errorBelow(
  param: Param,
  at: number,
  value: JsonValue | undefined,
  steps: Steps,
): string | undefined {
  const step = param.path[at]
  if (step === undefined || value === undefined) return errorOf(param, value, steps)
  if (step !== null) return errorBelow(param, at + 1, member(value, step), steps)
  if (!Array.isArray(value)) return errorOf(param, undefined, steps)
  if (!takeSteps(steps, value.length)) return too_many
  for (const one of value) {
    const error = errorBelow(param, at + 1, one, steps)
    if (error !== undefined) return error
  }
  return undefined
}

function errorOf(param: Param, value: JsonValue | undefined, steps: Steps): string | undefined {
  const { type, pattern } = param
  if (value === undefined) return param.is_required ? 'is required' : undefined
  if (type !== undefined && !typeTable[type].is(value)) {
    // Clients write an empty text or null for an array or an object that is not there.
    const may_lack = !param.is_required && (type === 'array' || type === 'object')
    return may_lack && isAbsent(value) ? undefined : `is not of type ${type}`
  }
  if (pattern === undefined) return undefined
  const is_match = pattern(textOf(value), steps)
  if (is_match === undefined) return endless
  return is_match ? undefined : param.pattern_error
}

/** A member or an index; null for each element of an array. */
type ParamStep = string | null

export type ParamPath = readonly ParamStep[]

const param_step = /\.((?:[^.[\]\\]|\\.|\\$)+)|\[([^\]]*)\]/gsy

export function readParamPath(name: string): ParamPath {
  if (!/[.[]/.test(name)) return [name]
  const path: ParamStep[] = []
  let read = 0
  for (const [step, key, index] of `.${name}`.matchAll(param_step)) {
    path.push(key === undefined ? index || null : key.replace(/\\(.)/gs, '$1'))
    read += step.length
  }
  return read === name.length + 1 ? path : [name]
}
