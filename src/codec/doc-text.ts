/**
 * Canonical text and merging on the text of a Doc, without parsing it. That text is valid, without
 * white space, and has one spelling of each key and string (codec/json), so only brackets, commas
 * and quotes are read. The result is to the byte that of parsing, merging and printing.
 */
import { hash } from 'node:crypto'
import stableStringify from 'fast-json-stable-stringify'
import type { Doc, JsonObject, JsonValue } from '../core/model.ts'
import { docOfText, docOfValue, numberToken, objectOf, setMember } from './json.ts'
import {
  backslash,
  brace_close,
  brace_open,
  bracket_close,
  bracket_open,
  comma,
  isDigit,
  letter_f,
  quote,
} from './json-scanner.ts'

/**
 * The one text of all equal values: keys sorted, numbers by their exact text (wire 1.2). A
 * NumberToken prints as a string that no caller can send.
 */
export function canonicalText(value: JsonValue): string {
  return stableStringify(value)
}

/** SHA-256 of the canonical text, 32 bytes. Two creates are the same where these are. */
export function digestOf(doc: Doc): Buffer {
  const text = sortedText(doc.text) ?? canonicalText(objectOf(doc))
  return Buffer.from(hash('sha256', text, 'binary'), 'latin1')
}

/** The canonical text; undefined where a key may hold an escape, which sorts by what it means. */
export function sortedText(text: string): string | undefined {
  return text.includes('\\') ? undefined : readValue({ text, at: 0 })
}

/** The offset up to which a text was read. */
interface Cursor {
  readonly text: string
  at: number
}

function readValue(cursor: Cursor): string {
  const first = cursor.text.charCodeAt(cursor.at)
  if (first === quote) return readString(cursor)
  if (first === brace_open) return readObject(cursor)
  return first === bracket_open ? readArray(cursor) : readScalar(cursor)
}

function readString(cursor: Cursor): string {
  const from = cursor.at
  cursor.at = stringEnd(cursor.text, from)
  return cursor.text.slice(from, cursor.at)
}

function readObject(cursor: Cursor): string {
  const { text } = cursor
  const members: { name: string; text: string }[] = []
  let last = ''
  let is_sorted = true
  if (text.charCodeAt(++cursor.at) === quote) {
    for (;;) {
      const key = readString(cursor)
      const name = key.slice(1, -1)
      cursor.at++
      members.push({ name, text: `${key}:${readValue(cursor)}` })
      if (name < last) is_sorted = false
      last = name
      if (text.charCodeAt(cursor.at) === brace_close) break
      cursor.at++
    }
  }
  cursor.at++
  if (!is_sorted) members.sort((a, b) => (a.name < b.name ? -1 : 1))
  let out = ''
  for (const member of members) out += out === '' ? member.text : `,${member.text}`
  return `{${out}}`
}

function readArray(cursor: Cursor): string {
  const { text } = cursor
  if (text.charCodeAt(++cursor.at) === bracket_close) {
    cursor.at++
    return '[]'
  }
  let out = `[${readValue(cursor)}`
  while (text.charCodeAt(cursor.at++) === comma) out += `,${readValue(cursor)}`
  return `${out}]`
}

const whole_digits = 15

/** A word or a number. A number that its double would not print the same is marked as exact. */
function readScalar(cursor: Cursor): string {
  const { text } = cursor
  const from = cursor.at
  const first = text.charCodeAt(from)
  let is_whole = isDigit(first)
  while (++cursor.at < text.length) {
    const char = text.charCodeAt(cursor.at)
    if (char === comma || char === brace_close || char === bracket_close) break
    if (!isDigit(char)) is_whole = false
  }
  const token = text.slice(from, cursor.at)
  const is_word = first >= letter_f
  if (is_word || (is_whole && token.length <= whole_digits)) return token
  return typeof numberToken(token) === 'number' ? token : `"\\ud800${token}"`
}

/** The keys of `patch` laid over those of `base`, at the top level; other keys stay. */
export function mergeDocs(base: Doc, patch: Doc): Doc {
  if (patch.text === '{}') return base
  if (base.text === '{}') return patch
  const text = mergedText(base.text, patch.text)
  return text === undefined ? mergedDoc(base, patch) : docOfText(text)
}

function mergedDoc(base: Doc, patch: Doc): Doc {
  const merged: JsonObject = { ...objectOf(base) }
  const added = objectOf(patch)
  for (const key of Object.keys(added)) setMember(merged, key, added[key] as JsonValue)
  return docOfValue(merged)
}

/** A member of an object as offsets in its text. */
interface Member {
  /** With its quotes. */
  readonly key: string
  readonly from: number
  readonly value_at: number
  /** The end of the value. */
  readonly to: number
}

/**
 * The merged text of two objects that are not empty: keys of `base` keep their place, new ones
 * follow. Undefined where a key of the patch begins with a digit, which an object may put first.
 */
export function mergedText(base: string, patch: string): string | undefined {
  if (!base.endsWith('}')) return undefined
  const added = membersOf(patch)
  let has_known = false
  for (const { key, from, value_at } of added) {
    if (isDigit(key.charCodeAt(1))) return undefined
    has_known ||= base.includes(patch.slice(from, value_at))
  }
  let out = ''
  let copied_to = 0
  // Most patches bring new keys only, which a search shows without reading the base.
  if (has_known) {
    for (const { key, value_at, to } of membersOf(base)) {
      const at = added.findIndex((member) => member.key === key)
      if (at === -1) continue
      const [member] = added.splice(at, 1) as [Member]
      out += base.slice(copied_to, value_at) + patch.slice(member.value_at, member.to)
      copied_to = to
    }
  }
  out += base.slice(copied_to, -1)
  for (const { from, to } of added) out += `,${patch.slice(from, to)}`
  return `${out}}`
}

function membersOf(text: string): Member[] {
  const members: Member[] = []
  for (let from = 1; from < text.length; ) {
    const key_end = stringEnd(text, from)
    const value_at = key_end + 1
    const to = valueEnd(text, value_at)
    members.push({ key: text.slice(from, key_end), from, value_at, to })
    from = to + 1
  }
  return members
}

/** The offset of the comma or bracket after the value at `from`. */
function valueEnd(text: string, from: number): number {
  let level = 0
  for (let at = from; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) at = stringEnd(text, at) - 1
    else if (char === brace_open || char === bracket_open) level++
    else if (level === 0 && (char === comma || char === brace_close)) return at
    else if (char === brace_close || char === bracket_close) level--
  }
  throw new Error('a Doc whose text ends within a value')
}

/** The offset after the string that opens at `open`. */
function stringEnd(text: string, open: number): number {
  for (let at = text.indexOf('"', open + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return at + 1
  }
  throw new Error('a Doc whose text ends within a string')
}
