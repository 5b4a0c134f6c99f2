/**
 * Any character of Unicode, for texts at random: `fc.string({ unit: anyCharacter })`. fast-check's
 * own `unit: 'binary'` first makes a table of all of them, which takes most of a second.
 */
import fc from 'fast-check'

const [surrogates_from, surrogates, last] = [0xd800, 0x800, 0x10ffff]

export const anyCharacter = fc
  .nat({ max: last - surrogates })
  .map((n) => String.fromCodePoint(n < surrogates_from ? n : n + surrogates))
