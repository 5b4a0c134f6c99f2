/**
 * What code changed in data that it saw as doubles: the members it set and those it took away,
 * with the numbers it did not touch at the text they had. Two values count as the same where
 * they are equal once every number is read as a double, and what a double cannot hold as JSON
 * shows it (`1e400` as null). Pure; bounded by the nesting of its two values, which their parser
 * has bounded.
 */
import { isNumberToken, isObject, setMember } from '../../codec/json.ts'
import type { JsonObject, JsonValue, NumberToken } from '../../core/model.ts'

export interface DataDiff {
  /** Members that are new or have another value. */
  readonly changed: JsonObject
  /** Names of members that are gone. */
  readonly removed: readonly string[]
}

/** From `before`, exact, to `after`, its numbers as a program with doubles printed them. */
export function diffData(before: JsonObject, after: JsonObject): DataDiff {
  const changed: JsonObject = {}
  for (const key of Object.keys(after)) {
    const was = memberOf(before, key)
    const is = withTokens(was, after[key] as JsonValue)
    if (is !== was) setMember(changed, key, is)
  }
  const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key))
  return { changed, removed }
}

/** The difference laid over data that may have moved on since; other members stay. */
export function applyDiff(data: JsonObject, { changed, removed }: DataDiff): JsonObject {
  const gone = new Set(removed)
  const result: JsonObject = {}
  for (const key of Object.keys(data)) {
    if (!gone.has(key)) setMember(result, key, data[key] as JsonValue)
  }
  for (const key of Object.keys(changed)) setMember(result, key, changed[key] as JsonValue)
  return result
}

/** `was` itself where both are the same; else `is`, with the parts that are the same from `was`. */
function withTokens(was: JsonValue | undefined, is: JsonValue): JsonValue {
  if (was === undefined || was === is) return is
  if (isNumberToken(was)) return printsAs(was, is) ? was : is
  if (Array.isArray(was)) return Array.isArray(is) ? arrayWithTokens(was, is) : is
  return isObject(was) && isObject(is) ? objectWithTokens(was, is) : is
}

/** Whether JSON made from the token's double shows `is`. A zero loses its sign. */
function printsAs(was: NumberToken, is: JsonValue): boolean {
  const double = Number(was.token)
  return Number.isFinite(double) ? double === is : is === null
}

function arrayWithTokens(was: readonly JsonValue[], is: readonly JsonValue[]): JsonValue {
  const made = is.map((value, at) => withTokens(was[at], value))
  const same = was.length === made.length && made.every((value, at) => value === was[at])
  return same ? (was as JsonValue) : made
}

function objectWithTokens(was: JsonObject, is: JsonObject): JsonObject {
  const keys = Object.keys(is)
  const made: JsonObject = {}
  let same = keys.length === Object.keys(was).length
  for (const key of keys) {
    const before = memberOf(was, key)
    const value = withTokens(before, is[key] as JsonValue)
    setMember(made, key, value)
    same &&= value === before
  }
  return same ? was : made
}

function memberOf(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}
