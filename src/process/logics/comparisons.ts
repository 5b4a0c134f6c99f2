/**
 * The table of comparisons: every `fun` and `cast` of a condition, with an example. Both sides are
 * read as the cast. `string` compares texts, other values by compact JSON (`1.10` is not `1.1`), in
 * order of UTF-16 units; `number` compares doubles; `array` and `object` ignore the order of keys
 * and compare numbers by exact text.
 */
import { canonicalText } from '../../codec/doc-text.ts'
import type { JsonValue } from '../../core/model.ts'
import { convert, doubleOf, textOf, type ValueType } from '../values.ts'

/** One side, read as the cast. An array or an object is its canonical text. */
export type Comparand = string | number | boolean

export type Compare = (value: Comparand, constant: Comparand) => boolean

export interface Comparison {
  readonly fun: string
  readonly cast: ValueType
  /** `param fun const` as editors show it. */
  readonly syntax: string
  /** A const, a value of param for which the comparison holds, and one for which it does not. */
  readonly example: readonly [constant: JsonValue, holds: JsonValue, fails: JsonValue]
  /** Undefined for `regexp`, whose const is a pattern and no value. */
  readonly compare: Compare | undefined
}

const compares: Readonly<Record<string, Compare>> = {
  eq: (value, constant) => value === constant,
  not_eq: (value, constant) => value !== constant,
  less: (value, constant) => value < constant,
  more: (value, constant) => value > constant,
  less_or_eq: (value, constant) => value <= constant,
  more_or_eq: (value, constant) => value >= constant,
}

export const comparisonTable: readonly Comparison[] = [
  row('eq', 'string', 'a = text', ['paid', 'paid', 'Paid']),
  row('not_eq', 'string', 'a ≠ text', ['paid', 'open', 'paid']),
  row('less', 'string', 'a < text', ['b', 'a', 'b']),
  row('more', 'string', 'a > text', ['b', 'c', 'b']),
  row('less_or_eq', 'string', 'a ≤ text', ['b', 'b', 'c']),
  row('more_or_eq', 'string', 'a ≥ text', ['b', 'b', 'a']),
  row('regexp', 'string', 'a ~ pattern', ['^[A-Z]+-[0-9]', 'AB-1', 'ab-1']),
  row('eq', 'number', 'a = 10', ['10', '10.0', 11]),
  row('not_eq', 'number', 'a ≠ 10', ['10', 11, 10]),
  row('less', 'number', 'a < 10', ['10', 9, 10]),
  row('more', 'number', 'a > 10', ['10', '11', 9]),
  row('less_or_eq', 'number', 'a ≤ 10', ['10', 10, 11]),
  row('more_or_eq', 'number', 'a ≥ 10', ['10', 10, 9]),
  row('regexp', 'number', 'a ~ pattern', ['^[0-9]{3}$', 123, 12]),
  row('eq', 'boolean', 'a = true', ['true', true, false]),
  row('not_eq', 'boolean', 'a ≠ true', ['true', 'false', true]),
  row('eq', 'array', 'a = [1,2]', ['[1, 2]', [1, 2], [2, 1]]),
  row('not_eq', 'array', 'a ≠ [1,2]', ['[1,2]', [], '[1,2]']),
  row('eq', 'object', 'a = {"x":1}', ['{"x":1,"y":2}', { y: 2, x: 1 }, { x: 1 }]),
  row('not_eq', 'object', 'a ≠ {"x":1}', ['{"x":1}', {}, { x: 1 }]),
]

function row(
  fun: string,
  cast: ValueType,
  syntax: string,
  example: Comparison['example'],
): Comparison {
  return { fun, cast, syntax, example, compare: compares[fun] }
}

/** A value read as the cast; undefined where it cannot be. A missing text is the empty text. */
export function comparandOf(value: JsonValue | undefined, cast: ValueType): Comparand | undefined {
  if (cast === 'string') return value === undefined ? '' : textOf(value)
  if (cast === 'number') return doubleOf(value)
  const converted = convert(value, cast)
  if (converted === undefined || typeof converted === 'boolean') return converted
  return canonicalText(converted)
}
