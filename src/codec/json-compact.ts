/**
 * JSON text without what need not be there: white space, and escapes that have a shorter form.
 * What is left is what printing the parsed value gives, where nothing of it must be parsed.
 */
import { backslash, quote, slash, space } from './json-chars.ts'
import { letter_u, unitAt } from './json-scan.ts'

/** The bytes hold one valid value whose look (codec/json-scan) said that it need not be parsed. */
export function compact(bytes: Uint8Array, from: number, to: number): string {
  // No escape is shorter than the character it names.
  const out = Buffer.allocUnsafe(to - from)
  let length = 0
  let is_string = false
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number
    if (byte === backslash) {
      const letter = bytes[at + 1] as number
      if (letter === letter_u) {
        length = putCharacter(out, length, unitAt(bytes, at + 2))
        at += 5
        continue
      }
      if (letter !== slash) out[length++] = byte
      out[length++] = letter
      at++
    } else if (is_string || byte > space) {
      out[length++] = byte
      if (byte === quote) is_string = !is_string
    }
  }
  return out.toString('utf8', 0, length)
}

/** A character of up to 16 bits in UTF-8; answers the place behind it. */
function putCharacter(out: Buffer, at: number, unit: number): number {
  if (unit < 0x80) {
    out[at] = unit
    return at + 1
  }
  if (unit < 0x800) {
    out[at] = 0xc0 | (unit >> 6)
    out[at + 1] = 0x80 | (unit & 0x3f)
    return at + 2
  }
  out[at] = 0xe0 | (unit >> 12)
  out[at + 1] = 0x80 | ((unit >> 6) & 0x3f)
  out[at + 2] = 0x80 | (unit & 0x3f)
  return at + 3
}
