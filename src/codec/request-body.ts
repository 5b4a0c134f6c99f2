/**
 * The request bodies of the JSON endpoint (wire 1.1): `{"ops":[{"type":"create",…}]}` becomes raw
 * ops in one scan. Only members that an op may have become values; `data` becomes a Doc, parsed
 * when first needed. codec/op checks the ops.
 */
import { isUtf8 } from 'node:buffer'
import { fault } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import { docAt } from './json.ts'
import { stringAt, valueAt } from './json-exact.ts'
import {
  brace_close,
  brace_open,
  bracket_close,
  bracket_open,
  closed,
  enter,
  next,
  quote,
  type Scan,
  scanEnd,
  scanKey,
  scanOfBytes,
  scanValue,
  skipColon,
  skipSpace,
  standsAt,
} from './json-scanner.ts'
import { checkOpCount } from './op.ts'

export type RequestLimits = Pick<Limits, 'nesting_max' | 'body_values_max' | 'ops_max'>

/** The members that an op may have. Others are checked and dropped. */
const newOp = () => ({
  type: undefined,
  obj: undefined,
  conv_id: undefined,
  ref: undefined,
  id: undefined,
  obj_id: undefined,
  is_sync: undefined,
  node_id: undefined,
  data: undefined,
})

/** Added to an op only where they are sent. */
const alias_members = ['obj_alias', 'stage_id', 'stage_short_name', 'project_short_name'] as const

type UsualMember = keyof ReturnType<typeof newOp>
type MemberName = UsualMember | (typeof alias_members)[number]
type RawOp = Record<UsualMember, unknown> & Partial<Record<MemberName, unknown>>

/** The `timeout` member of a synchronous request, once its body is parsed. */
export interface Timeout {
  value: unknown
}

/**
 * A body to its raw ops, at least one. Throws `format_error`, which says what is wrong and where,
 * or `too_many_ops`. Unknown members are ignored, and so is `timeout` unless it is asked for; a
 * single op object counts as an array of one.
 */
export function parseRequest(body: Buffer, limits: RequestLimits, timeout?: Timeout): unknown[] {
  checkUtf8(body)
  const { nesting_max, body_values_max: values_max } = limits
  const scan = scanOfBytes(body, { nesting_max, values_max })
  const open = skipSpace(scan, 0)
  if (scan.bytes[open] !== brace_open) {
    scanEnd(scan, scanValue(scan, open, 1))
    throw fault('format_error', 'the body is not a JSON object')
  }
  const ops = readOps(scan, open, timeout)
  scanEnd(scan, scan.end)
  if (ops === undefined) throw fault('format_error', "Key 'ops' is required")
  if (!Array.isArray(ops)) throw fault('format_error', "'ops' is not an array")
  if (ops.length === 0) throw fault('format_error', "'ops' is empty")
  checkOpCount(ops.length, limits.ops_max)
  return ops
}

function readOps(scan: Scan, open: number, timeout: Timeout | undefined): unknown {
  let ops: unknown
  let at = enter(scan, open, 1, brace_close)
  while (at !== closed) {
    const key_end = scanKey(scan, at)
    const name = stringAt(scan, at, key_end)
    const value_at = skipColon(scan, key_end)
    if (name === 'ops') {
      ops = readOpsValue(scan, value_at)
      at = scan.end
    } else if (name === 'timeout' && timeout !== undefined) {
      timeout.value = valueAt(scan, value_at, 2)
      at = scan.end
    } else at = scanValue(scan, value_at, 2)
    at = next(scan, at, brace_close)
  }
  return ops
}

function readOpsValue(scan: Scan, open: number): unknown {
  if (scan.bytes[open] === brace_open) return [readOp(scan, open, 2)]
  if (scan.bytes[open] !== bracket_open) return valueAt(scan, open, 2)
  const ops: unknown[] = []
  let at = enter(scan, open, 2, bracket_close)
  while (at !== closed) {
    ops.push(scan.bytes[at] === brace_open ? readOp(scan, at, 3) : valueAt(scan, at, 3))
    at = next(scan, scan.end, bracket_close)
  }
  return ops
}

/** An object of `ops`; `scan.end` is the offset after it. */
function readOp(scan: Scan, open: number, level: number): RawOp {
  const op: RawOp = newOp()
  let at = enter(scan, open, level, brace_close)
  while (at !== closed) {
    const key_end = scanKey(scan, at)
    const name = nameAt(scan, at, key_end)
    const value_at = skipColon(scan, key_end)
    if (name === 'data' && scan.bytes[value_at] === brace_open) {
      op.data = docAt(scan, value_at, level + 1)
    } else if (name === undefined) scan.end = scanValue(scan, value_at, level + 1)
    else op[name] = memberAt(scan, value_at, level + 1)
    at = next(scan, scan.end, brace_close)
  }
  return op
}

/** The name of a member that is kept. */
function nameAt(scan: Scan, from: number, to: number): MemberName | undefined {
  if (!scan.has_escape) return wordAt(names, scan, from, to)
  const name = stringAt(scan, from, to)
  return names.flat().find(({ word }) => word === name)?.word
}

function memberAt(scan: Scan, at: number, level: number): unknown {
  if (scan.bytes[at] !== quote) return valueAt(scan, at, level)
  const end = scanValue(scan, at, level)
  scan.end = end
  return wordAt(common_values, scan, at, end) ?? stringAt(scan, at, end)
}

/** Words by their length, to be recognised without making a string. */
type Words<W> = readonly { readonly word: W; readonly bytes: Buffer }[][]

function wordsByLength<W extends string>(words: readonly W[]): Words<W> {
  const chars_max = Math.max(...words.map((word) => word.length))
  return Array.from({ length: chars_max + 1 }, (_, length) =>
    words
      .filter((word) => word.length === length)
      .map((word) => ({ word, bytes: Buffer.from(word) })),
  )
}

/** The word between two quotes, if it is one of these. */
function wordAt<W>(words: Words<W>, scan: Scan, from: number, to: number): W | undefined {
  const likely = words[to - from - 2]
  if (likely === undefined) return undefined
  for (const { word, bytes } of likely) if (standsAt(scan.bytes, from + 1, bytes)) return word
  return undefined
}

const names = wordsByLength([...(Object.keys(newOp()) as UsualMember[]), ...alias_members])
const common_values = wordsByLength(['create', 'modify', 'show', 'task'])

function checkUtf8(body: Buffer): void {
  if (!isUtf8(body)) {
    throw fault('format_error', `the body is not UTF-8, byte ${badByteOf(body) + 1}`)
  }
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) {
    throw fault('format_error', 'the body opens with a byte order mark, byte 1')
  }
}

/** The offset of the first malformed byte: a decoded U+FFFD whose bytes are another text. */
function badByteOf(body: Buffer): number {
  const text = body.toString('utf8')
  let byte = 0
  let from = 0
  for (;;) {
    const at = text.indexOf('\ufffd', from)
    byte += Buffer.byteLength(text.slice(from, at))
    if (body[byte] !== 0xef || body[byte + 1] !== 0xbf || body[byte + 2] !== 0xbd) return byte
    byte += 3
    from = at + 1
  }
}
