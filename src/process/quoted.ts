/**
 * How a mistake or a failure quotes what it complains about: in JSON quotes, cut at 128 characters,
 * never throwing whatever the value is.
 */
import { isNumberToken, isObject, numberText } from '../codec/json.ts'

const quoted_chars_max = 128

/** A text in quotes; for other values what they are. */
export function quoted(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(truncated(value))
  if (value === undefined) return 'nothing'
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number' || isNumberToken(value)) return truncated(numberText(value))
  if (Array.isArray(value)) return 'an array'
  return isObject(value) ? 'an object' : typeof value
}

/** The first 128 code points of a text. */
export function truncated(text: string): string {
  if (text.length <= quoted_chars_max) return text
  const points = [...text.slice(0, 2 * quoted_chars_max + 2)]
  if (points.length <= quoted_chars_max) return text
  return `${points.slice(0, quoted_chars_max).join('')}…`
}
