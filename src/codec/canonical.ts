/**
 * One text for equal JSON: keys sorted, no white space, numbers by token (wire 1.2). Two creates
 * are the same create where the digests of their data agree.
 *
 * The text of a Doc is sorted as it stands, which costs half of what parsing and printing it does,
 * and comes to the same bytes.
 */
import { hash } from 'node:crypto'
import stableStringify from 'fast-json-stable-stringify'
import type { Doc, JsonValue } from '../core/model.ts'
import { objectOf } from './json.ts'
import {
  brace_close,
  brace_open,
  bracket_close,
  bracket_open,
  comma,
  digit_0,
  digit_9,
  minus,
  quote,
} from './json-chars.ts'

/** A NumberToken prints as a string no caller can send, so tokens and texts never meet. */
export function canonicalText(value: JsonValue): string {
  return stableStringify(value)
}

/** SHA-256 of the canonical text, 32 bytes. */
export function digestOf(doc: Doc): Buffer {
  const text = sortedText(doc.text) ?? canonicalText(objectOf(doc))
  return Buffer.from(hash('sha256', text, 'binary'), 'latin1')
}

/** Undefined where a key may hold an escape: it stands elsewhere by its text than by itself. */
export function sortedText(text: string): string | undefined {
  return text.includes('\\') ? undefined : readValue({ text, at: 0 })
}

/** Where the reading of a text stands. */
interface Reader {
  readonly text: string
  at: number
}

function readValue(reader: Reader): string {
  const first = reader.text.charCodeAt(reader.at)
  if (first === quote) return readString(reader)
  if (first === brace_open) return readObject(reader)
  return first === bracket_open ? readArray(reader) : readScalar(reader, first)
}

function readString(reader: Reader): string {
  const from = reader.at
  const end = reader.text.indexOf('"', from + 1)
  if (end === -1) throw new Error('a text that is no data')
  reader.at = end + 1
  return reader.text.slice(from, end + 1)
}

function readObject(reader: Reader): string {
  const { text } = reader
  if (text.charCodeAt(++reader.at) === brace_close) return readEnd(reader, '{}')
  const members: { name: string; text: string }[] = []
  let last = ''
  let is_sorted = true
  for (;;) {
    const key = readString(reader)
    const name = key.slice(1, -1)
    reader.at++
    members.push({ name, text: `${key}:${readValue(reader)}` })
    if (name < last) is_sorted = false
    last = name
    if (text.charCodeAt(reader.at) === brace_close) break
    reader.at++
  }
  if (!is_sorted) members.sort((a, b) => (a.name < b.name ? -1 : 1))
  let out = ''
  for (const member of members) out += out === '' ? `{${member.text}` : `,${member.text}`
  return readEnd(reader, `${out}}`)
}

function readArray(reader: Reader): string {
  const { text } = reader
  if (text.charCodeAt(++reader.at) === bracket_close) return readEnd(reader, '[]')
  let out = `[${readValue(reader)}`
  while (text.charCodeAt(reader.at) === comma) {
    reader.at++
    out += `,${readValue(reader)}`
  }
  return readEnd(reader, `${out}]`)
}

function readEnd(reader: Reader, out: string): string {
  reader.at++
  return out
}

const exact_digits = 15

/** A word or a number; one that no double prints again is told from the text of its digits. */
function readScalar(reader: Reader, first: number): string {
  const { text } = reader
  const from = reader.at
  let is_whole = first !== minus
  while (++reader.at < text.length) {
    const char = text.charCodeAt(reader.at)
    if (char === comma || char === brace_close || char === bracket_close) break
    if (char < digit_0 || char > digit_9) is_whole = false
  }
  const token = text.slice(from, reader.at)
  if (first > digit_9 || (is_whole && token.length <= exact_digits)) return token
  return String(Number(token)) === token ? token : `"\\ud800${token}"`
}
