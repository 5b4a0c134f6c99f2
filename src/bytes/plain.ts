/**
 * Plain JavaScript values to data: what an embedder hands in. Takes what JSON can hold exactly
 * (null, booleans, finite numbers, well-formed text, arrays, plain objects, bigints as their
 * digits, data of `rawJson`) and refuses the rest by its path, so that nothing is changed on the
 * way in unseen. A member that is undefined is left out.
 */
import type { Doc, JsonObject, JsonValue } from '../words/model.ts'
import {
  docOfValue,
  isDoc,
  isNumberToken,
  isObject,
  numberToken,
  objectOf,
  setMember,
} from './json.ts'

/** The Doc, or a sentence that names what is no plain JSON value. */
export function docOfPlain(value: object, nesting_max: number): Doc | string {
  try {
    return docOfValue(plain(value, 'data', nesting_max) as JsonObject)
  } catch (error) {
    if (typeof error === 'string') return error
    throw error
  }
}

function plain(value: unknown, path: string, levels_left: number): JsonValue {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'string') {
    if (value.isWellFormed()) return value
    throw `${path} has a lone surrogate`
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw `${path} is ${value}, which JSON cannot hold`
    return Object.is(value, -0) ? numberToken('-0') : numberToken(JSON.stringify(value))
  }
  if (typeof value === 'bigint') return numberToken(String(value))
  if (typeof value !== 'object') throw `${path} is a ${typeof value}`
  if (isNumberToken(value)) return value
  if (isDoc(value)) return plain(objectOf(value), path, levels_left)
  if (levels_left === 0) throw `${path} is nested too deep`
  if (Array.isArray(value)) {
    return value.map((item, at) => plain(item, `${path}[${at}]`, levels_left - 1))
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if ((prototype !== Object.prototype && prototype !== null) || !isObject(value)) {
    throw `${path} is no plain object`
  }
  const object: JsonObject = {}
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue
    if (!key.isWellFormed()) throw `a key of ${path} has a lone surrogate`
    setMember(object, key, plain(member, `${path}.${key}`, levels_left - 1))
  }
  return object
}
