/**
 * The difference between a task's data before and after a program: the members that the program
 * set, and those that it removed. The program gets every number as a double, and its result is
 * printed as JSON; a number that it did not change keeps its exact text. A number too large for a
 * double (`1e400`) is printed as null, so null counts as unchanged there.
 *
 * Pure. The parser of the values bounds their nesting, and with it the recursion here.
 */
import { isNumberToken, isObject, setMember } from '../../codec/json.ts'
import type { JsonObject, JsonValue, NumberToken } from '../../core/model.ts'

export interface DataDiff {
  /** Members that are new or have another value. */
  readonly changed: JsonObject
  readonly removed: readonly string[]
}

/** From `before`, with exact numbers, to `after`, as a program with doubles printed it. */
export function diffData(before: JsonObject, after: JsonObject): DataDiff {
  const changed: JsonObject = {}
  for (const key of Object.keys(after)) {
    const old = ownMember(before, key)
    const value = withTokens(old, after[key] as JsonValue)
    if (value !== old) setMember(changed, key, value)
  }
  const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key))
  return { changed, removed }
}

/** Applies a diff to data that may have changed since; members outside the diff stay. */
export function applyDiff(data: JsonObject, { changed, removed }: DataDiff): JsonObject {
  const removed_keys = new Set(removed)
  const result: JsonObject = {}
  for (const key of Object.keys(data)) {
    if (!removed_keys.has(key)) setMember(result, key, data[key] as JsonValue)
  }
  for (const key of Object.keys(changed)) setMember(result, key, changed[key] as JsonValue)
  return result
}

/** `before` itself where both are equal; else `after`, with its unchanged parts from `before`. */
function withTokens(before: JsonValue | undefined, after: JsonValue): JsonValue {
  if (before === undefined || before === after) return after
  if (isNumberToken(before)) return printsAs(before, after) ? before : after
  if (Array.isArray(before)) return Array.isArray(after) ? arrayWithTokens(before, after) : after
  return isObject(before) && isObject(after) ? objectWithTokens(before, after) : after
}

/** Whether the number's double is printed as `value`. A zero loses its sign. */
function printsAs({ token }: NumberToken, value: JsonValue): boolean {
  const double = Number(token)
  return Number.isFinite(double) ? double === value : value === null
}

function arrayWithTokens(before: readonly JsonValue[], after: readonly JsonValue[]): JsonValue {
  const made = after.map((value, at) => withTokens(before[at], value))
  const is_same = before.length === made.length && made.every((value, at) => value === before[at])
  return is_same ? (before as JsonValue) : made
}

function objectWithTokens(before: JsonObject, after: JsonObject): JsonObject {
  const keys = Object.keys(after)
  const made: JsonObject = {}
  let is_same = keys.length === Object.keys(before).length
  for (const key of keys) {
    const old = ownMember(before, key)
    const value = withTokens(old, after[key] as JsonValue)
    setMember(made, key, value)
    is_same &&= value === old
  }
  return is_same ? before : made
}

function ownMember(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}
