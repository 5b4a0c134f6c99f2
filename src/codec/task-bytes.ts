/**
 * The stored form of a task: a head, some texts, and the data as JSON text. Sizes in bytes are in
 * parentheses, what has a size is big-endian; any other number is written 7 bits a byte, the lowest
 * first, and all its bytes but the last have the highest bit set:
 *
 *     version (1) = 4
 *     status (bits 0 to 3), wait (bits 4 to 7)
 *     flags (2)
 *     crc32 of all the rest (4)
 *     created, ms (6); if flagged: changed (6), due (7), at (7), ms
 *     visit, logic; if flagged: moves, semaphor, attempts
 *     entries of the history
 *     lengths in UTF-16 units of conv, ref, user, node, previous node, tag, description, history;
 *       ref, user, tag and description if flagged
 *     bytes of all texts (4), if one of them is not ASCII
 *     if flagged: trace id (16), span id (8), trace flags (1); digest (32); caller, called, former
 *       (12 each)
 *     the texts in the order of their lengths, without anything between them; the data
 *
 * What is not flagged is 0 or absent; a time of change, that of creation. A record whose checksum
 * does not match is `damaged`.
 */

import { crc32 } from 'node:zlib'
import type { Status } from '../core/model.ts'
import type { TraceContext } from '../core/tracing.ts'
import { docOfText } from './json.ts'
import { statuses, type TaskRecord, type Wait, waits } from './task-record.ts'

const version = 4
const more_flag = {
  changed: 1 << 8,
  due: 1 << 9,
  at: 1 << 10,
  moves: 1 << 11,
  semaphor: 1 << 12,
  attempts: 1 << 13,
  trace: 1 << 14,
  wide: 1 << 15,
} as const
const created_at = 8
const numbers_at = 14
/** Of the part before the texts, at most. */
const head_bytes_max = 256

/** Methods of Node's buffers that its types lack. The first returns the number of bytes written. */
interface TextBytes {
  utf8Write(text: string, at: number): number
  latin1Slice(from: number, to: number): string
}

interface ScratchBuffer {
  readonly bytes: Buffer & TextBytes
  readonly view: DataView
}

/** Records are encoded here, one at a time. One that may be longer gets a buffer of its own. */
const shared_scratch = newScratch(16 * 1024)

function newScratch(bytes_max: number): ScratchBuffer {
  const bytes = Buffer.allocUnsafeSlow(bytes_max) as Buffer & TextBytes
  return { bytes, view: new DataView(bytes.buffer) }
}

function scratchFor(texts: string, data: string): ScratchBuffer {
  // A UTF-16 unit takes at most 3 bytes, so short texts need no counting.
  const bytes_max = head_bytes_max + 3 * (texts.length + data.length)
  if (bytes_max <= shared_scratch.bytes.length) return shared_scratch
  return newScratch(head_bytes_max + Buffer.byteLength(texts) + Buffer.byteLength(data))
}

/** The returned bytes are valid until the next call: copy them to keep them. */
export function encodeTask(task: TaskRecord): Buffer {
  const { ref, user_id, details, digest, caller_id, called_id, former_id, trace } = task
  const { create_ms, change_ms, due_ms, at_ms, moves, semaphor_at, attempts, history } = task
  const data = task.doc.text
  const texts =
    task.conv_id +
    (ref === undefined ? '' : ref.text) +
    (user_id ?? '') +
    task.node_id +
    task.node_prev_id +
    (details === undefined ? '' : details.tag + details.description) +
    history
  const { bytes, view } = scratchFor(texts, data)
  let flags =
    (ref === undefined ? 0 : flag.ref | (ref.is_number ? flag.ref_number : 0)) |
    (user_id === undefined ? 0 : flag.user) |
    (digest === undefined ? 0 : flag.digest) |
    (details === undefined ? 0 : flag.details) |
    (caller_id === undefined ? 0 : flag.caller) |
    (called_id === undefined ? 0 : flag.called) |
    (former_id === undefined ? 0 : flag.former) |
    (change_ms === create_ms ? 0 : more_flag.changed) |
    (due_ms === 0 ? 0 : more_flag.due) |
    (at_ms === 0 ? 0 : more_flag.at) |
    (moves === 0 ? 0 : more_flag.moves) |
    (semaphor_at === 0 ? 0 : more_flag.semaphor) |
    (attempts === 0 ? 0 : more_flag.attempts) |
    (trace === undefined ? 0 : more_flag.trace)
  bytes[0] = version
  bytes[1] = statuses.indexOf(task.status) | (waits.indexOf(task.wait) << 4)
  let at = put48(view, created_at, create_ms)
  if (change_ms !== create_ms) at = put48(view, at, change_ms)
  if (due_ms !== 0) at = put56(view, at, due_ms)
  if (at_ms !== 0) at = put56(view, at, at_ms)
  at = putNumber(bytes, at, task.visit)
  at = putNumber(bytes, at, task.logic_at)
  if (moves !== 0) at = putNumber(bytes, at, moves)
  if (semaphor_at !== 0) at = putNumber(bytes, at, semaphor_at)
  if (attempts !== 0) at = putNumber(bytes, at, Math.min(attempts, 0xffff))
  at = putNumber(bytes, at, task.history_count)
  at = putNumber(bytes, at, task.conv_id.length)
  if (ref !== undefined) at = putNumber(bytes, at, ref.text.length)
  if (user_id !== undefined) at = putNumber(bytes, at, user_id.length)
  at = putNumber(bytes, at, task.node_id.length)
  at = putNumber(bytes, at, task.node_prev_id.length)
  if (details !== undefined) {
    at = putNumber(bytes, at, details.tag.length)
    at = putNumber(bytes, at, details.description.length)
  }
  at = putNumber(bytes, at, history.length)
  const wide_at = at
  if (trace !== undefined) at = putTrace(bytes, at, trace)
  if (digest !== undefined) at = putBytes(bytes, at, digest)
  if (caller_id !== undefined) at = putHex(bytes, at, caller_id)
  if (called_id !== undefined) at = putHex(bytes, at, called_id)
  if (former_id !== undefined) at = putHex(bytes, at, former_id)
  const text_bytes = bytes.utf8Write(texts, at)
  at += text_bytes
  if (text_bytes !== texts.length) {
    flags |= more_flag.wide
    bytes.copyWithin(wide_at + 4, wide_at, at)
    view.setUint32(wide_at, text_bytes)
    at += 4
  }
  view.setUint16(2, flags)
  const record = bytes.subarray(0, at + bytes.utf8Write(data, at))
  view.setUint32(4, checksum(record))
  return record
}

/** Takes a fraction of the time of `decodeTask`. */
export function isDamagedTask(bytes: Buffer): boolean {
  return !isWhole(bytes)
}

function isWhole(bytes: Buffer): boolean {
  return (
    bytes.length >= numbers_at && bytes[0] === version && bytes.readUInt32BE(4) === checksum(bytes)
  )
}

/** Where the next bytes of a record are read. */
let at = 0

/** The record, or `damaged`. Its `digest` is a view of the bytes, not a copy. */
export function decodeTask(obj_id: string, bytes: Buffer): TaskRecord | 'damaged' {
  if (!isWhole(bytes)) return 'damaged'
  const first = bytes[1] as number
  const flags = ((bytes[2] as number) << 8) | (bytes[3] as number)
  at = created_at
  const create_ms = get48(bytes)
  const change_ms = flags & more_flag.changed ? get48(bytes) : create_ms
  const due_ms = flags & more_flag.due ? get56(bytes) : 0
  const at_ms = flags & more_flag.at ? get56(bytes) : 0
  const visit = getNumber(bytes)
  const logic_at = getNumber(bytes)
  const moves = flags & more_flag.moves ? getNumber(bytes) : 0
  const semaphor_at = flags & more_flag.semaphor ? getNumber(bytes) : 0
  const attempts = flags & more_flag.attempts ? getNumber(bytes) : 0
  const history_count = getNumber(bytes)
  const ref_from = getNumber(bytes)
  const user_from = ref_from + (flags & flag.ref ? getNumber(bytes) : 0)
  const node_from = user_from + (flags & flag.user ? getNumber(bytes) : 0)
  const prev_from = node_from + getNumber(bytes)
  const tag_from = prev_from + getNumber(bytes)
  const description_from = tag_from + (flags & flag.details ? getNumber(bytes) : 0)
  const history_from = description_from + (flags & flag.details ? getNumber(bytes) : 0)
  const units = history_from + getNumber(bytes)
  const text_bytes = flags & more_flag.wide ? get32(bytes) : units
  const trace = flags & more_flag.trace ? readTrace(bytes, take(trace_bytes)) : undefined
  const digest = flags & flag.digest ? bytes.subarray(take(digest_bytes), at) : undefined
  const caller_id = flags & flag.caller ? bytes.toString('hex', take(id_bytes), at) : undefined
  const called_id = flags & flag.called ? bytes.toString('hex', take(id_bytes), at) : undefined
  const former_id = flags & flag.former ? bytes.toString('hex', take(id_bytes), at) : undefined
  const data_at = at + text_bytes
  const texts =
    flags & more_flag.wide
      ? bytes.toString('utf8', at, data_at)
      : (bytes as Buffer & TextBytes).latin1Slice(at, data_at)
  return {
    obj_id,
    conv_id: texts.slice(0, ref_from),
    ref:
      flags & flag.ref
        ? { text: texts.slice(ref_from, user_from), is_number: (flags & flag.ref_number) !== 0 }
        : undefined,
    user_id: flags & flag.user ? texts.slice(user_from, node_from) : undefined,
    create_ms,
    change_ms,
    status: statuses[first & 15] as Status,
    details:
      flags & flag.details
        ? {
            tag: texts.slice(tag_from, description_from),
            description: texts.slice(description_from, history_from),
          }
        : undefined,
    node_id: texts.slice(node_from, prev_from),
    node_prev_id: texts.slice(prev_from, tag_from),
    wait: waits[first >> 4] as Wait,
    logic_at,
    due_ms,
    semaphor_at,
    visit,
    moves,
    at_ms,
    attempts,
    caller_id,
    called_id,
    former_id,
    digest,
    doc: docOfText(bytes.toString('utf8', data_at)),
    history: texts.slice(history_from),
    history_count,
    history_ms: -1,
    trace,
  }
}

/** Takes the next bytes, so many; returns where they are. */
function take(count: number): number {
  at += count
  return at - count
}

function getNumber(bytes: Buffer): number {
  const byte = bytes[at++] as number
  return byte < 128 ? byte : (byte & 127) + getNumber(bytes) * 128
}

function get32(bytes: Buffer): number {
  const high = ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
  const low = ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number)
  at += 4
  return high * 65_536 + low
}

function get48(bytes: Buffer): number {
  const high = ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
  at += 2
  return high * 2 ** 32 + get32(bytes)
}

function get56(bytes: Buffer): number {
  const high = bytes[at++] as number
  return high * 2 ** 48 + get48(bytes)
}

// Each of these writes at `to`, and returns where the next bytes belong.

function putNumber(bytes: Buffer, to: number, value: number): number {
  if (value < 128) {
    bytes[to] = value
    return to + 1
  }
  bytes[to] = (value & 127) | 128
  return putNumber(bytes, to + 1, value >>> 7)
}

/** `setUint32` takes the lowest 32 bits. */
function put48(view: DataView, to: number, value: number): number {
  view.setUint16(to, value / 2 ** 32)
  view.setUint32(to + 2, value)
  return to + 6
}

function put56(view: DataView, to: number, value: number): number {
  view.setUint8(to, value / 2 ** 48)
  return put48(view, to + 1, value)
}

function putBytes(bytes: Buffer, to: number, value: Buffer): number {
  bytes.set(value, to)
  return to + value.length
}

/** Bits 0 to 7. */
export const flag = {
  ref: 1,
  ref_number: 2,
  user: 4,
  digest: 8,
  details: 16,
  caller: 32,
  called: 64,
  former: 128,
} as const
export const digest_bytes = 32
export const id_bytes = 12
const trace_id_bytes = 16
const span_id_bytes = 8
export const trace_bytes = trace_id_bytes + span_id_bytes + 1

export function readTrace(bytes: Buffer, at: number): TraceContext {
  const span_at = at + trace_id_bytes
  const flags_at = span_at + span_id_bytes
  return {
    trace_id: bytes.toString('hex', at, span_at),
    span_id: bytes.toString('hex', span_at, flags_at),
    flags: bytes[flags_at] as number,
  }
}

/** As the numbers of codec/task-bytes, it returns where the next bytes belong. */
export function putTrace(
  bytes: Buffer,
  to: number,
  { trace_id, span_id, flags }: TraceContext,
): number {
  const end = putHex(bytes, putHex(bytes, to, trace_id), span_id)
  bytes[end] = flags
  return end + 1
}

/** For so few digits, `Buffer.write` takes longer. */
export function putHex(bytes: Buffer, to: number, text: string): number {
  for (let n = 0; n < text.length; n += 2) {
    bytes[to + (n >> 1)] = (hexDigit(text, n) << 4) | hexDigit(text, n + 1)
  }
  return to + (text.length >> 1)
}

function hexDigit(text: string, place: number): number {
  const code = text.charCodeAt(place)
  return (code & 15) + (code >> 6) * 9
}

/** Of all bytes except its own four. */
export function checksum(bytes: Buffer): number {
  return crc32(bytes.subarray(8), headChecksum(bytes))
}

/** The crc32 of each first four bytes: most records share a few values of them. */
const head_checksums = new Map<number, number>()
const head_checksums_max = 4_096

function headChecksum(bytes: Buffer): number {
  const head = bytes.readUInt32BE(0)
  let known = head_checksums.get(head)
  if (known === undefined) {
    known = crc32(bytes.subarray(0, 4))
    if (head_checksums.size < head_checksums_max) head_checksums.set(head, known)
  }
  return known
}
