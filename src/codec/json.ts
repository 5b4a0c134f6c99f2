/**
 * JSON text and values. Three jobs work on JSON text:
 *
 * - Splitting a request into ops without parsing their `data`: codec/request-body, with the scanner
 *   (codec/json-scanner), the only parser of the grammar.
 * - Exact values (wire 1.7): JSON.parse where a regular expression shows that it gives the same,
 *   codec/json-exact for the rest.
 * - Canonical text and merging, from the text of a Doc, without the scanner: codec/doc-text.
 *
 * The text of a Doc is JSON of one object as `stringifyJson` prints it, within the nesting limit:
 * no white space, one spelling for each string, no key twice. Only this file makes Docs.
 */
import { isUtf8 } from 'node:buffer'
import { fault } from '../core/faults.ts'
import { limitTable } from '../core/limits.ts'
import type { Doc, JsonObject, JsonValue, NumberToken } from '../core/model.ts'
import { isNumberToken, parseExact, setMember } from './json-exact.ts'
import {
  brace_open,
  type JsonBounds,
  type Scan,
  scanDocument,
  scanEnd,
  scanOfBytes,
  scanOfText,
  scanValue,
  skipSpace,
  textBetween,
} from './json-scanner.ts'

export { isNumberToken, numberToken, parseInSlices, setMember } from './json-exact.ts'
export type { JsonBounds } from './json-scanner.ts'

/** Levels of nesting around `data` in a request: the body, `ops` and the op (wire 1.1). */
export const levels_around_data = 3

const default_bounds: JsonBounds = {
  nesting_max: limitTable.nesting_max.value,
  values_max: Number.MAX_SAFE_INTEGER,
}

/** Whatever was stored under other limits must be readable. */
const stored_bounds: JsonBounds = {
  nesting_max: limitTable.nesting_max.max,
  values_max: Number.MAX_SAFE_INTEGER,
}

/** The bounds for `data` that comes without a request around it: the same at every server. */
export function dataBounds(bounds: JsonBounds): JsonBounds {
  return { nesting_max: bounds.nesting_max - levels_around_data, values_max: bounds.values_max }
}

/**
 * Any JSON text to an exact value. Throws a `format_error` Fault that says what is wrong and where.
 */
export function parseJson(text: string, bounds: JsonBounds = default_bounds): JsonValue {
  if (!text.isWellFormed()) return parseExact(text, bounds)
  if (!mustFit(text, bounds)) scanDocument(scanOfText(text, bounds))
  return parseStored(text, bounds)
}

/** Text that this program stored, or that is within the bounds, to an exact value. */
export function parseStored(text: string, bounds = stored_bounds): JsonValue {
  if (mayNeedExact(text)) return parseExact(text, bounds)
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    // The exact parser says what is wrong and where.
    return parseExact(text, bounds)
  }
}

/** Text that this program or a server wrote to plain JavaScript, with every number a double. */
export function parsePlain(text: string): unknown {
  if (!text.includes('\\') || !one_escape_name.test(text)) return JSON.parse(text)
  return withDoubles(parseExact(text, stored_bounds))
}

/** Changes the value, which nothing else holds. */
function withDoubles(value: JsonValue): unknown {
  if (isNumberToken(value)) return Number(value.token)
  if (Array.isArray(value)) return value.map(withDoubles)
  if (!isObject(value)) return value
  for (const key of Object.keys(value)) {
    setMember(value, key, withDoubles(value[key] as JsonValue) as JsonValue)
  }
  return value
}

/** A value to its JSON text without white space: the opposite of `parseJson`. */
export function stringifyJson(value: JsonValue): string {
  return withTokens(JSON.stringify(value))
}

/** The same indented, for people. */
export function indentedJson(value: JsonValue): string {
  return withTokens(JSON.stringify(value, null, 2))
}

function withTokens(text: string): string {
  return text.includes(token_tag) ? text.replace(tagged_token, '$1') : text
}

// A NumberToken's toJSON gives a string that begins with a lone surrogate, which JSON.stringify
// prints as an escape. No string of a caller holds one, so only a NumberToken looks like this.
const token_tag = '\\ud800'
const tagged_token = /"\\ud800([^"]*)"/g

const doc_mark: unique symbol = Symbol('conveyor.doc')

/** `text` must be as `stringifyJson` prints it, and within the limits: it is not checked. */
export function docOfText(text: string): Doc {
  return { text, memo: undefined, [doc_mark]: true } as Doc
}

/** `value` must come from `parseJson` or be built of such values: it is not checked. */
export function docOfValue(value: JsonObject): Doc {
  return { text: stringifyJson(value), memo: value, [doc_mark]: true } as Doc
}

export const empty_doc: Doc = docOfText('{}')

/** The object of a Doc, parsed once, when it is first needed. It must not be changed. */
export function objectOf(doc: Doc): JsonObject {
  doc.memo ??= parseStored(doc.text) as JsonObject
  return doc.memo
}

/** Whether the value is a Doc. No parsed JSON is taken for one. */
export function isDoc(value: unknown): value is Doc {
  return typeof value === 'object' && value !== null && doc_mark in value
}

/**
 * The text of a JSON object as data, in which every number keeps its exact text. Throws a
 * `format_error` Fault if it is not a valid JSON object or is nested deeper than the limit.
 */
export function rawJson(text: string, bounds: JsonBounds = default_bounds): Doc {
  return wholeDoc(scanOfText(text, dataBounds(bounds)))
}

/** Like `rawJson`, from UTF-8. Bytes that are not UTF-8 are a `format_error` too. */
export function docOfBytes(bytes: Buffer, bounds: JsonBounds): Doc {
  if (!isUtf8(bytes)) throw fault('format_error', 'it is not UTF-8')
  return wholeDoc(scanOfBytes(bytes, dataBounds(bounds)))
}

function wholeDoc(scan: Scan): Doc {
  const open = skipSpace(scan, 0)
  if (scan.bytes[open] !== brace_open) {
    scanDocument(scan)
    throw fault('format_error', 'data is not a JSON object')
  }
  const doc = docAt(scan, open, 1)
  scanEnd(scan, scan.end)
  return doc
}

/** The object at an offset as a Doc; `scan.end` is the offset after it. */
export function docAt(scan: Scan, open: number, level: number): Doc {
  scan.must_parse = false
  scan.is_printing = true
  scan.printed = ''
  scan.printed_to = open
  const end = scanValue(scan, open, level)
  scan.is_printing = false
  scan.end = end
  if (scan.must_parse) return docOfValue(parseStored(textBetween(scan, open, end)) as JsonObject)
  return docOfText(scan.printed + textBetween(scan, scan.printed_to, end))
}

export function isObject(value: unknown): value is JsonObject {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isNumberToken(value)
  )
}

/** The exact text of a number. */
export function numberText(value: number | NumberToken): string {
  return typeof value === 'number' ? String(value) : value.token
}

/** Bytes of a text in UTF-8. */
export function bytesOf(text: string): number {
  return Buffer.byteLength(text)
}

// The numbers that a double may print otherwise: negative zeros, fractions, exponents, long ones. A
// number follows one of `: [ ,` or begins the text. A match inside a string does no harm: the text
// then goes to the exact parser.
const suspects =
  /(?:[:[,]|^)[ \t\n\r]*(-0[0-9.eE+-]*|-?[0-9]+[.eE][0-9.eE+-]*|-?[0-9]{16}[0-9.eE+-]*)/g
const surrogate_escape = /\\u[dD][89a-fA-F]/

/**
 * A key that is one escaped character. JSON.parse of Node 24 and 26 reads it as the key that was in
 * its place in an object parsed before, so such a text goes to the exact parser.
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

/** Whether a text is too short and has too few brackets to exceed the bounds: cheap, often true. */
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
