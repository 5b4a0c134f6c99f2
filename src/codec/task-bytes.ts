/**
 * The stored form of a task: a head, some texts, and the data as JSON text. Sizes in bytes are in
 * parentheses, what has a size is big-endian; any other number is written 7 bits a byte, the lowest
 * first, and all its bytes but the last have the highest bit set. A time is twice the milliseconds
 * since another one, plus 1 if it is before that:
 *
 *     version (1) = 5
 *     status (bits 0 to 2), has slots (bit 3), wait (bits 4 to 6), data with a shape (bit 7)
 *     flags (2)
 *     crc32 of all the rest (4)
 *     created, since the second of its id; if flagged: changed, due, at, since created
 *     visit, logic; if flagged: moves, semaphor, attempts
 *     entries of the history
 *     lengths in UTF-16 units of conv, ref, user, tag, description, history; ref, user, tag and
 *       description if flagged
 *     node and previous node, as places in the list of nodes from 1 on, 0 for none
 *     how many nodes the list has; the length of each, 0 for an id of 24 hex digits
 *     bytes of all texts (4), if one of them is not ASCII
 *     if flagged: trace id (16), span id (8), trace flags (1); digest (32)
 *     (12 each) the nodes of 24 hex digits; if flagged: caller, called, former
 *     the texts of conv to history, those of other nodes
 *     the data; with a shape its number (2) and the values (codec/data-shape)
 *
 * What is not flagged is 0 or absent; a time of change, that of creation. A record whose checksum
 * does not match, or whose shape is unknown, is `damaged`.
 */

import type { Status } from '../core/model.ts'
import { dataOf, type Shape } from './data-shape.ts'
import { id_bytes } from './ids.ts'
import { docOfText } from './json.ts'
import { checksum, putHex, putTrace, readTrace, trace_bytes } from './record-parts.ts'
import { placeOf, statuses, type TaskRecord, type Wait, waits } from './task-record.ts'

/** Bits 0 to 7. */
const flag = {
  ref: 1,
  ref_number: 2,
  user: 4,
  digest: 8,
  details: 16,
  caller: 32,
  called: 64,
  former: 128,
} as const
const version = 5
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
const digest_bytes = 32
const numbers_at = 8
const shape_flag = 128
const slots_flag = 8
/** Of the part before the texts, at most. */
const head_bytes_max = 256
/** Of a node there. */
const node_bytes_max = 16

/** Methods of Node's buffers that its types lack. The first returns the number of bytes written. */
interface TextBytes {
  utf8Write(text: string, at: number): number
  latin1Slice(from: number, to: number): string
  utf8Slice(from: number, to: number): string
  hexSlice(from: number, to: number): string
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

function scratchFor(texts: string, data: string, nodes: number): ScratchBuffer {
  const head_max = head_bytes_max + node_bytes_max * nodes
  // A UTF-16 unit takes at most 3 bytes, so short texts need no counting.
  const bytes_max = head_max + 3 * (texts.length + data.length)
  if (bytes_max <= shared_scratch.bytes.length) return shared_scratch
  return newScratch(head_max + Buffer.byteLength(texts) + Buffer.byteLength(data))
}

const hex_id = /^[0-9a-f]{24}$/
/** Of ids of nodes, which are used again and again. */
const hex_ids = new Map<string, boolean>()
const hex_ids_max = 1_000

function isHexId(id: string): boolean {
  if (id.length !== 2 * id_bytes) return false
  let is_hex = hex_ids.get(id)
  if (is_hex === undefined) {
    if (hex_ids.size >= hex_ids_max) hex_ids.clear()
    is_hex = hex_id.test(id)
    hex_ids.set(id, is_hex)
  }
  return is_hex
}

/** What the first 8 digits of an id say. */
const msOfId = (obj_id: string): number => Number.parseInt(obj_id.slice(0, 8), 16) * 1_000

export interface PackedData {
  readonly shape_n: number
  readonly values: string
}

/**
 * `packed`: the data of the task, if they have a shape. The returned bytes are valid until the next
 * call: copy them to keep them.
 */
export function encodeTask(task: TaskRecord, packed?: PackedData): Buffer {
  const { ref, user_id, details, digest, caller_id, called_id, former_id, trace } = task
  const { create_ms, change_ms, due_ms, at_ms, moves, semaphor_at, attempts, history } = task
  const { nodes, node_id, node_prev_id } = task
  const data = packed?.values ?? task.doc.text
  const node = node_id === '' ? 0 : 1 + placeOf(nodes, node_id)
  const node_prev = node_prev_id === '' ? 0 : 1 + placeOf(nodes, node_prev_id)
  let texts =
    task.conv_id +
    (ref === undefined ? '' : ref.text) +
    (user_id ?? '') +
    (details === undefined ? '' : details.tag + details.description) +
    history
  for (const node of nodes) if (!isHexId(node)) texts += node
  const { bytes, view } = scratchFor(texts, data, nodes.length)
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
  const of_shape = packed === undefined ? 0 : shape_flag
  const of_slots = task.has_slots ? slots_flag : 0
  bytes[1] = statuses.indexOf(task.status) | of_slots | (waits.indexOf(task.wait) << 4) | of_shape
  let at = putTime(bytes, numbers_at, create_ms, msOfId(task.obj_id))
  if (change_ms !== create_ms) at = putTime(bytes, at, change_ms, create_ms)
  if (due_ms !== 0) at = putTime(bytes, at, due_ms, create_ms)
  if (at_ms !== 0) at = putTime(bytes, at, at_ms, create_ms)
  at = putNumber(bytes, at, task.visit)
  at = putNumber(bytes, at, task.logic_at)
  if (moves !== 0) at = putNumber(bytes, at, moves)
  if (semaphor_at !== 0) at = putNumber(bytes, at, semaphor_at)
  if (attempts !== 0) at = putNumber(bytes, at, Math.min(attempts, 0xffff))
  at = putNumber(bytes, at, task.history_count)
  at = putNumber(bytes, at, task.conv_id.length)
  if (ref !== undefined) at = putNumber(bytes, at, ref.text.length)
  if (user_id !== undefined) at = putNumber(bytes, at, user_id.length)
  if (details !== undefined) {
    at = putNumber(bytes, at, details.tag.length)
    at = putNumber(bytes, at, details.description.length)
  }
  at = putNumber(bytes, at, history.length)
  at = putNumber(bytes, at, node)
  at = putNumber(bytes, at, node_prev)
  at = putNumber(bytes, at, nodes.length)
  for (const node of nodes) at = putNumber(bytes, at, isHexId(node) ? 0 : node.length)
  const wide_at = at
  if (trace !== undefined) at = putTrace(bytes, at, trace)
  if (digest !== undefined) at = putBytes(bytes, at, digest)
  for (const node of nodes) if (isHexId(node)) at = putHex(bytes, at, node)
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
  if (packed !== undefined) {
    view.setUint16(at, packed.shape_n)
    at += 2
  }
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
export function decodeTask(
  obj_id: string,
  given: Buffer,
  shapeIn: (conv_id: string, n: number) => Shape | undefined = () => undefined,
): TaskRecord | 'damaged' {
  if (!isWhole(given)) return 'damaged'
  const bytes = given as Buffer & TextBytes
  const first = bytes[1] as number
  const flags = ((bytes[2] as number) << 8) | (bytes[3] as number)
  at = numbers_at
  const create_ms = getTime(bytes, msOfId(obj_id))
  const change_ms = flags & more_flag.changed ? getTime(bytes, create_ms) : create_ms
  const due_ms = flags & more_flag.due ? getTime(bytes, create_ms) : 0
  const at_ms = flags & more_flag.at ? getTime(bytes, create_ms) : 0
  const visit = getNumber(bytes)
  const logic_at = getNumber(bytes)
  const moves = flags & more_flag.moves ? getNumber(bytes) : 0
  const semaphor_at = flags & more_flag.semaphor ? getNumber(bytes) : 0
  const attempts = flags & more_flag.attempts ? getNumber(bytes) : 0
  const history_count = getNumber(bytes)
  const ref_from = getNumber(bytes)
  const user_from = ref_from + (flags & flag.ref ? getNumber(bytes) : 0)
  const tag_from = user_from + (flags & flag.user ? getNumber(bytes) : 0)
  const description_from = tag_from + (flags & flag.details ? getNumber(bytes) : 0)
  const history_from = description_from + (flags & flag.details ? getNumber(bytes) : 0)
  const nodes_from = history_from + getNumber(bytes)
  const node = getNumber(bytes)
  const node_prev = getNumber(bytes)
  const lengths: number[] = []
  let units = nodes_from
  let hex_ids = 0
  for (let left = getNumber(bytes); left > 0; left--) {
    const length = getNumber(bytes)
    lengths.push(length)
    units += length
    if (length === 0) hex_ids++
  }
  const text_bytes = flags & more_flag.wide ? get32(bytes) : units
  const trace = flags & more_flag.trace ? readTrace(bytes, take(trace_bytes)) : undefined
  const digest = flags & flag.digest ? bytes.subarray(take(digest_bytes), at) : undefined
  if (flags & flag.caller) hex_ids++
  if (flags & flag.called) hex_ids++
  if (flags & flag.former) hex_ids++
  const hex = hex_ids === 0 ? '' : bytes.hexSlice(take(hex_ids * id_bytes), at)
  const data_at = at + text_bytes
  const texts =
    flags & more_flag.wide ? bytes.utf8Slice(at, data_at) : bytes.latin1Slice(at, data_at)
  const conv_id = texts.slice(0, ref_from)
  let text: string
  if (first & shape_flag) {
    const shape = shapeIn(conv_id, bytes.readUInt16BE(data_at))
    if (shape === undefined) return 'damaged'
    text = dataOf(bytes.utf8Slice(data_at + 2, bytes.length), shape)
  } else text = bytes.utf8Slice(data_at, bytes.length)
  let [hex_at, node_at] = [0, nodes_from]
  function nextHex(): string {
    hex_at += 2 * id_bytes
    return hex.slice(hex_at - 2 * id_bytes, hex_at)
  }
  const nodes = lengths.map((length) => {
    node_at += length
    return length === 0 ? nextHex() : texts.slice(node_at - length, node_at)
  })
  return {
    obj_id,
    conv_id,
    ref:
      flags & flag.ref
        ? { text: texts.slice(ref_from, user_from), is_number: (flags & flag.ref_number) !== 0 }
        : undefined,
    user_id: flags & flag.user ? texts.slice(user_from, tag_from) : undefined,
    create_ms,
    change_ms,
    status: statuses[first & 7] as Status,
    details:
      flags & flag.details
        ? {
            tag: texts.slice(tag_from, description_from),
            description: texts.slice(description_from, history_from),
          }
        : undefined,
    nodes,
    node_id: nodes[node - 1] ?? '',
    node_prev_id: nodes[node_prev - 1] ?? '',
    wait: waits[(first >> 4) & 7] as Wait,
    logic_at,
    due_ms,
    semaphor_at,
    visit,
    moves,
    at_ms,
    has_slots: (first & slots_flag) !== 0,
    attempts,
    caller_id: flags & flag.caller ? nextHex() : undefined,
    called_id: flags & flag.called ? nextHex() : undefined,
    former_id: flags & flag.former ? nextHex() : undefined,
    digest,
    doc: docOfText(text),
    history: texts.slice(history_from, nodes_from),
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

function getTime(bytes: Buffer, since_ms: number): number {
  const twice = getNumber(bytes)
  return twice % 2 === 0 ? since_ms + twice / 2 : since_ms - (twice - 1) / 2
}

// Each of these writes at `to`, and returns where the next bytes belong.

function putNumber(bytes: Buffer, to: number, value: number): number {
  if (value < 128) {
    bytes[to] = value
    return to + 1
  }
  bytes[to] = (value & 127) | 128
  return putNumber(bytes, to + 1, value < 2 ** 32 ? value >>> 7 : Math.floor(value / 128))
}

function putTime(bytes: Buffer, to: number, ms: number, since_ms: number): number {
  const passed = Math.floor(ms) - Math.floor(since_ms)
  return putNumber(bytes, to, passed < 0 ? 1 - 2 * passed : 2 * passed)
}

function putBytes(bytes: Buffer, to: number, value: Buffer): number {
  bytes.set(value, to)
  return to + value.length
}
