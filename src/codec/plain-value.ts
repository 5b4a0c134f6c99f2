/**
 * Data from the JavaScript values that an embedder passes. It takes what JSON holds exactly: null,
 * booleans, finite numbers, well-formed strings, arrays, plain objects, bigints (as their exact
 * text) and data from `rawJson`. It refuses anything else by its path, so no value changes
 * unnoticed. A member that is undefined is left out.
 */
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

/** The Doc, or a sentence that names the value that is not plain JSON. */
export function docOfPlain(value: object, nesting_max: number): Doc | string {
  const check: Check = { path: '', mistake: '', prints_itself: true }
  if (!isPlain(value, check, nesting_max)) return `data${check.path} ${check.mistake}`
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
}

function isPlain(value: unknown, check: Check, levels_left: number): boolean {
  switch (typeof value) {
    case 'boolean':
      return true
    case 'string':
      return value.isWellFormed() || refuse(check, 'has a lone surrogate')
    case 'number':
      if (Object.is(value, -0)) check.prints_itself = false
      return Number.isFinite(value) || refuse(check, `is ${value}, which JSON cannot hold`)
    case 'bigint':
      check.prints_itself = false
      return true
    case 'object':
      return value === null || isPlainObject(value, check, levels_left)
    default:
      return refuse(check, `is a ${typeof value}`)
  }
}

function isPlainObject(value: object, check: Check, levels_left: number): boolean {
  if (isNumberToken(value)) {
    check.prints_itself = false
    return true
  }
  if (isDoc(value)) {
    check.prints_itself = false
    return isPlain(objectOf(value), check, levels_left)
  }
  if (levels_left === 0) return refuse(check, 'is nested too deep')
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      if (!isPlain(value[at], check, levels_left - 1)) return refuseUnder(check, `[${at}]`)
    }
    return true
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    return refuse(check, 'is no plain object')
  }
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key]
    if (member === undefined) continue
    if (!key.isWellFormed()) return refuse(check, 'has a key with a lone surrogate')
    if (!isPlain(member, check, levels_left - 1)) return refuseUnder(check, `.${key}`)
  }
  return true
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
