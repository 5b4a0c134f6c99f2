/**
 * The scanner: the only parser of JSON grammar (RFC 8259). It reads UTF-8 once and makes no values:
 * it checks the text, counts values and levels against the bounds, refuses lone surrogates, and
 * collects the text as `stringifyJson` would print it.
 *
 * A scan function takes the offset where something begins and returns the offset after it, or
 * throws a `format_error` with line and column. `nesting_max` bounds the recursion.
 */
import { isAscii } from 'node:buffer'
import { fault } from '../core/faults.ts'

export interface JsonBounds {
  readonly nesting_max: number
  readonly values_max: number
}

export interface Scan {
  readonly bytes: Buffer
  /** The same text, if it is all ASCII: then offsets in the text are offsets in the bytes. */
  readonly ascii: string | undefined
  readonly nesting_max: number
  readonly values_max: number
  /** Offset of the first lone surrogate in a JavaScript string, which bytes cannot hold. */
  readonly lone_at: number
  /** Values scanned so far. */
  values: number
  /** The offset after the last object, array or value, for functions that return something else. */
  end: number
  /** Of the last string or key. */
  has_escape: boolean
  key_hash: number
  /** How many of `key_hashes` the objects that are open use. */
  keys: number
  /** Whether the printed text is collected: it is `printed` up to the offset `printed_to`. */
  is_printing: boolean
  printed: string
  printed_to: number
  /**
   * Set where parsing and printing would give another text than `printed`: an object may have the
   * same key twice (the last value holds, in the place of the first), or has a key that begins with
   * a digit (objects put such keys first), or a key with an escape.
   */
  must_parse: boolean
}

export const quote = 0x22
const plus = 0x2b
export const comma = 0x2c
const minus = 0x2d
const point = 0x2e
const slash = 0x2f
const colon = 0x3a
export const backslash = 0x5c
const letter_d = 0x64
const letter_e = 0x65
export const letter_f = 0x66
const letter_u = 0x75
export const bracket_open = 0x5b
export const bracket_close = 0x5d
export const brace_open = 0x7b
export const brace_close = 0x7d

/** `bytes` must be valid UTF-8. */
export function scanOfBytes(bytes: Buffer, bounds: JsonBounds): Scan {
  return newScan(bytes, isAscii(bytes) ? bytes.toString('latin1') : undefined, bounds, Infinity)
}

export function scanOfText(text: string, bounds: JsonBounds): Scan {
  const bytes = Buffer.from(text)
  const lone_at = text.isWellFormed()
    ? Infinity
    : Buffer.byteLength(text.slice(0, text.search(/\p{Surrogate}/u)))
  return newScan(bytes, bytes.length === text.length ? text : undefined, bounds, lone_at)
}

function newScan(
  bytes: Buffer,
  ascii: string | undefined,
  { nesting_max, values_max }: JsonBounds,
  lone_at: number,
): Scan {
  return {
    bytes,
    ascii,
    nesting_max,
    values_max,
    lone_at,
    values: 0,
    end: 0,
    has_escape: false,
    key_hash: 0,
    keys: 0,
    is_printing: false,
    printed: '',
    printed_to: 0,
    must_parse: false,
  }
}

export function textBetween({ ascii, bytes }: Scan, from: number, to: number): string {
  return ascii === undefined ? bytes.toString('utf8', from, to) : ascii.slice(from, to)
}

/** One value with nothing but white space around it. */
export function scanDocument(scan: Scan): void {
  scanEnd(scan, scanValue(scan, skipSpace(scan, 0), 1))
}

export function scanEnd(scan: Scan, at: number): void {
  const end = skipSpace(scan, at)
  if (end < scan.bytes.length) throw mistake(scan, end, 'nothing may follow the value')
}

/** `level` is the value's own, counted as `nesting_max` counts. */
export function scanValue(scan: Scan, at: number, level: number): number {
  const byte = scan.bytes[at] as number
  if (byte === brace_open) return scanObject(scan, at, level)
  if (byte === bracket_open) return scanArray(scan, at, level)
  if (++scan.values > scan.values_max) throw tooManyValues(scan, at)
  if (byte === quote) return scanString(scan, at)
  return byte === minus || isDigit(byte) ? scanNumber(scan, at) : scanWord(scan, at)
}

/**
 * What `enter` and `next` return at the end of an object or array; `scan.end` is the offset after
 * it.
 */
export const closed = -1

/** From the bracket of an object or array to its first key or item, or `closed`. */
export function enter(scan: Scan, open: number, level: number, close: number): number {
  if (++scan.values > scan.values_max) throw tooManyValues(scan, open)
  if (level > scan.nesting_max) throw tooDeep(scan, open)
  const at = skipSpace(scan, open + 1)
  if (scan.bytes[at] !== close) return at
  scan.end = at + 1
  return closed
}

/** From the end of a value to the next key or item, or `closed`. */
export function next(scan: Scan, value_end: number, close: number): number {
  const at = skipSpace(scan, value_end)
  const byte = scan.bytes[at]
  if (byte === comma) return skipSpace(scan, at + 1)
  if (byte !== close) throw unclosed(scan, at, close)
  scan.end = at + 1
  return closed
}

function scanObject(scan: Scan, open: number, level: number): number {
  const first_key = scan.keys
  let at = enter(scan, open, level, brace_close)
  while (at !== closed) {
    const key_end = scanKey(scan, at)
    if (!scan.must_parse) compareKey(scan, at, first_key)
    at = next(scan, scanValue(scan, skipColon(scan, key_end), level + 1), brace_close)
  }
  scan.keys = first_key
  return scan.end
}

function scanArray(scan: Scan, open: number, level: number): number {
  let at = enter(scan, open, level, bracket_close)
  while (at !== closed) at = next(scan, scanValue(scan, at, level + 1), bracket_close)
  return scan.end
}

export function scanKey(scan: Scan, open: number): number {
  const { bytes } = scan
  if (bytes[open] !== quote) throw mistake(scan, open, 'a key in quotes was expected')
  let hash = 0
  let at = open + 1
  for (; in_string[bytes[at] as number] === 1; at++) {
    hash = (Math.imul(hash, 31) + (bytes[at] as number)) | 0
  }
  scan.key_hash = hash
  scan.has_escape = false
  return bytes[at] === quote && at < scan.lone_at ? at + 1 : scanEscapes(scan, open)
}

/** From the end of a key to its value. */
export function skipColon(scan: Scan, key_end: number): number {
  const at = skipSpace(scan, key_end)
  if (scan.bytes[at] !== colon) throw mistake(scan, at, '":" was expected')
  return skipSpace(scan, at + 1)
}

/** An object with more keys than this is parsed, so that comparing them costs little. */
const object_keys_max = 64
/** Hashes of the keys of all open objects, the innermost last. One scan runs at a time. */
const key_hashes = new Int32Array(4096)

/** Sets `must_parse` where the key requires it. Keys with the same hash count as the same. */
function compareKey(scan: Scan, open: number, first_key: number): void {
  const { keys, key_hash } = scan
  const is_full = keys === key_hashes.length || keys - first_key === object_keys_max
  if (is_full || scan.has_escape || isDigit(scan.bytes[open + 1] as number)) {
    scan.must_parse = true
    return
  }
  for (let at = first_key; at < keys; at++) if (key_hashes[at] === key_hash) scan.must_parse = true
  key_hashes[keys] = key_hash
  scan.keys = keys + 1
}

function scanString(scan: Scan, open: number): number {
  const { bytes } = scan
  let at = open + 1
  while (in_string[bytes[at] as number] === 1) at++
  scan.has_escape = false
  return bytes[at] === quote && at < scan.lone_at ? at + 1 : scanEscapes(scan, open)
}

/** 1 for a byte that needs no escape in a string. */
const in_string = new Uint8Array(256).fill(1, 0x20)
in_string[quote] = 0
in_string[backslash] = 0

/**
 * A string that holds an escape, a lone surrogate or a mistake. A surrogate that is lone in a
 * JavaScript string is refused even beside an escape that would complete the pair.
 */
function scanEscapes(scan: Scan, open: number): number {
  const { bytes } = scan
  let is_shortest = true
  let may_be_lone = false
  let at = open + 1
  for (; bytes[at] !== quote; at++) {
    if (in_string[bytes[at] as number] === 1) continue
    if (at >= bytes.length) throw mistake(scan, at, 'a string does not end')
    if (bytes[at] !== backslash) throw mistake(scan, at, 'a control character stands in a string')
    const letter = bytes[at + 1] as number
    if (letter === letter_u) {
      for (let digit = at + 2; digit < at + 6; digit++) {
        if (hex_digits[bytes[digit] as number] !== 1) throw mistake(scan, at, 'a bad \\u escape')
      }
      if (((bytes[at + 2] as number) | 0x20) === letter_d) may_be_lone = true
      at += 4
    } else if (escape_letters[letter] !== 1) throw mistake(scan, at, 'a bad escape')
    if (letter === letter_u || letter === slash) is_shortest = false
    scan.has_escape = true
    at++
  }
  const end = at + 1
  if (at > scan.lone_at) throw loneSurrogate(scan, open)
  const must_print = scan.is_printing && !scan.must_parse && !is_shortest
  if (must_print || may_be_lone) {
    const value = JSON.parse(textBetween(scan, open, end)) as string
    if (may_be_lone && !value.isWellFormed()) throw loneSurrogate(scan, open)
    if (must_print) printInstead(scan, open, end, JSON.stringify(value))
  }
  return end
}

const escape_letters = new Uint8Array(256)
for (const letter of Buffer.from('"\\/bfnrt')) escape_letters[letter] = 1
const hex_digits = new Uint8Array(256)
for (const digit of Buffer.from('0123456789abcdefABCDEF')) hex_digits[digit] = 1

export function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}

function scanNumber(scan: Scan, open: number): number {
  const { bytes } = scan
  const first = bytes[open] === minus ? open + 1 : open
  if (!isDigit(bytes[first] as number)) throw mistake(scan, open, 'a value was expected')
  let at = bytes[first] === 0x30 ? first + 1 : skipDigits(bytes, first)
  if (bytes[at] === point) at = skipDigits(bytes, at + 1, at)
  if (((bytes[at] as number) | 0x20) !== letter_e) return at
  const sign = bytes[at + 1]
  return skipDigits(bytes, sign === plus || sign === minus ? at + 2 : at + 1, at)
}

/** The offset after the digits at `first`, or `otherwise` where there is none. */
function skipDigits(bytes: Uint8Array, first: number, otherwise = first): number {
  let at = first
  while (isDigit(bytes[at] as number)) at++
  return at === first ? otherwise : at
}

const words = ['true', 'false', 'null'].map((word) => Buffer.from(word))

function scanWord(scan: Scan, at: number): number {
  for (const word of words) if (standsAt(scan.bytes, at, word)) return at + word.length
  throw mistake(scan, at, 'a value was expected')
}

export function standsAt(bytes: Uint8Array, at: number, word: Uint8Array): boolean {
  for (let n = 0; n < word.length; n++) if (bytes[at + n] !== word[n]) return false
  return true
}

export function skipSpace(scan: Scan, at: number): number {
  return (scan.bytes[at] as number) > 0x20 ? at : skipSpaces(scan, at)
}

function skipSpaces(scan: Scan, first: number): number {
  let at = first
  while (isSpace(scan.bytes[at] as number)) at++
  if (scan.is_printing && at > first) printInstead(scan, first, at, '')
  return at
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

function printInstead(scan: Scan, from: number, to: number, text: string): void {
  scan.printed += textBetween(scan, scan.printed_to, from) + text
  scan.printed_to = to
}

function tooManyValues(scan: Scan, at: number): Error {
  return mistake(scan, at, `more than ${scan.values_max} values`)
}

function tooDeep(scan: Scan, at: number): Error {
  return mistake(scan, at, `nested deeper than ${scan.nesting_max}`)
}

function unclosed(scan: Scan, at: number, close: number): Error {
  return mistake(scan, at, `"," or "${String.fromCharCode(close)}" was expected`)
}

function loneSurrogate(scan: Scan, open: number): Error {
  return mistake(scan, open, 'a lone surrogate stands in a string')
}

/** Lines and columns count from 1, columns in UTF-16 units. */
function mistake(scan: Scan, at: number, what: string): Error {
  const before = textBetween(scan, 0, at)
  const line = before.split('\n').length
  const column = before.length - before.lastIndexOf('\n')
  return fault('format_error', `not JSON: ${what}, line ${line} column ${column}`)
}
