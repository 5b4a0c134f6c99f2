/**
 * Exact values: every number keeps its text, `__proto__` is an ordinary key, and the last of equal
 * keys holds. Slower than JSON.parse. Only a number whose double would print otherwise (`1.10`,
 * `1e400`) is a NumberToken, so equal values have one form.
 */
import type { JsonObject, JsonValue, NumberToken } from '../core/model.ts'
import type { Sliced } from '../core/slices.ts'
import {
  brace_close,
  brace_open,
  bracket_close,
  bracket_open,
  closed,
  enter,
  type JsonBounds,
  next,
  type Scan,
  scanEnd,
  scanKey,
  scanOfText,
  scanValue,
  skipColon,
  skipSpace,
  textBetween,
} from './json-scanner.ts'

/** JSON text to a value. Throws a `format_error` Fault that says what is wrong and where. */
export function parseExact(text: string, bounds: JsonBounds): JsonValue {
  const scan = scanOfText(text, bounds)
  const value = valueAt(scan, skipSpace(scan, 0), 1)
  scanEnd(scan, scan.end)
  return value
}

/** The same with a pause after each member of what is nested `levels` deep or less. */
export function* parseInSlices(
  text: string,
  bounds: JsonBounds,
  levels: number,
): Sliced<JsonValue> {
  const scan = scanOfText(text, bounds)
  const value = yield* valueInSlices(scan, skipSpace(scan, 0), 1, levels)
  scanEnd(scan, scan.end)
  return value
}

function* valueInSlices(
  scan: Scan,
  open: number,
  level: number,
  levels: number,
): Sliced<JsonValue> {
  const byte = scan.bytes[open]
  const is_object = byte === brace_open
  if (level > levels || (!is_object && byte !== bracket_open)) return valueAt(scan, open, level)
  const [object, array]: [JsonObject, JsonValue[]] = [{}, []]
  const close = is_object ? brace_close : bracket_close
  let at = enter(scan, open, level, close)
  while (at !== closed) {
    const key_end = is_object ? scanKey(scan, at) : 0
    const key = is_object ? stringAt(scan, at, key_end) : ''
    const value_at = is_object ? skipColon(scan, key_end) : at
    const value = yield* valueInSlices(scan, value_at, level + 1, levels)
    if (is_object) setMember(object, key, value)
    else array.push(value)
    yield
    at = next(scan, scan.end, close)
  }
  return is_object ? object : array
}

/** The value at an offset; `scan.end` is the offset after it. */
export function valueAt(scan: Scan, at: number, level: number): JsonValue {
  const byte = scan.bytes[at]
  if (byte === brace_open) return objectAt(scan, at, level)
  if (byte === bracket_open) return arrayAt(scan, at, level)
  scan.end = scanValue(scan, at, level)
  if (byte === 0x22) return stringAt(scan, at, scan.end)
  const token = textBetween(scan, at, scan.end)
  if (token === 'null') return null
  return token === 'true' || (token === 'false' ? false : numberToken(token))
}

function objectAt(scan: Scan, open: number, level: number): JsonObject {
  const object: JsonObject = {}
  let at = enter(scan, open, level, brace_close)
  while (at !== closed) {
    const key_end = scanKey(scan, at)
    const key = stringAt(scan, at, key_end)
    setMember(object, key, valueAt(scan, skipColon(scan, key_end), level + 1))
    at = next(scan, scan.end, brace_close)
  }
  return object
}

function arrayAt(scan: Scan, open: number, level: number): JsonValue[] {
  const array: JsonValue[] = []
  let at = enter(scan, open, level, bracket_close)
  while (at !== closed) {
    array.push(valueAt(scan, at, level + 1))
    at = next(scan, scan.end, bracket_close)
  }
  return array
}

/** The string or key that was scanned last, with its quotes. */
export function stringAt(scan: Scan, from: number, to: number): string {
  if (!scan.has_escape) return textBetween(scan, from + 1, to - 1)
  return JSON.parse(textBetween(scan, from, to)) as string
}

/** Sets an own member, also one named `__proto__`, which an assignment would not. */
export function setMember(object: JsonObject, key: string, value: JsonValue): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  } else object[key] = value
}

const prototype = {
  toJSON(this: NumberToken): string {
    return `\ud800${this.token}`
  },
}

/** `token` must be a valid JSON number. */
export function numberToken(token: string): number | NumberToken {
  const double = Number(token)
  if (String(double) === token) return double
  const made = Object.create(prototype) as { token: string }
  made.token = token
  return made as NumberToken
}

export function isNumberToken(value: unknown): value is NumberToken {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === prototype
}
