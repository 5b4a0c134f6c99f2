/**
 * The conversions of values, one table of types (process format: `extra_type`, `cast`). A number
 * keeps its token through every one of them; a value that is already of the type is given back as
 * it is.
 */
import { isNumberToken, isObject, numberToken, parseJson, stringifyJson } from '../codec/json.ts'
import type { JsonValue } from '../core/model.ts'
import { value_bounds } from './definition-limits.ts'

interface TypeRow {
  /** Whether a value is of this type as it stands. */
  is(value: JsonValue): boolean
  /** The value in this type; undefined where it cannot be. */
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

/** The value in the type, or undefined where it cannot be converted. */
export function convert(value: JsonValue, type: ValueType): JsonValue | undefined {
  const row: TypeRow = typeTable[type]
  return row.is(value) ? value : row.convert(value)
}

/** A value inside longer text: a text as it is, anything else as its compact JSON. */
export function textOf(value: JsonValue): string {
  if (typeof value === 'string') return value
  return isNumberToken(value) ? value.token : stringifyJson(value)
}

/** A number, or a text that is one, as a double; undefined where there is no finite one. */
export function doubleOf(value: JsonValue | undefined): number | undefined {
  if (value === undefined) return undefined
  const number = isNumber(value) ? value : toNumber(value)
  const double = isNumberToken(number) ? Number(number.token) : number
  return typeof double === 'number' && Number.isFinite(double) ? double : undefined
}

const json_number = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/

function isNumber(value: JsonValue): boolean {
  return typeof value === 'number' || isNumberToken(value)
}

function toNumber(value: JsonValue): JsonValue | undefined {
  if (typeof value !== 'string') return undefined
  const token = value.trim()
  return json_number.test(token) ? numberToken(token) : undefined
}

function toBoolean(value: JsonValue): JsonValue | undefined {
  return value === 'true' ? true : value === 'false' ? false : undefined
}

function parsed(
  value: JsonValue,
  opens: '[' | '{',
  isRight: (value: JsonValue) => boolean,
): JsonValue | undefined {
  if (typeof value !== 'string' || !value.trimStart().startsWith(opens)) return undefined
  try {
    const made = parseJson(value, value_bounds)
    return isRight(made) ? made : undefined
  } catch {
    return undefined
  }
}
