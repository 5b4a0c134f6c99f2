/**
 * Masks secret values in the description of a failure. A description shows a value plain or quoted
 * as JSON, and may end within it. Short values are left, because they would mask too much.
 */
import { isNumberToken, isObject, numberText } from '../../codec/json.ts'
import type { JsonValue } from '../../core/model.ts'

const masked_chars_min = 8
/** So many first characters of a value are masked as the whole value is. */
const compared_chars = 16

/** The texts and numbers in a value that are long enough to mask, as descriptions show them. */
export function textsIn(value: JsonValue): string[] {
  if (typeof value === 'string') {
    return [value, JSON.stringify(value).slice(1, -1)].filter(
      (text) => text.length >= masked_chars_min,
    )
  }
  if (typeof value === 'number' || isNumberToken(value)) return textsIn(numberText(value))
  if (Array.isArray(value)) return value.flatMap(textsIn)
  return isObject(value) ? Object.values(value).flatMap(textsIn) : []
}

/** The text with `***` in place of the secret, also of its beginning where the text was cut. */
export function withoutSecret(text: string, secret: string): string {
  const start = secret.slice(0, compared_chars)
  let masked = ''
  let from = 0
  for (;;) {
    const at = text.indexOf(start, from)
    if (at === -1) return masked + text.slice(from)
    let same = start.length
    while (same < secret.length && text[at + same] === secret[same]) same++
    masked += `${text.slice(from, at)}***`
    from = at + same
  }
}
