/**
 * Data from the JavaScript values of an embedder. Accepts what JSON holds exactly: null, booleans,
 * finite numbers, well-formed strings, arrays, plain objects, bigints (as their text) and data from
 * `rawJson`. As with JSON.stringify, undefined members are left out and `toJSON` is called.
 * Anything else is refused by its path: functions, symbols, NaN and the infinities, undefined in an
 * array, lone surrogates, cycles, and objects of a class without toJSON.
 *
 * A value in two places counts as two, as in its JSON. Each walk counts values and ends at the
 * bounds.
 */
import type { Limits } from '../core/limits.ts'
import type { Doc, JsonObject, JsonValue } from '../core/model.ts'
import {
  docOfText,
  docOfValue,
  isDoc,
  isNumberToken,
  numberToken,
  objectOf,
  setMember,
} from './json.ts'

export interface PlainBounds {
  readonly nesting_max: number
  /** Values, and keys of objects. */
  readonly values_max: number
  /** UTF-16 units of its texts and keys. */
  readonly chars_max: number
}

/** The size of a refused value is counted up to here. Control characters print as six. */
const counted_chars_max = 2 * 1024 * 1024

/** The bounds of a value that comes without a body. They refuse nothing that fits into a task. */
export function plainBounds(limits: Limits, levels_around = 0): PlainBounds {
  const { nesting_max, body_values_max, task_bytes_max } = limits
  return {
    nesting_max: nesting_max - levels_around,
    values_max: Math.max(body_values_max, task_bytes_max / value_bytes),
    chars_max: Math.max(counted_chars_max, task_bytes_max),
  }
}

/** Of each value and each key, with the comma, bracket or quotes beside it. */
const value_bytes = 2

/** The Doc, or a sentence that names the value that is not plain JSON. */
export function docOfPlain(given: object, bounds: PlainBounds): Doc | string {
  const { nesting_max } = bounds
  let value: unknown = given
  let check = newCheck(bounds, false)
  let is_plain = isPlain(value, check, nesting_max)
  if (check.has_to_json) {
    const found = { is_too_deep: false, values_left: bounds.values_max }
    value = replaced(given, '', nesting_max, found)
    check = newCheck(bounds, true)
    is_plain = isPlain(value, check, nesting_max)
    if (is_plain && Array.isArray(value) !== Array.isArray(given)) {
      is_plain = refuse(check, 'is an array')
    } else if (is_plain && (typeof value !== 'object' || value === null)) {
      is_plain = refuse(check, 'is no object')
    }
  }
  if (check.values_left < 0) return `data holds more than ${bounds.values_max} keys and values`
  if (check.chars_left < 0) return `data holds more than ${bounds.chars_max} characters`
  if (!is_plain) return `data${check.path} ${check.mistake}`
  return check.prints_itself
    ? docOfText(JSON.stringify(value))
    : docOfValue(converted(value) as JsonObject)
}

/** What one check of a value found. */
interface Check {
  /** Of the mistake; built on the way back from it, so a good value costs nothing. */
  path: string
  mistake: string
  /** Whether JSON.stringify prints the value exactly. */
  prints_itself: boolean
  /** The first method toJSON ends the check. What the methods return is checked in a second one. */
  has_to_json: boolean
  readonly is_replaced: boolean
  /** Below 0 the value is over its bounds, which ends the check as a mistake does. */
  values_left: number
  chars_left: number
}

function newCheck({ values_max, chars_max }: PlainBounds, is_replaced: boolean): Check {
  const left = { values_left: values_max, chars_left: chars_max }
  return { path: '', mistake: '', prints_itself: true, has_to_json: false, is_replaced, ...left }
}

function isPlain(value: unknown, check: Check, levels_left: number): boolean {
  if (--check.values_left < 0) return false
  switch (typeof value) {
    case 'boolean':
      return true
    case 'string':
      check.chars_left -= value.length
      if (check.chars_left < 0) return false
      return value.isWellFormed() || refuse(check, 'has a lone surrogate')
    case 'number':
      if (Object.is(value, -0)) check.prints_itself = false
      return Number.isFinite(value) || refuse(check, `is ${value}, which JSON cannot hold`)
    case 'bigint':
      check.prints_itself = false
      check.chars_left -= value.toString(16).length * digit_chars
      return check.chars_left >= 0
    case 'object':
      return value === null || isPlainObject(value, check, levels_left)
    default:
      if (value === to_json_threw) return refuse(check, 'has a toJSON that throws')
      return refuse(check, `is a ${typeof value}`)
  }
}

function isPlainObject(value: object, check: Check, levels_left: number): boolean {
  if (isNumberToken(value)) {
    check.prints_itself = false
    check.chars_left -= value.token.length
    return check.chars_left >= 0
  }
  if (isDoc(value)) {
    check.prints_itself = false
    return isPlain(objectOf(value), check, levels_left)
  }
  const is_array = Array.isArray(value)
  const may_have_method = is_array || !isOfNoClass(value)
  if (may_have_method && !check.is_replaced && hasToJson(value)) return endAtToJson(check)
  if (may_have_method && !is_array) return refuse(check, 'is no plain object')
  if (levels_left === 0) return refuse(check, 'is nested too deep')
  if (is_array) {
    for (let at = 0; at < value.length; at++) {
      if (!isPlain(value[at], check, levels_left - 1)) return refuseUnder(check, `[${at}]`)
    }
    return true
  }
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key]
    check.chars_left -= key.length
    if (--check.values_left < 0 || check.chars_left < 0) return false
    if (member === undefined) continue
    if (!key.isWellFormed()) return refuse(check, 'has a key with a lone surrogate')
    if (isPlain(member, check, levels_left - 1)) continue
    const is_own_method = key === 'toJSON' && typeof member === 'function'
    if (is_own_method && !check.is_replaced) return endAtToJson(check)
    return refuseUnder(check, `.${key}`)
  }
  return true
}

function endAtToJson(check: Check): false {
  check.has_to_json = true
  return false
}

function isOfNoClass(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function hasToJson(value: object): value is { toJSON(key: string): unknown } {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function'
}

/** What a digit of a bigint counts: to print one takes time that grows faster than its length. */
const digit_chars = 128

/** In a copy, the value of a toJSON that throws. */
const to_json_threw = Symbol('toJSON threw')

/**
 * A copy in which each object with a toJSON is what that returned; it is called once, with the key.
 * From the first value on that is over the bounds all stay as they are: the check refuses that one.
 */
function replaced(
  given: unknown,
  key: string,
  levels_left: number,
  found: { is_too_deep: boolean; values_left: number },
): unknown {
  if (found.is_too_deep || --found.values_left < 0) return given
  if (typeof given !== 'object' || given === null || isNumberToken(given) || isDoc(given)) {
    return given
  }
  const value = hasToJson(given) ? jsonOf(given, key) : given
  if (typeof value !== 'object' || value === null) return value
  if (levels_left === 0) found.is_too_deep = true
  else if (Array.isArray(value)) {
    return value.map((member, at) => replaced(member, String(at), levels_left - 1, found))
  } else if (isOfNoClass(value)) {
    const copy = {}
    for (const [name, member] of Object.entries(value)) {
      found.values_left--
      setMember(copy, name, replaced(member, name, levels_left - 1, found) as JsonValue)
    }
    return copy
  }
  return value
}

function jsonOf(given: { toJSON(key: string): unknown }, key: string): unknown {
  try {
    return given.toJSON(key)
  } catch {
    return to_json_threw
  }
}

function refuse(check: Check, mistake: string): false {
  check.mistake = mistake
  return false
}

function refuseUnder(check: Check, step: string): false {
  check.path = step + check.path
  return false
}

/** The JSON value of a value that passed the check. */
function converted(value: unknown): JsonValue {
  if (typeof value === 'bigint') return numberToken(String(value))
  if (Object.is(value, -0)) return numberToken('-0')
  if (typeof value !== 'object' || value === null || isNumberToken(value)) return value as JsonValue
  if (isDoc(value)) return objectOf(value)
  if (Array.isArray(value)) return value.map(converted)
  const object: JsonObject = {}
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) setMember(object, key, converted(member))
  }
  return object
}
