/**
 * The characters of JSON that its readers look at, by their code.
 */

export const quote = 0x22
export const comma = 0x2c
export const minus = 0x2d
export const colon = 0x3a
export const bracket_open = 0x5b
export const bracket_close = 0x5d
export const brace_open = 0x7b
export const brace_close = 0x7d
export const backslash = 0x5c
export const space = 0x20
export const slash = 0x2f
export const digit_0 = 0x30
export const digit_9 = 0x39
