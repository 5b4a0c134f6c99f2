/**
 * A reference parser of JSON and of request bodies, which shares nothing with the scanner but the
 * number tokens: slow, and written to be read. The tests compare what both answer.
 */

import {
  dataBounds,
  docOfValue,
  isObject,
  type JsonBounds,
  numberToken,
} from '../../src/codec/json.ts'
import { checkOpCount } from '../../src/codec/op.ts'
import type { RequestLimits } from '../../src/codec/request-body.ts'
import { fault } from '../../src/core/faults.ts'
import type { Doc, JsonObject, JsonValue } from '../../src/core/model.ts'

interface Reader {
  readonly text: string
  readonly bounds: JsonBounds
  at: number
  values: number
}

/** Throws a `format_error` Fault that says what is wrong and at which character, counted from 1. */
export function parseReference(text: string, bounds: JsonBounds): JsonValue {
  const reader: Reader = { text, bounds, at: 0, values: 0 }
  skipSpace(reader)
  const value = readValue(reader, 1)
  skipSpace(reader)
  if (reader.at < text.length) throw mistake(reader, 'nothing may follow the value')
  return value
}

function readValue(reader: Reader, level: number): JsonValue {
  if (++reader.values > reader.bounds.values_max) {
    throw mistake(reader, `more than ${reader.bounds.values_max} values`)
  }
  const char = reader.text[reader.at]
  if (char === '{' || char === '[') {
    if (level > reader.bounds.nesting_max) {
      throw mistake(reader, `nested deeper than ${reader.bounds.nesting_max}`)
    }
    return char === '{' ? readObject(reader, level) : readArray(reader, level)
  }
  if (char === '"') return readString(reader)
  for (const [word, value] of words) {
    if (reader.text.startsWith(word, reader.at)) {
      reader.at += word.length
      return value
    }
  }
  return readNumber(reader)
}

const words = [
  ['true', true],
  ['false', false],
  ['null', null],
] as const

function readObject(reader: Reader, level: number): JsonObject {
  const object: JsonObject = {}
  reader.at++
  skipSpace(reader)
  if (reader.text[reader.at] === '}') {
    reader.at++
    return object
  }
  for (;;) {
    if (reader.text[reader.at] !== '"') throw mistake(reader, 'a key in quotes was expected')
    const key = readString(reader)
    skipSpace(reader)
    if (reader.text[reader.at] !== ':') throw mistake(reader, '":" was expected')
    reader.at++
    skipSpace(reader)
    const value = readValue(reader, level + 1)
    // Not an assignment: `__proto__` is a key like any other.
    Object.defineProperty(object, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
    if (!hasNext(reader, '}')) return object
  }
}

function readArray(reader: Reader, level: number): JsonValue[] {
  const array: JsonValue[] = []
  reader.at++
  skipSpace(reader)
  if (reader.text[reader.at] === ']') {
    reader.at++
    return array
  }
  for (;;) {
    array.push(readValue(reader, level + 1))
    if (!hasNext(reader, ']')) return array
  }
}

function hasNext(reader: Reader, close: string): boolean {
  skipSpace(reader)
  const char = reader.text[reader.at]
  if (char !== ',' && char !== close) throw mistake(reader, `"," or "${close}" was expected`)
  reader.at++
  if (char === close) return false
  skipSpace(reader)
  return true
}

const number_pattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y

function readNumber(reader: Reader): JsonValue {
  number_pattern.lastIndex = reader.at
  const match = number_pattern.exec(reader.text)
  if (match === null) throw mistake(reader, 'a value was expected')
  reader.at += match[0].length
  return numberToken(match[0])
}

const string_stop = /["\\\u0000-\u001f]/g
const escapes: Record<string, string> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

function readString(reader: Reader): string {
  const { text } = reader
  const start = reader.at
  let out = ''
  let from = ++reader.at
  for (;;) {
    string_stop.lastIndex = from
    const stop = string_stop.exec(text)
    if (stop === null) {
      reader.at = text.length
      throw mistake(reader, 'a string does not end')
    }
    out += text.slice(from, stop.index)
    reader.at = stop.index
    if (stop[0] === '"') break
    if (stop[0] !== '\\') throw mistake(reader, 'a control character stands in a string')
    out += readEscape(reader)
    from = reader.at
  }
  reader.at++
  if (!out.isWellFormed()) {
    reader.at = start
    throw mistake(reader, 'a lone surrogate stands in a string')
  }
  return out
}

function readEscape(reader: Reader): string {
  const letter = reader.text[reader.at + 1] ?? ''
  if (letter === 'u') {
    const hex = reader.text.slice(reader.at + 2, reader.at + 6)
    if (!/^[0-9a-fA-F]{4}$/.test(hex)) throw mistake(reader, 'a bad \\u escape')
    reader.at += 6
    return String.fromCharCode(Number.parseInt(hex, 16))
  }
  const char = escapes[letter]
  if (char === undefined) throw mistake(reader, 'a bad escape')
  reader.at += 2
  return char
}

function skipSpace(reader: Reader): void {
  for (;;) {
    const char = reader.text.charCodeAt(reader.at)
    if (char !== 0x20 && char !== 0x0a && char !== 0x0d && char !== 0x09) return
    reader.at++
  }
}

function mistake(reader: Reader, what: string): Error {
  let line = 1
  let line_at = 0
  for (;;) {
    const end = reader.text.indexOf('\n', line_at)
    if (end === -1 || end >= reader.at) break
    line++
    line_at = end + 1
  }
  const column = reader.at - line_at + 1
  return fault('format_error', `not JSON: ${what}, line ${line} column ${column}`)
}

/** The raw ops of a body that is valid UTF-8. */
export function parseRequestReference(body: Buffer, limits: RequestLimits): unknown[] {
  const request = parseReference(body.toString('utf8'), {
    nesting_max: limits.nesting_max,
    values_max: limits.body_values_max,
  })
  if (!isObject(request)) throw fault('format_error', 'the body is not a JSON object')
  const ops = opsOf(request.ops)
  checkOpCount(ops.length, limits.ops_max)
  for (const op of ops) if (isObject(op) && isObject(op.data)) asDoc(op, op.data)
  return ops
}

function opsOf(ops: unknown): unknown[] {
  if (ops === undefined) throw fault('format_error', "Key 'ops' is required")
  if (isObject(ops)) return [ops]
  if (!Array.isArray(ops)) throw fault('format_error', "'ops' is not an array")
  if (ops.length === 0) throw fault('format_error', "'ops' is empty")
  return ops
}

function asDoc(op: { data?: unknown }, data: Parameters<typeof docOfValue>[0]): void {
  op.data = docOfValue(data)
}

/** The Doc of a text that is one JSON object. */
export function rawJsonReference(text: string, bounds: JsonBounds): Doc {
  const value = parseReference(text, dataBounds(bounds))
  if (!isObject(value)) throw fault('format_error', 'data is not a JSON object')
  return docOfValue(value)
}
