/**
 * The stored form of a task: a header of fixed size, some texts, and the data as JSON text.
 * Offsets, with sizes in bytes in parentheses; numbers are big-endian:
 *
 *     0  version (1)     = 2 or 3     40  index of its logic (2)
 *     1  status (1)                   42  index of its semaphor (2)
 *     2  wait (1)                     44  lengths of the seven texts, in UTF-16 units (2 each)
 *     3  flags (1)                    58  bytes of the texts (4)
 *     4  crc32 of all the rest (4)    62  at, ms; 0 is none (8, double)
 *     8  created, ms (8, double)      70  attempts (2)
 *    16  changed, ms (8, double)      72  entries of the history (2); not in version 1
 *    24  due, ms; 0 is none (8)       74  digest (32), caller, called, former (12), if flagged
 *    32  visit (4)                        texts, data
 *    36  moves (4)
 *
 * A task that remembers a trace is of version 3, which has 25 bytes more in its head, from 74 on:
 * the trace id (16), the span id (8) and the flags (1). All others are of version 2.
 *
 * The texts are conv, ref, user, node, previous node, tag, description and, up to the data, the
 * history (codec/task-history), without anything between them. Version 1 has no history and its
 * head is 2 bytes shorter; each version must be read for ever. A record whose checksum does not
 * match is `damaged`.
 */
import { crc32 } from 'node:zlib'
import type { Doc, Ref, Status, StatusDetails } from '../core/model.ts'
import type { TraceContext } from '../core/tracing.ts'
import { docOfText } from './json.ts'

/**
 * What a task waits for. `callback`: a modify, which resumes it after the logic `logic_at`.
 * `ready`: the next turn, which resumes it at `logic_at`. `reply`: the end of the task `called_id`.
 * `queue`: a task that takes it from the queue. `work`: a job outside the transaction. `nothing`:
 * its timer, if it has one.
 */
export type Wait = 'nothing' | 'callback' | 'ready' | 'reply' | 'queue' | 'work'

export interface TaskRecord {
  readonly obj_id: string
  readonly conv_id: string
  readonly ref: Ref | undefined
  readonly user_id: string | undefined
  readonly create_ms: number
  change_ms: number
  status: Status
  details: StatusDetails | undefined
  node_id: string
  node_prev_id: string
  wait: Wait
  logic_at: number
  /** When the timer of the semaphor `semaphor_at` fires; 0 without a timer. */
  due_ms: number
  semaphor_at: number
  /** Counts the nodes entered and the jobs waited for, so each wait has a number of its own. */
  visit: number
  /** Nodes entered since the task last waited. */
  moves: number
  /**
   * In a queue: when it entered. With a job: when the job may begin. Ready: when the timer of its
   * node fires, 0 without one. Otherwise 0.
   */
  at_ms: number
  /** Failed attempts of the job it waits for. */
  attempts: number
  /** The task that waits for the reply of this one; undefined once the reply is given. */
  caller_id: string | undefined
  /** The task whose reply this one waits for. */
  called_id: string | undefined
  /** The newest ended task with the same ref when this one took it, if one was kept. */
  readonly former_id: string | undefined
  /** The digest of the data at creation; undefined while `doc` is still that data. */
  digest: Buffer | undefined
  doc: Doc
  /** See codec/task-history; engine/history appends to it. */
  history: string
  history_count: number
  /** The time of the last entry, where the present transaction has made it; else -1. */
  history_ms: number
  /** The trace that the task belongs to, for as long as it lives. */
  trace: TraceContext | undefined
}

export const is_live: Readonly<Record<Status, boolean>> = {
  processing: true,
  delayed: true,
  failed: true,
  processed: false,
  canceled: false,
}
/** Goes no further by itself: it has ended, or it has failed and may be retried. */
export const is_over: Readonly<Record<Status, boolean>> = {
  processing: false,
  delayed: false,
  failed: true,
  processed: true,
  canceled: true,
}

const version = 2
const traced_version = 3
/** In the order in which records number and count them. */
export const statuses: readonly Status[] = [
  'processing',
  'delayed',
  'failed',
  'processed',
  'canceled',
]
const waits: readonly Wait[] = ['nothing', 'callback', 'ready', 'reply', 'queue', 'work']
const flag = {
  ref: 1,
  ref_number: 2,
  user: 4,
  digest: 8,
  details: 16,
  caller: 32,
  called: 64,
  former: 128,
}
const trace_id_bytes = 16
const span_id_bytes = 8
/** Of each version, from 1 on. */
const heads_bytes = [72, 74, 74 + trace_id_bytes + span_id_bytes + 1] as const
const [, head_bytes, traced_head_bytes] = heads_bytes
const digest_bytes = 32
const id_bytes = 12

/** A method of Node's buffers that its types lack. Returns the number of bytes written. */
interface TextBytes {
  utf8Write(text: string, at: number): number
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

function scratchFor(texts_at: number, texts: string, data: string): ScratchBuffer {
  // A UTF-16 unit takes at most 3 bytes, so short texts need no counting.
  const bytes_max = texts_at + 3 * (texts.length + data.length)
  if (bytes_max <= shared_scratch.bytes.length) return shared_scratch
  return newScratch(texts_at + Buffer.byteLength(texts) + Buffer.byteLength(data))
}

/** The returned bytes are valid until the next call: copy them to keep them. */
export function encodeTask(task: TaskRecord): Buffer {
  const { ref, user_id, details, digest, caller_id, called_id, former_id, trace } = task
  const data = task.doc.text
  const ref_text = ref === undefined ? '' : ref.text
  const user = user_id ?? ''
  const tag = details === undefined ? '' : details.tag
  const description = details === undefined ? '' : details.description
  const texts =
    task.conv_id +
    ref_text +
    user +
    task.node_id +
    task.node_prev_id +
    tag +
    description +
    task.history
  const digest_at = trace === undefined ? head_bytes : traced_head_bytes
  const caller_at = digest_at + (digest === undefined ? 0 : digest_bytes)
  const called_at = caller_at + (caller_id === undefined ? 0 : id_bytes)
  const former_at = called_at + (called_id === undefined ? 0 : id_bytes)
  const texts_at = former_at + (former_id === undefined ? 0 : id_bytes)
  const { bytes, view } = scratchFor(texts_at, texts, data)
  bytes[0] = trace === undefined ? version : traced_version
  bytes[1] = statuses.indexOf(task.status)
  bytes[2] = waits.indexOf(task.wait)
  bytes[3] =
    (ref === undefined ? 0 : flag.ref | (ref.is_number ? flag.ref_number : 0)) |
    (user_id === undefined ? 0 : flag.user) |
    (digest === undefined ? 0 : flag.digest) |
    (details === undefined ? 0 : flag.details) |
    (caller_id === undefined ? 0 : flag.caller) |
    (called_id === undefined ? 0 : flag.called) |
    (former_id === undefined ? 0 : flag.former)
  view.setFloat64(8, task.create_ms)
  view.setFloat64(16, task.change_ms)
  view.setFloat64(24, task.due_ms)
  view.setUint32(32, task.visit)
  view.setUint32(36, task.moves)
  view.setUint16(40, task.logic_at)
  view.setUint16(42, task.semaphor_at)
  view.setUint16(44, task.conv_id.length)
  view.setUint16(46, ref_text.length)
  view.setUint16(48, user.length)
  view.setUint16(50, task.node_id.length)
  view.setUint16(52, task.node_prev_id.length)
  view.setUint16(54, tag.length)
  view.setUint16(56, description.length)
  view.setFloat64(62, task.at_ms)
  view.setUint16(70, Math.min(task.attempts, 0xffff))
  view.setUint16(72, task.history_count)
  if (trace !== undefined) writeTrace(bytes, trace)
  if (digest !== undefined) bytes.set(digest, digest_at)
  if (caller_id !== undefined) bytes.write(caller_id, caller_at, 'hex')
  if (called_id !== undefined) bytes.write(called_id, called_at, 'hex')
  if (former_id !== undefined) bytes.write(former_id, former_at, 'hex')
  const data_at = texts_at + bytes.utf8Write(texts, texts_at)
  view.setUint32(58, data_at - texts_at)
  const record = bytes.subarray(0, data_at + bytes.utf8Write(data, data_at))
  view.setUint32(4, checksum(record))
  return record
}

/** The record, or `damaged`. Its `digest` is a view of the bytes, not a copy. */
export function decodeTask(obj_id: string, bytes: Buffer): TaskRecord | 'damaged' {
  const of_version = bytes[0] as number
  const digest_at = heads_bytes[of_version - 1]
  if (digest_at === undefined || bytes.length < digest_at) return 'damaged'
  if (bytes.readUInt32BE(4) !== checksum(bytes)) return 'damaged'
  const flags = bytes[3] as number
  const caller_at = digest_at + (flags & flag.digest ? digest_bytes : 0)
  const called_at = caller_at + (flags & flag.caller ? id_bytes : 0)
  const former_at = called_at + (flags & flag.called ? id_bytes : 0)
  const texts_at = former_at + (flags & flag.former ? id_bytes : 0)
  const data_at = texts_at + bytes.readUInt32BE(58)
  const texts = bytes.toString('utf8', texts_at, data_at)
  const ref_from = getU16(bytes, 44)
  const user_from = ref_from + getU16(bytes, 46)
  const node_from = user_from + getU16(bytes, 48)
  const prev_from = node_from + getU16(bytes, 50)
  const tag_from = prev_from + getU16(bytes, 52)
  const history_from = tag_from + getU16(bytes, 54) + getU16(bytes, 56)
  const has_ref = (flags & flag.ref) !== 0
  return {
    obj_id,
    conv_id: texts.slice(0, ref_from),
    ref: has_ref
      ? { text: texts.slice(ref_from, user_from), is_number: (flags & flag.ref_number) !== 0 }
      : undefined,
    user_id: flags & flag.user ? texts.slice(user_from, node_from) : undefined,
    create_ms: bytes.readDoubleBE(8),
    change_ms: bytes.readDoubleBE(16),
    status: statuses[bytes[1] as number] as Status,
    details: flags & flag.details ? detailsOf(bytes, texts, tag_from) : undefined,
    node_id: texts.slice(node_from, prev_from),
    node_prev_id: texts.slice(prev_from, tag_from),
    wait: waits[bytes[2] as number] as Wait,
    logic_at: getU16(bytes, 40),
    due_ms: bytes.readDoubleBE(24),
    semaphor_at: getU16(bytes, 42),
    visit: bytes.readUInt32BE(32),
    moves: bytes.readUInt32BE(36),
    at_ms: bytes.readDoubleBE(62),
    attempts: getU16(bytes, 70),
    caller_id: flags & flag.caller ? bytes.toString('hex', caller_at, called_at) : undefined,
    called_id: flags & flag.called ? bytes.toString('hex', called_at, former_at) : undefined,
    former_id: flags & flag.former ? bytes.toString('hex', former_at, texts_at) : undefined,
    digest: flags & flag.digest ? bytes.subarray(digest_at, caller_at) : undefined,
    doc: docOfText(bytes.toString('utf8', data_at)),
    history: texts.slice(history_from),
    history_count: of_version === 1 ? 0 : getU16(bytes, 72),
    history_ms: -1,
    trace: of_version === traced_version ? readTrace(bytes) : undefined,
  }
}

function writeTrace(bytes: Buffer, { trace_id, span_id, flags }: TraceContext): void {
  writeHex(bytes, head_bytes, trace_id)
  writeHex(bytes, head_bytes + trace_id_bytes, span_id)
  bytes[traced_head_bytes - 1] = flags
}

/** For so few digits, `Buffer.write` takes longer. */
function writeHex(bytes: Buffer, at: number, text: string): void {
  for (let n = 0; n < text.length; n += 2) {
    bytes[at + (n >> 1)] = (hexDigit(text, n) << 4) | hexDigit(text, n + 1)
  }
}

function hexDigit(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return (code & 15) + (code >> 6) * 9
}

function readTrace(bytes: Buffer): TraceContext {
  const span_at = head_bytes + trace_id_bytes
  return {
    trace_id: bytes.toString('hex', head_bytes, span_at),
    span_id: bytes.toString('hex', span_at, traced_head_bytes - 1),
    flags: bytes[traced_head_bytes - 1] as number,
  }
}

function detailsOf(bytes: Buffer, texts: string, tag_from: number): StatusDetails {
  const from = tag_from + getU16(bytes, 54)
  return {
    tag: texts.slice(tag_from, from),
    description: texts.slice(from, from + getU16(bytes, 56)),
  }
}

/** Without the bounds check of the Buffer method: the record is known to be long enough. */
function getU16(bytes: Buffer, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
}

/** Of all bytes except its own four. */
function checksum(bytes: Buffer): number {
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
