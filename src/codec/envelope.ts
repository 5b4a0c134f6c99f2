/**
 * The fast path of a request: the common envelope, `{"ops":[{"type":"create",…}]}`, read in one
 * pass over the bytes. The `data` of an op stays the text it came as, a Doc that is parsed when
 * somebody asks.
 *
 * What is read here is read as the plain path does (codec/wire, a property test). Whatever is less
 * common, wrong or over a bound is not read here at all: the plain path reads it, or says what is
 * wrong and where.
 */
import { isAscii } from 'node:buffer'
import type { Limits } from '../core/limits.ts'
import type { Doc, JsonObject, JsonValue } from '../core/model.ts'
import { docOfText, docOfValue, numberToken, parseStored } from './json.ts'
import { brace_close, brace_open, bracket_close, bracket_open, comma, quote } from './json-chars.ts'
import { compact } from './json-compact.ts'
import {
  isNumberStart,
  none,
  type Scan,
  scanOf,
  skipColon,
  skipPlainKey,
  skipSpace,
  skipValue,
  standsAt,
} from './json-scan.ts'

export type RequestLimits = Pick<Limits, 'nesting_max' | 'body_values_max' | 'ops_max'>

/** The members of an op that anybody asks for; the others are skipped. */
interface RawOp {
  type: unknown
  obj: unknown
  conv_id: unknown
  ref: unknown
  id: unknown
  obj_id: unknown
  is_sync: unknown
  node_id: unknown
  data: unknown
}

interface Reader {
  readonly scan: Scan
  readonly bytes: Buffer
  /** The whole body, where a place in it is one in the bytes as well. */
  readonly text: string | undefined
  readonly limits: RequestLimits
  ops: RawOp[] | undefined
}

/** The levels of the body, `ops` and an op. */
const op_level = 3

/** The raw ops of a body in UTF-8, at least one; undefined where the plain path is to read it. */
export function readEnvelope(body: Buffer, limits: RequestLimits): unknown[] | undefined {
  if (limits.nesting_max < op_level) return undefined
  const scan = scanOf(body, limits.nesting_max)
  const text = isAscii(body) ? body.toString('latin1') : undefined
  const reader: Reader = { scan, bytes: body, text, limits, ops: undefined }
  const end = readBody(reader, skipSpace(scan, 0))
  if (end === none || skipSpace(scan, end) !== body.length || isOver(reader)) return undefined
  return reader.ops
}

function readBody(reader: Reader, open: number): number {
  const { scan, bytes } = reader
  if (bytes[open] !== brace_open) return none
  scan.values++
  let at = skipSpace(scan, open + 1)
  for (;;) {
    const key_end = skipPlainKey(scan, at)
    if (key_end === none) return none
    const value_at = skipColon(scan, key_end)
    if (value_at === none) return none
    const is_ops = standsAt(bytes, at, ops_key)
    at = is_ops ? readOps(reader, value_at) : skipValue(scan, value_at, 2)
    if (at === none) return none
    at = skipSpace(scan, at)
    const byte = bytes[at]
    if (byte === brace_close) return at + 1
    if (byte !== comma) return none
    at = skipSpace(scan, at + 1)
  }
}

const ops_key = Buffer.from('"ops"')

/** A list of ops, or one alone. */
function readOps(reader: Reader, open: number): number {
  const { scan, bytes } = reader
  if (reader.ops !== undefined) return none
  reader.ops = []
  if (bytes[open] === brace_open) return readOp(reader, reader.ops, open)
  if (bytes[open] !== bracket_open) return none
  scan.values++
  let at = skipSpace(scan, open + 1)
  for (;;) {
    at = readOp(reader, reader.ops, at)
    if (at === none) return none
    at = skipSpace(scan, at)
    const byte = bytes[at]
    if (byte === bracket_close) return at + 1
    if (byte !== comma) return none
    at = skipSpace(scan, at + 1)
  }
}

function readOp(reader: Reader, ops: RawOp[], open: number): number {
  const { scan, bytes } = reader
  if (bytes[open] !== brace_open || ops.length === reader.limits.ops_max) return none
  scan.values++
  const op = newOp()
  ops.push(op)
  let at = skipSpace(scan, open + 1)
  if (bytes[at] === brace_close) return at + 1
  for (;;) {
    const key_end = skipPlainKey(scan, at)
    if (key_end === none) return none
    const value_at = skipColon(scan, key_end)
    if (value_at === none) return none
    const name = wordBetween(names, bytes, at + 1, key_end - 1)
    at =
      name === undefined
        ? skipValue(scan, value_at, op_level + 1)
        : readMember(reader, op, name, value_at)
    if (at === none) return none
    at = skipSpace(scan, at)
    const byte = bytes[at]
    if (byte === brace_close) return at + 1
    if (byte !== comma) return none
    at = skipSpace(scan, at + 1)
  }
}

function newOp(): RawOp {
  return {
    type: undefined,
    obj: undefined,
    conv_id: undefined,
    ref: undefined,
    id: undefined,
    obj_id: undefined,
    is_sync: undefined,
    node_id: undefined,
    data: undefined,
  }
}

/** The value of a member into the op; the last of two is the one that stays. */
function readMember(reader: Reader, op: RawOp, name: keyof RawOp, open: number): number {
  const { scan, bytes } = reader
  scan.is_compact = true
  scan.must_parse = false
  const end = skipValue(scan, open, op_level + 1)
  // Nothing is made of more values than there may be.
  if (end === none || isOver(reader)) return none
  if (name === 'data' && bytes[open] === brace_open) op.data = docBetween(reader, open, end)
  else op[name] = valueBetween(reader, open, end)
  return end
}

function docBetween(reader: Reader, from: number, to: number): Doc {
  const { scan, bytes } = reader
  if (scan.must_parse) {
    return docOfValue(parseStored(textBetween(reader, from, to)) as JsonObject)
  }
  return docOfText(scan.is_compact ? textBetween(reader, from, to) : compact(bytes, from, to))
}

function valueBetween(reader: Reader, from: number, to: number): JsonValue {
  const byte = reader.bytes[from] as number
  if (byte === quote && !reader.scan.has_escape) {
    const known = wordBetween(known_words, reader.bytes, from + 1, to - 1)
    return known ?? textBetween(reader, from + 1, to - 1)
  }
  const text = textBetween(reader, from, to)
  if (byte === brace_open || byte === bracket_open) return parseStored(text)
  return isNumberStart(byte) ? numberToken(text) : (JSON.parse(text) as JsonValue)
}

function textBetween({ text, bytes }: Reader, from: number, to: number): string {
  return text === undefined ? bytes.toString('utf8', from, to) : text.slice(from, to)
}

function isOver({ scan, limits }: Reader): boolean {
  return scan.values > limits.body_values_max
}

/** Words by their length, to be told by their bytes. */
type Words<W> = readonly { readonly word: W; readonly bytes: Buffer }[][]

function wordsByLength<W extends string>(words: readonly W[]): Words<W> {
  return Array.from({ length: 8 }, (_, length) =>
    words
      .filter((word) => word.length === length)
      .map((word) => ({ word, bytes: Buffer.from(word) })),
  )
}

function wordBetween<W>(words: Words<W>, bytes: Buffer, from: number, to: number): W | undefined {
  const likely = words[to - from]
  if (likely === undefined) return undefined
  for (const one of likely) if (standsAt(bytes, from, one.bytes)) return one.word
  return undefined
}

const names = wordsByLength<keyof RawOp>([
  'type',
  'obj',
  'conv_id',
  'ref',
  'id',
  'obj_id',
  'is_sync',
  'node_id',
  'data',
])

/** What stands in nearly every op, and need not be made anew. */
const known_words = wordsByLength(['create', 'modify', 'show', 'task'])
