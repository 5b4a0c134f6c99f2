/**
 * JSON text walked over once, byte by byte, without making a value of it: where does a value end,
 * and does it stand there exactly as this program would print it?
 *
 * Every step takes the place where its value opens and answers the place behind it, or `none` where
 * the text is not JSON, is nested too deep or escapes a surrogate. It never says why: the exact
 * parser does. So what is walked over to its end is valid, and all its strings are well-formed.
 */
import {
  backslash,
  brace_close,
  brace_open,
  bracket_close,
  bracket_open,
  colon,
  comma,
  digit_0,
  digit_9,
  minus,
  quote,
  slash,
  space,
} from './json-chars.ts'

/** A look over bytes that are valid UTF-8. */
export interface Scan {
  readonly bytes: Uint8Array
  readonly nesting_max: number
  /** Values walked over so far, counted as the exact parser counts them. */
  values: number
  /** Set by every string that holds an escape. */
  has_escape: boolean
  /** Cleared by white space and by an escape that has a shorter form: see `compact`. */
  is_compact: boolean
  /** Set by what is printed otherwise only once it is parsed. */
  must_parse: boolean
  /** How much of `key_hashes` is in use by the objects that are open. */
  keys: number
}

// What must be parsed: an object with two keys alike (the last holds, in the place of the first) or
// with one that opens with a digit (such keys are printed first), a key that another spelling may
// be alike to, and the escape of what must stay one. Where two keys have one hash, or there are too
// many, they may be alike. Numbers need nothing: each keeps its token.

export const none = -1

const plus = 0x2b
const point = 0x2e
const letter_e = 0x65
export const letter_u = 0x75
/** Makes a capital of A to Z a small letter. */
const small = 0x20
const first_surrogate = 0xd800
const last_surrogate = 0xdfff

export function scanOf(bytes: Uint8Array, nesting_max: number): Scan {
  return {
    bytes,
    nesting_max,
    values: 0,
    has_escape: false,
    is_compact: true,
    must_parse: false,
    keys: 0,
  }
}

/** `level` is the value's own, counted as `nesting_max` counts. */
export function skipValue(scan: Scan, at: number, level: number): number {
  const byte = scan.bytes[at] as number
  if (byte === brace_open) return skipObject(scan, at, level)
  if (byte === bracket_open) return skipArray(scan, at, level)
  scan.values++
  if (byte === quote) return skipString(scan, at)
  return isNumberStart(byte) ? skipNumber(scan, at) : skipWord(scan, at)
}

function skipObject(scan: Scan, open: number, level: number): number {
  const { bytes } = scan
  if (level > scan.nesting_max) return none
  scan.values++
  const first_key = scan.keys
  let at = skipSpace(scan, open + 1)
  if (bytes[at] === brace_close) return at + 1
  for (;;) {
    at = skipKey(scan, at, first_key)
    if (at === none) return none
    at = skipValue(scan, at, level + 1)
    if (at === none) return none
    at = skipSpace(scan, at)
    const byte = bytes[at]
    if (byte === brace_close) break
    if (byte !== comma) return none
    at = skipSpace(scan, at + 1)
  }
  scan.keys = first_key
  return at + 1
}

function skipArray(scan: Scan, open: number, level: number): number {
  const { bytes } = scan
  if (level > scan.nesting_max) return none
  scan.values++
  let at = skipSpace(scan, open + 1)
  if (bytes[at] === bracket_close) return at + 1
  for (;;) {
    at = skipValue(scan, at, level + 1)
    if (at === none) return none
    at = skipSpace(scan, at)
    const byte = bytes[at]
    if (byte === bracket_close) return at + 1
    if (byte !== comma) return none
    at = skipSpace(scan, at + 1)
  }
}

/** The open keys of an object beyond this many are not told apart: what has more is parsed. */
const object_keys_max = 64
/** Hashes of the keys of all open objects, the innermost last. One scan runs at a time. */
const key_hashes = new Int32Array(4096)

/** A key with its colon, up to where the value opens. */
function skipKey(scan: Scan, open: number, first_key: number): number {
  const { bytes } = scan
  if (bytes[open] !== quote) return none
  let at = open + 1
  let byte = bytes[at] as number
  if (byte >= digit_0 && byte <= digit_9) scan.must_parse = true
  let hash = 0
  for (; byte !== quote; byte = bytes[++at] as number) {
    if (byte === backslash || !(byte >= space)) break
    hash = (Math.imul(hash, 31) + byte) | 0
  }
  if (byte === quote) at++
  else {
    scan.must_parse = true
    at = skipString(scan, open)
    if (at === none) return none
  }
  if (!scan.must_parse) noteKey(scan, hash, first_key)
  return skipColon(scan, at)
}

function noteKey(scan: Scan, hash: number, first_key: number): void {
  const { keys } = scan
  if (keys === key_hashes.length || keys - first_key === object_keys_max) {
    scan.must_parse = true
    return
  }
  for (let at = first_key; at < keys; at++) {
    if (key_hashes[at] === hash) scan.must_parse = true
  }
  key_hashes[keys] = hash
  scan.keys = keys + 1
}

/** A key that holds no escape, and so is what it looks like. */
export function skipPlainKey(scan: Scan, open: number): number {
  scan.has_escape = false
  const end = scan.bytes[open] === quote ? skipString(scan, open) : none
  return scan.has_escape ? none : end
}

/** Takes the colon and the white space around it. */
export function skipColon(scan: Scan, at: number): number {
  if (scan.bytes[at] === colon && (scan.bytes[at + 1] as number) > space) return at + 1
  const colon_at = skipSpace(scan, at)
  return scan.bytes[colon_at] === colon ? skipSpace(scan, colon_at + 1) : none
}

function skipString(scan: Scan, open: number): number {
  const { bytes } = scan
  let at = open + 1
  for (;;) {
    while (in_string[bytes[at] as number] === 1) at++
    const byte = bytes[at]
    if (byte === quote) return at + 1
    if (byte !== backslash) return none
    at = skipEscape(scan, at)
    if (at === none) return none
  }
}

/** 1 for a byte that stands for itself in a string. */
const in_string = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < space || byte === quote || byte === backslash ? 0 : 1,
)

/** 1 for a letter whose escape has no shorter form. */
const escape_letters = new Uint8Array(256)
for (const letter of Buffer.from('"\\bfnrt')) escape_letters[letter] = 1

function skipEscape(scan: Scan, at: number): number {
  const letter = scan.bytes[at + 1] as number
  scan.has_escape = true
  if (escape_letters[letter] === 1) return at + 2
  scan.is_compact = false
  if (letter === slash) return at + 2
  const unit = letter === letter_u ? unitAt(scan.bytes, at + 2) : none
  if (unit === none || (unit >= first_surrogate && unit <= last_surrogate)) return none
  if (unit < space || unit === quote || unit === backslash) scan.must_parse = true
  return at + 6
}

const hex_values = new Int8Array(256).fill(none)
for (const digit of '0123456789abcdefABCDEF') {
  hex_values[digit.charCodeAt(0)] = Number.parseInt(digit, 16)
}

/** What four hex digits name; `none` where one of them is no digit. */
export function unitAt(bytes: Uint8Array, at: number): number {
  const unit =
    (hexAt(bytes, at) << 12) |
    (hexAt(bytes, at + 1) << 8) |
    (hexAt(bytes, at + 2) << 4) |
    hexAt(bytes, at + 3)
  return unit < 0 ? none : unit
}

function hexAt(bytes: Uint8Array, at: number): number {
  return hex_values[bytes[at] as number] as number
}

export function isNumberStart(byte: number): boolean {
  return byte === minus || (byte >= digit_0 && byte <= digit_9)
}

function skipNumber(scan: Scan, open: number): number {
  const { bytes } = scan
  let at = bytes[open] === minus ? open + 1 : open
  at = bytes[at] === digit_0 ? at + 1 : skipDigits(bytes, at)
  if (at !== none && bytes[at] === point) at = skipDigits(bytes, at + 1)
  if (at === none || ((bytes[at] as number) | small) !== letter_e) return at
  const sign = bytes[at + 1]
  return skipDigits(bytes, sign === plus || sign === minus ? at + 2 : at + 1)
}

function skipDigits(bytes: Uint8Array, first: number): number {
  let at = first
  while ((bytes[at] as number) >= digit_0 && (bytes[at] as number) <= digit_9) at++
  return at === first ? none : at
}

const words = ['true', 'false', 'null'].map((word) => Buffer.from(word))

function skipWord(scan: Scan, at: number): number {
  for (const word of words) if (standsAt(scan.bytes, at, word)) return at + word.length
  return none
}

export function standsAt(bytes: Uint8Array, at: number, word: Uint8Array): boolean {
  for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word[i]) return false
  return true
}

export function skipSpace(scan: Scan, first: number): number {
  const { bytes } = scan
  if (!((bytes[first] as number) <= space)) return first
  scan.is_compact = false
  let at = first
  while (isSpace(bytes[at] as number)) at++
  return at
}

function isSpace(byte: number): boolean {
  return byte === space || byte === 0x0a || byte === 0x0d || byte === 0x09
}
