/**
 * A set of characters as RE2 reads it: `[a-z]`, `\d`, `.`, or a character in any case. Answers for
 * the first 2,048 code points are cached; each other code point costs a call of RE2 and more steps.
 */
import { RE2JS } from 're2js'

export type CharacterSet = (code: number) => boolean

const known_codes = 0x800
/** Steps of matching a code point whose answer is not kept. */
export const unknown_code_steps = 10

export function isKnownCode(code: number): boolean {
  return code < known_codes
}

/** Compiles the source of one character; throws what the linear engine does at a mistake. */
export function characterSet(source: string, flags: string): CharacterSet {
  const pattern = RE2JS.compile(`(?${flags}:${source})`)
  const known = new Int8Array(known_codes)
  const ask = (code: number): boolean => pattern.test(String.fromCodePoint(code))
  return (code) => {
    if (!isKnownCode(code)) return ask(code)
    if (known[code] === 0) known[code] = ask(code) ? 1 : -1
    return known[code] === 1
  }
}
