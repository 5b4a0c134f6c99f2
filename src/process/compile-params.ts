/**
 * Compiles the parameters of a process. Those with flag `input` are checked when a task is created:
 * by JSON type and, where one is given, by a pattern that is searched for in the value's text.
 */
import { isObject, objectOf } from '../codec/json.ts'
import type { Doc, JsonObject, JsonValue } from '../core/model.ts'
import type { ParamMistake } from './graph.ts'
import { isAbsent } from './logics/members.ts'
import { keepPattern, type Pattern } from './pattern.ts'
import { quoted } from './report.ts'
import { type Steps, steps_passed } from './steps.ts'
import { isValueType, textOf, typeTable, type ValueType } from './values.ts'

interface Param {
  readonly name: string
  readonly type: ValueType | undefined
  readonly is_required: boolean
  readonly pattern: Pattern | undefined
  readonly pattern_error: string
}

export interface Params {
  /** The first input parameter that the data does not satisfy. */
  check(doc: Doc, steps: Steps): ParamMistake | undefined
  /** Names with flag `auto-clear`. */
  readonly masked: readonly string[]
}

/** Compiles `params`; each mistake is reported with its place. */
export function compileParams(raw: JsonValue | undefined, mistake: (text: string) => void): Params {
  const params: Param[] = []
  const masked: string[] = []
  const is_empty = isAbsent(raw) || (isObject(raw) && Object.keys(raw).length === 0)
  if (!is_empty && !Array.isArray(raw)) {
    mistake(`params: is ${quoted(raw)}, an array was expected`)
  }
  for (const [at, entry] of (Array.isArray(raw) ? raw : []).entries()) {
    const place = `params[${at}]`
    if (!isObject(entry)) {
      mistake(`${place}: is ${quoted(entry)}, an object was expected`)
      continue
    }
    const mistakeHere = (text: string): void => mistake(`${place}: ${text}`)
    const flags = readFlags(entry, mistakeHere)
    const param = readParam(entry, flags, mistakeHere)
    if (param === undefined) continue
    if (flags.includes('input')) params.push(param)
    if (flags.includes('auto-clear')) masked.push(param.name)
  }
  // Most processes check nothing; then the data is not even parsed.
  const check: Params['check'] =
    params.length === 0
      ? () => undefined
      : (doc, steps) => firstMistake(params, objectOf(doc), steps)
  return { check, masked }
}

function readParam(
  { name, type, regex, regex_error_text }: JsonObject,
  flags: readonly JsonValue[],
  mistake: (text: string) => void,
): Param | undefined {
  if (typeof name !== 'string' || name === '') {
    mistake(`name is ${quoted(name)}, a text was expected`)
    return undefined
  }
  if (!isAbsent(type) && !isValueType(type)) {
    mistake(`${quoted(name)} type ${quoted(type)} is none of string number boolean array object`)
  }
  const has_text = typeof regex_error_text === 'string' && regex_error_text !== ''
  return {
    name,
    type: isValueType(type) ? type : undefined,
    is_required: flags.includes('required'),
    pattern: readPattern(regex, (text) => mistake(`${quoted(name)} ${text}`)),
    pattern_error: has_text ? regex_error_text : 'the value does not match the pattern',
  }
}

function readFlags({ flags }: JsonObject, mistake: (text: string) => void): readonly JsonValue[] {
  if (Array.isArray(flags)) return flags
  if (flags !== undefined && flags !== null) {
    mistake(`flags is ${quoted(flags)}, an array was expected`)
  }
  return []
}

function readPattern(
  regex: JsonValue | undefined,
  mistake: (text: string) => void,
): Pattern | undefined {
  if (isAbsent(regex)) return undefined
  if (typeof regex !== 'string') {
    mistake(`regex is ${quoted(regex)}, a text was expected`)
    return undefined
  }
  const pattern = keepPattern(regex)
  if (typeof pattern === 'function') return pattern
  mistake(`regex ${quoted(regex)}: ${pattern.mistake}`)
  return undefined
}

const endless = `is a value on which the pattern takes ${steps_passed}`

function firstMistake(
  params: readonly Param[],
  data: JsonObject,
  steps: Steps,
): ParamMistake | undefined {
  for (const param of params) {
    const { name, type, pattern } = param
    const value = Object.hasOwn(data, name) ? data[name] : undefined
    if (value === undefined) {
      if (param.is_required) return { param: name, error: 'is required' }
    } else if (type !== undefined && !typeTable[type].is(value)) {
      // Clients write an empty text or null for an array or an object that is not there.
      const may_lack = !param.is_required && (type === 'array' || type === 'object')
      if (may_lack && isAbsent(value)) continue
      return { param: name, error: `is not of type ${type}` }
    } else if (pattern !== undefined) {
      const is_match = pattern(textOf(value), steps)
      if (is_match === undefined) return { param: name, error: endless }
      if (!is_match) return { param: name, error: param.pattern_error }
    }
  }
  return undefined
}
