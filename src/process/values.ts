/**
 * Conversions of values. A number keeps its exact text through every conversion, and a value of the
 * wanted type is returned unchanged. Ids are texts, and one too long to be stored is rejected here.
 */
import {
  isNumberToken,
  isObject,
  numberText,
  numberToken,
  parseJson,
  stringifyJson,
} from '../codec/json.ts'
import { isName } from '../codec/op.ts'
import type { JsonValue } from '../core/model.ts'
import { alias_chars_max, id_chars_max, value_bounds } from './definition-limits.ts'

interface TypeRow {
  /** Whether a value already has this type. */
  is(value: JsonValue): boolean
  /** The value in this type; undefined where it cannot be converted. */
  convert(value: JsonValue): JsonValue | undefined
  readonly example: readonly [given: JsonValue, becomes: JsonValue]
}

export const typeTable = {
  string: { is: (value) => typeof value === 'string', convert: textOf, example: [120, '120'] },
  number: { is: isNumber, convert: toNumber, example: ['120', 120] },
  boolean: {
    is: (value) => typeof value === 'boolean',
    convert: toBoolean,
    example: ['true', true],
  },
  array: {
    is: (value) => Array.isArray(value),
    convert: (value) => parsed(value, '[', Array.isArray),
    example: ['[1,"a"]', [1, 'a']],
  },
  object: {
    is: isObject,
    convert: (value) => parsed(value, '{', isObject),
    example: ['{"a":1}', { a: 1 }],
  },
} as const satisfies Record<string, TypeRow>

export type ValueType = keyof typeof typeTable

export function isValueType(name: unknown): name is ValueType {
  return typeof name === 'string' && Object.hasOwn(typeTable, name)
}

/** The value in the type; undefined where it cannot be converted. A missing text is empty. */
export function convert(value: JsonValue | undefined, type: ValueType): JsonValue | undefined {
  if (value === undefined) return type === 'string' ? '' : undefined
  const row: TypeRow = typeTable[type]
  return row.is(value) ? value : row.convert(value)
}

/** A text as it is, any other value as its compact JSON. */
export function textOf(value: JsonValue): string {
  if (typeof value === 'string') return value
  return isNumberToken(value) ? value.token : stringifyJson(value)
}

/** Characters that the value adds to a task's data, about. */
export function charsOf(value: JsonValue): number {
  if (typeof value === 'string') return value.length
  return typeof value === 'object' && value !== null ? stringifyJson(value).length : 1
}

/** A number, or a text that is one, as a finite double; undefined for any other value. */
export function doubleOf(value: JsonValue | undefined): number | undefined {
  if (value === undefined) return undefined
  const number = isNumber(value) ? value : toNumber(value)
  const double = isNumberToken(number) ? Number(number.token) : number
  return typeof double === 'number' && Number.isFinite(double) ? double : undefined
}

/** JSON text as a value of a task's data; undefined where it is no JSON or beyond the bounds. */
export function parsedValue(text: string): JsonValue | undefined {
  try {
    return parseJson(text, value_bounds)
  } catch {
    return undefined
  }
}

/** The text of a number or of a text that is not empty; undefined for any other value. */
export function idText(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value
  return typeof value === 'number' || isNumberToken(value) ? numberText(value) : undefined
}

/** An id as exports write it: a number where its text is that of one. */
export function idValue(text: string): JsonValue {
  const number = Number(text)
  return Number.isSafeInteger(number) && String(number) === text ? number : text
}

/** The id of a process; undefined where the value cannot be one. */
export function processId(value: JsonValue | undefined): string | undefined {
  const text = idText(value)
  return text !== undefined && isName(text, id_chars_max) ? text : undefined
}

export function isAliasName(name: string): boolean {
  return isName(name, alias_chars_max) && !name.startsWith('@')
}

/**
 * A variable as definitions refer to it, `@name` or a number: its name, or the number behind a NUL,
 * which no name has.
 */
export function variableRef(written: string): string {
  return /^[1-9][0-9]{0,14}$/.test(written) ? `\0${written}` : written.replace(/^@/, '')
}

/** A name, or the number alone. */
export function variableOfRef(ref: string): string {
  return ref.replace('\0', '')
}

/** Whether a text is short enough for a ref or a node id. */
export function isIdLength(text: string): boolean {
  if (text.length <= id_chars_max) return true
  return text.length <= 2 * id_chars_max && [...text].length <= id_chars_max
}

/** A number, also with a plus or zeros before it: `$.date(%h)` is `09`. */
const number_text = /^(?:\+|(-))?([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)$/

function isNumber(value: JsonValue): boolean {
  return typeof value === 'number' || isNumberToken(value)
}

function toNumber(value: JsonValue): JsonValue | undefined {
  if (typeof value !== 'string') return undefined
  const [, sign = '', digits] = number_text.exec(value.trim()) ?? []
  return digits === undefined ? undefined : numberToken(sign + digits.replace(/^0+(?=[0-9])/, ''))
}

function toBoolean(value: JsonValue): JsonValue | undefined {
  return value === 'true' ? true : value === 'false' ? false : undefined
}

function parsed(
  value: JsonValue,
  opening: '[' | '{',
  isType: (value: JsonValue) => boolean,
): JsonValue | undefined {
  if (typeof value !== 'string' || !value.trimStart().startsWith(opening)) return undefined
  const made = parsedValue(value)
  return made !== undefined && isType(made) ? made : undefined
}
