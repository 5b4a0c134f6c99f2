/**
 * Plain JavaScript values to data: what an embedder hands in. Takes what JSON can hold exactly
 * (null, booleans, finite numbers, well-formed text, arrays, plain objects, bigints as their
 * digits, data of `rawJson`) and refuses the rest by its path, so that nothing is changed on the
 * way in unseen. A member that is undefined is left out.
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

/** The Doc, or a sentence that names what is no plain JSON value. */
export function docOfPlain(value: object, nesting_max: number): Doc | string {
  const look: Look = { path: '', mistake: '', prints_itself: true }
  if (!isPlain(value, look, nesting_max)) return `data${look.path} ${look.mistake}`
  return look.prints_itself
    ? docOfText(JSON.stringify(value))
    : docOfValue(converted(value) as JsonObject)
}

interface Look {
  /** Where there is a mistake: made on the way back, so that a value without one needs none. */
  path: string
  mistake: string
  /** Whether JSON.stringify prints the value as it is meant. */
  prints_itself: boolean
}

function isPlain(value: unknown, look: Look, levels_left: number): boolean {
  switch (typeof value) {
    case 'boolean':
      return true
    case 'string':
      return value.isWellFormed() || wrong(look, 'has a lone surrogate')
    case 'number':
      if (Object.is(value, -0)) look.prints_itself = false
      return Number.isFinite(value) || wrong(look, `is ${value}, which JSON cannot hold`)
    case 'bigint':
      look.prints_itself = false
      return true
    case 'object':
      return value === null || isPlainObject(value, look, levels_left)
    default:
      return wrong(look, `is a ${typeof value}`)
  }
}

function isPlainObject(value: object, look: Look, levels_left: number): boolean {
  if (isNumberToken(value)) {
    look.prints_itself = false
    return true
  }
  if (isDoc(value)) {
    look.prints_itself = false
    return isPlain(objectOf(value), look, levels_left)
  }
  if (levels_left === 0) return wrong(look, 'is nested too deep')
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      if (!isPlain(value[at], look, levels_left - 1)) return wrongUnder(look, `[${at}]`)
    }
    return true
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    return wrong(look, 'is no plain object')
  }
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key]
    if (member === undefined) continue
    if (!key.isWellFormed()) return wrong(look, 'has a key with a lone surrogate')
    if (!isPlain(member, look, levels_left - 1)) return wrongUnder(look, `.${key}`)
  }
  return true
}

function wrong(look: Look, mistake: string): false {
  look.mistake = mistake
  return false
}

function wrongUnder(look: Look, step: string): false {
  look.path = step + look.path
  return false
}

/** A plain value as the JSON value it stands for. */
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
