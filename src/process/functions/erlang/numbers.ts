/**
 * Numbers of Erlang: exact integers of up to 4,096 bits, and doubles. The text distinguishes them:
 * 1 is an integer, 1.0 and 1e3 are floats. A whole float prints with `.0`.
 */
import { isNumberToken, numberText, numberToken } from '../../../codec/json.ts'
import type { NumberToken } from '../../../core/model.ts'

type JsonNumber = number | NumberToken

const integer_bits_max = 4_096
/** No integer within the bits is longer. */
const integer_chars_max = 1_300

const integer_text = /^-?[0-9]+$/

export function isInteger(term: JsonNumber): boolean {
  return Number.isSafeInteger(term) || integer_text.test(numberText(term))
}

/** An integer as a bigint, a float as a double; undefined where it is beyond what these hold. */
export function numericOf(term: unknown): bigint | number | undefined {
  if (typeof term !== 'number' && !isNumberToken(term)) return undefined
  const text = numberText(term)
  if (integer_text.test(text)) return bigintOf(text)
  const double = Number(text)
  return Number.isFinite(double) ? double : undefined
}

/** The number as a term; undefined where it is not finite or has too many bits. */
export function termOf(number: bigint | number): JsonNumber | undefined {
  if (typeof number === 'bigint') {
    return BigInt.asIntN(integer_bits_max, number) === number
      ? numberToken(String(number))
      : undefined
  }
  if (!Number.isFinite(number)) return undefined
  const text = String(number)
  return integer_text.test(text) ? numberToken(`${text}.0`) : number
}

/** Decimal digits to a bigint; undefined where they are too many. */
export function bigintOf(digits: string): bigint | undefined {
  return digits.length <= integer_chars_max ? BigInt(digits) : undefined
}

/** Shifted to the left, or to the right by a negative number; undefined where it is too long. */
export function shifted(integer: bigint, bits: bigint): bigint | undefined {
  if (bits < -integer_bits_max) return integer < 0n ? -1n : 0n
  if (bits > integer_bits_max) return integer === 0n ? 0n : undefined
  return integer << bits
}

/** By value, exactly also between an integer and a float; then, if `is_exact`, by kind. */
export function compareNumbers(left: JsonNumber, right: JsonNumber, is_exact: boolean): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right
  const one = numericOf(left) ?? Number(numberText(left))
  const other = numericOf(right) ?? Number(numberText(right))
  if (one < other) return -1
  if (one > other) return 1
  return is_exact ? Number(isInteger(right)) - Number(isInteger(left)) : 0
}
