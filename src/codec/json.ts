/**
 * JSON that comes back as it went in (wire 1.7): every number keeps its token, `__proto__` is a
 * plain key, the last of duplicate keys holds, lone surrogates are refused.
 *
 * Two paths answer alike. The plain one is `JSON.parse`, and serves wherever a double and an escape
 * change nothing, which one look with a regular expression tells; the exact one (json-exact) serves
 * the rest. In a parsed value a number is a double exactly when its token is what that double
 * prints, else a NumberToken; so printing needs no memory of which path was taken.
 *
 * A Doc's text is always JSON of one object as `stringifyJson` prints it, within the nesting limit:
 * no white space, one spelling for each string, no key twice. Only this file makes one.
 */
import { fault } from '../core/faults.ts'
import { limitTable } from '../core/limits.ts'
import type { Doc, JsonObject, JsonValue, NumberToken } from '../core/model.ts'
import { brace_close, brace_open, bracket_close, bracket_open, comma, quote } from './json-chars.ts'
import { type JsonBounds, parseExact } from './json-exact.ts'
import { endOfString, mergedText } from './json-members.ts'
import { isNumberToken } from './number-token.ts'

export type { JsonBounds } from './json-exact.ts'
export { isNumberToken, numberToken } from './number-token.ts'

/** Levels that stand around `data` in a request: the body, `ops` and the op (wire 1.1). */
const levels_around_data = 3

const default_bounds: JsonBounds = {
  nesting_max: limitTable.nesting_max.value,
  values_max: Number.MAX_SAFE_INTEGER,
}

/** What was stored under any limits must be read under any others. */
const stored_bounds: JsonBounds = {
  nesting_max: limitTable.nesting_max.max,
  values_max: Number.MAX_SAFE_INTEGER,
}

/**
 * The bounds for a data object that comes without its envelope, so that every door bounds it alike.
 */
export function dataBounds(bounds: JsonBounds): JsonBounds {
  return { nesting_max: bounds.nesting_max - levels_around_data, values_max: bounds.values_max }
}

/** JSON text to a value. Throws a `format_error` Fault that says what is wrong and where. */
export function parseJson(text: string, bounds: JsonBounds = default_bounds): JsonValue {
  if (mustFit(text, bounds) || fits(text, bounds)) {
    // A lone surrogate may stand in a text that did not come as UTF-8: the exact parser names it.
    if (text.isWellFormed() && !mayNeedExact(text)) {
      try {
        return JSON.parse(text) as JsonValue
      } catch {
        // The exact parser below names the mistake and its place.
      }
    }
  }
  return parseExact(text, bounds)
}

/** Text that this program stored, whatever the limits were then. */
export function parseStored(text: string): JsonValue {
  if (mayNeedExact(text)) return parseExact(text, stored_bounds)
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    // The exact parser names the mistake and its place.
    return parseExact(text, stored_bounds)
  }
}

/** Text of this program or of a server as plain JavaScript, numbers as doubles. */
export function parsePlain(text: string): unknown {
  if (!text.includes('\\') || !one_escape_name.test(text)) return JSON.parse(text)
  return withDoubles(parseExact(text, stored_bounds))
}

/** Changes the value, which nobody else has. */
function withDoubles(value: JsonValue): unknown {
  if (isNumberToken(value)) return Number(value.token)
  if (Array.isArray(value)) return value.map(withDoubles)
  if (!isObject(value)) return value
  for (const key of Object.keys(value)) {
    setMember(value, key, withDoubles(value[key] as JsonValue) as JsonValue)
  }
  return value
}

/** A value to its JSON text, without white space; the opposite of `parseJson`. */
export function stringifyJson(value: JsonValue): string {
  const text = JSON.stringify(value)
  return text.includes(token_tag) ? text.replace(tagged_token, '$1') : text
}

// A NumberToken prints itself as a string that opens with a lone surrogate, which no string of a
// caller's can hold, and JSON.stringify escapes it: what looks so in the output is a token.
const token_tag = '\\ud800'
const tagged_token = /"\\ud800([^"]*)"/g

/** The levels of nesting of valid JSON text; a scalar has none. */
export function nestingOf(text: string): number {
  return measure(text, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER).nesting
}

const doc_mark: unique symbol = Symbol('conveyor.doc')

/** Trusted: the caller knows that `text` is what `stringifyJson` printed, within the limits. */
export function docOfText(text: string): Doc {
  return { text, memo: undefined, [doc_mark]: true } as Doc
}

/** Trusted: `value` came from `parseJson` or was built from such values. */
export function docOfValue(value: JsonObject): Doc {
  return { text: stringifyJson(value), memo: value, [doc_mark]: true } as Doc
}

export const empty_doc: Doc = docOfText('{}')

/** The object of a Doc, parsed when first asked for. Nobody changes it. */
export function objectOf(doc: Doc): JsonObject {
  doc.memo ??= parseStored(doc.text) as JsonObject
  return doc.memo
}

/** Whether this program made the value as a Doc; no parsed JSON can pass for one. */
export function isDoc(value: unknown): value is Doc {
  return typeof value === 'object' && value !== null && doc_mark in value
}

/**
 * JSON text as data that keeps its numbers to the token.
 * Throws a `format_error` Fault where it is no valid JSON object or nested deeper than the limit.
 */
export function rawJson(text: string, bounds: JsonBounds = default_bounds): Doc {
  const value = parseJson(text, dataBounds(bounds))
  if (!isObject(value)) throw fault('format_error', 'data is not a JSON object')
  return docOfValue(value)
}

/** The keys of `patch` laid over those of `base`, at the top level; other keys stay. */
export function mergeDocs(base: Doc, patch: Doc): Doc {
  if (patch.text === '{}') return base
  if (base.text === '{}') return patch
  const text = mergedText(base.text, patch.text)
  return text === undefined ? mergedDoc(base, patch) : docOfText(text)
}

function mergedDoc(base: Doc, patch: Doc): Doc {
  const merged: JsonObject = { ...objectOf(base) }
  const added = objectOf(patch)
  for (const key of Object.keys(added)) setMember(merged, key, added[key] as JsonValue)
  return docOfValue(merged)
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

export function isObject(value: unknown): value is JsonObject {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isNumberToken(value)
  )
}

/** The token of a number as it was sent. */
export function numberText(value: number | NumberToken): string {
  return typeof value === 'number' ? String(value) : value.token
}

/** Bytes of a text in UTF-8. */
export function bytesOf(text: string): number {
  return Buffer.byteLength(text)
}

// A number token stands behind one of `: [ ,`; a number alone opens the text. What looks so inside
// a string only costs a second look. Taken are the tokens that a double might not print again:
// signed zeros, fractions, exponents and long ones.
const suspects =
  /(?:[:[,]|^)[ \t\n\r]*(-0[0-9.eE+-]*|-?[0-9]+[.eE][0-9.eE+-]*|-?[0-9]{16}[0-9.eE+-]*)/g
const surrogate_escape = /\\u[dD][89a-fA-F]/

/**
 * Node 24 and 26 misread the name of a member that is one character written with an escape: they
 * take it for the name that stood in its place in an object they read before. Such a text goes the
 * exact way. A match inside a string only costs a second look.
 */
const one_escape_name = /"\\(?:u[0-9a-fA-F]{4}|[^u])"[ \t\n\r]*:/

function mayNeedExact(text: string): boolean {
  suspects.lastIndex = 0
  for (let found = suspects.exec(text); found !== null; found = suspects.exec(text)) {
    const token = found[1] as string
    if (String(Number(token)) !== token) return true
  }
  if (!text.includes('\\')) return false
  return surrogate_escape.test(text) || one_escape_name.test(text)
}

/** Whether a text is too short and has too few brackets to pass the bounds; cheap, often true. */
function mustFit(text: string, { nesting_max, values_max }: JsonBounds): boolean {
  if (text.length > values_max) return false
  let brackets = 0
  for (const bracket of ['{', '[']) {
    let at = text.indexOf(bracket)
    while (at !== -1) {
      if (++brackets > nesting_max) return false
      at = text.indexOf(bracket, at + 1)
    }
  }
  return true
}

function fits(text: string, bounds: JsonBounds): boolean {
  const { nesting, values } = measure(text, bounds.nesting_max, bounds.values_max)
  return nesting <= bounds.nesting_max && values <= bounds.values_max
}

/** One pass over the text: brackets and separators outside strings. Stops once over a bound. */
function measure(
  text: string,
  nesting_max: number,
  values_max: number,
): { nesting: number; values: number } {
  let level = 0
  let nesting = 0
  let values = 1
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) {
      at = endOfString(text, at)
    } else if (char === brace_open || char === bracket_open) {
      level++
      values++
      if (level > nesting) nesting = level
    } else if (char === brace_close || char === bracket_close) level--
    else if (char === comma) values++
    if (nesting > nesting_max || values > values_max) break
  }
  return { nesting, values }
}
