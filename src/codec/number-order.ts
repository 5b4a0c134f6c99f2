/**
 * The order of numbers by their exact decimal value: `1.10` equals `1.1`, and neighbours beyond the
 * precision of a double differ. Plain doubles are compared as doubles, other numbers digit by digit
 * without expansion, so `1e999999999` costs no more than its text.
 */
import type { NumberToken } from '../core/model.ts'
import { numberText } from './json.ts'

/** Negative where `a` is less than `b`, 0 where they are equal, else positive. */
export function compareNumbers(a: number | NumberToken, b: number | NumberToken): number {
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0
  const one = decimalOf(numberText(a))
  const other = decimalOf(numberText(b))
  if (one.sign !== other.sign) return one.sign - other.sign
  if (one.point !== other.point) return one.point < other.point ? -one.sign : one.sign
  if (one.digits === other.digits) return 0
  return one.digits < other.digits ? -one.sign : one.sign
}

/** `sign` × 0.`digits` × 10^`point`, without zeros at either end of the digits. */
interface Decimal {
  readonly sign: number
  readonly digits: string
  readonly point: number
}

const number_parts = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/

function decimalOf(token: string): Decimal {
  const [, minus, whole = '', fraction = '', exponent = '0'] = number_parts.exec(token) ?? []
  const all = whole + fraction
  const first = all.search(/[1-9]/)
  if (first === -1) return { sign: 0, digits: '', point: 0 }
  let end = all.length
  while (all[end - 1] === '0') end--
  const point = whole.length - first + Number(exponent)
  return { sign: minus === '-' ? -1 : 1, digits: all.slice(first, end), point }
}
