/**
 * THE table of comparisons: every pair of `fun` and `cast` that a condition may have, with a worked
 * result each. Both sides are read as the cast has it, then compared. A pair that is not here is
 * refused when the definition is compiled.
 *
 * string compares texts, other values by their compact JSON, so numbers by token (`1.10` is not `1.1`);
 * number compares doubles; array and object compare members, whatever their order of keys, with numbers
 * by token. Order of texts is by UTF-16 code units.
 */
import { canonicalText } from '../bytes/canonical.ts'
import type { JsonValue } from '../words/model.ts'
import { convert, doubleOf, textOf, type ValueType } from './convert.ts'

/** One side, read as its cast: texts of arrays and objects are canonical. */
export type Comparand = string | number | boolean

export interface Comparison {
  readonly fun: string
  readonly cast: ValueType
  /** `param fun const` as an editor shows it. */
  readonly syntax: string
  /** A value of param and a const for which it holds, and a value for which it does not. */
  readonly example: {
    readonly constant: JsonValue
    readonly holds: JsonValue
    readonly fails: JsonValue
  }
  /** Absent for `regexp`, whose const is a pattern and no value. */
  readonly compare?: (value: Comparand, constant: Comparand) => boolean
}

// biome-ignore format: a table
export const comparisonTable: readonly Comparison[] = [
  { fun: 'eq',         cast: 'string',  syntax: 'a = text',        example: { constant: 'paid', holds: 'paid', fails: 'Paid' }, compare: equal },
  { fun: 'not_eq',     cast: 'string',  syntax: 'a ≠ text',        example: { constant: 'paid', holds: 'open', fails: 'paid' }, compare: unequal },
  { fun: 'less',       cast: 'string',  syntax: 'a < text',        example: { constant: 'b', holds: 'a', fails: 'b' }, compare: less },
  { fun: 'more',       cast: 'string',  syntax: 'a > text',        example: { constant: 'b', holds: 'c', fails: 'b' }, compare: more },
  { fun: 'less_or_eq', cast: 'string',  syntax: 'a ≤ text',        example: { constant: 'b', holds: 'b', fails: 'c' }, compare: lessOrEqual },
  { fun: 'more_or_eq', cast: 'string',  syntax: 'a ≥ text',        example: { constant: 'b', holds: 'b', fails: 'a' }, compare: moreOrEqual },
  { fun: 'regexp',     cast: 'string',  syntax: 'a ~ pattern',     example: { constant: '^[A-Z]+-[0-9]', holds: 'AB-1', fails: 'ab-1' } },
  { fun: 'eq',         cast: 'number',  syntax: 'a = 10',          example: { constant: '10', holds: '10.0', fails: 11 }, compare: equal },
  { fun: 'not_eq',     cast: 'number',  syntax: 'a ≠ 10',          example: { constant: '10', holds: 11, fails: 10 }, compare: unequal },
  { fun: 'less',       cast: 'number',  syntax: 'a < 10',          example: { constant: '10', holds: 9, fails: 10 }, compare: less },
  { fun: 'more',       cast: 'number',  syntax: 'a > 10',          example: { constant: '10', holds: '11', fails: 9 }, compare: more },
  { fun: 'less_or_eq', cast: 'number',  syntax: 'a ≤ 10',          example: { constant: '10', holds: 10, fails: 11 }, compare: lessOrEqual },
  { fun: 'more_or_eq', cast: 'number',  syntax: 'a ≥ 10',          example: { constant: '10', holds: 10, fails: 9 }, compare: moreOrEqual },
  { fun: 'regexp',     cast: 'number',  syntax: 'a ~ pattern',     example: { constant: '^[0-9]{3}$', holds: 123, fails: 12 } },
  { fun: 'eq',         cast: 'boolean', syntax: 'a = true',        example: { constant: 'true', holds: true, fails: false }, compare: equal },
  { fun: 'not_eq',     cast: 'boolean', syntax: 'a ≠ true',        example: { constant: 'true', holds: 'false', fails: true }, compare: unequal },
  { fun: 'eq',         cast: 'array',   syntax: 'a = [1,2]',       example: { constant: '[1, 2]', holds: [1, 2], fails: [2, 1] }, compare: equal },
  { fun: 'not_eq',     cast: 'array',   syntax: 'a ≠ [1,2]',       example: { constant: '[1,2]', holds: [], fails: '[1,2]' }, compare: unequal },
  { fun: 'eq',         cast: 'object',  syntax: 'a = {"x":1}',     example: { constant: '{"x":1,"y":2}', holds: { y: 2, x: 1 }, fails: { x: 1 } }, compare: equal },
  { fun: 'not_eq',     cast: 'object',  syntax: 'a ≠ {"x":1}',     example: { constant: '{"x":1}', holds: {}, fails: { x: 1 } }, compare: unequal },
]

/** A value read as a cast; undefined where it is missing or cannot be. */
export function comparandOf(value: JsonValue | undefined, cast: ValueType): Comparand | undefined {
  if (value === undefined) return undefined
  if (cast === 'string') return textOf(value)
  if (cast === 'number') return doubleOf(value)
  const converted = convert(value, cast)
  if (converted === undefined || typeof converted === 'boolean') return converted
  return canonicalText(converted)
}

function equal(value: Comparand, constant: Comparand): boolean {
  return value === constant
}

function unequal(value: Comparand, constant: Comparand): boolean {
  return value !== constant
}

function less(value: Comparand, constant: Comparand): boolean {
  return value < constant
}

function more(value: Comparand, constant: Comparand): boolean {
  return value > constant
}

function lessOrEqual(value: Comparand, constant: Comparand): boolean {
  return value <= constant
}

function moreOrEqual(value: Comparand, constant: Comparand): boolean {
  return value >= constant
}
