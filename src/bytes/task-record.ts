/**
 * A task as it is stored: a header and the caller's data as the JSON text it is (law 9).
 *
 *     0  version (1)     = 1          40  logic it waits at (2)
 *     1  status (1)                   42  semaphor that is armed (2)
 *     2  wait (1)                     44  lengths of the seven texts, in UTF-16 units (2 each)
 *     3  flags (1)                    58  bytes of the texts (4)
 *     4  crc32 of the rest (4)        62  at, ms; 0 is none (8)
 *     8  created, ms (8, double)      70  attempts (2)
 *    16  changed, ms (8, double)      72  digest (32), caller (12), called (12), each with its flag
 *    24  due, ms; 0 is none (8)           texts, data
 *    32  visit (4)
 *    36  moves without rest (4)
 *
 * The texts are conv, ref, user, node, previous node, tag and description, joined. Readers of later
 * versions must go on reading this one; a checksum that does not agree is `damaged`, never a guess.
 */
import { crc32 } from 'node:zlib'
import type { Doc, Ref, Status, StatusDetails } from '../words/model.ts'
import { docOfText } from './json.ts'

/**
 * What a resting task rests for. `callback`: a modify, then the logic behind `logic_at`. `ready`:
 * the next turn, in which it goes on at `logic_at`. `reply`: the task `called_id`. `queue`: a task
 * that takes it. `work`: something outside the transaction. `nothing`: its timer, if it has one.
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
  /** When the armed semaphor rings; 0 where none is. */
  due_ms: number
  semaphor_at: number
  /** Nodes the task has entered, and times it came to rest for work: one number for each stay. */
  visit: number
  moves: number
  /** In a queue: since when. With work to do: not before when. 0 where neither. */
  at_ms: number
  /** Of the work it rests for, those that failed. */
  attempts: number
  /** The task that waits for this one's reply; undefined once it has been given. */
  caller_id: string | undefined
  /** The task whose reply it waits for. */
  called_id: string | undefined
  /** Of the data as first created; undefined as long as `doc` still is that data. */
  digest: Buffer | undefined
  doc: Doc
}

export const is_live: Readonly<Record<Status, boolean>> = {
  processing: true,
  delayed: true,
  failed: true,
  processed: false,
  canceled: false,
}

const version = 1
const statuses: readonly Status[] = ['processing', 'delayed', 'failed', 'processed', 'canceled']
const waits: readonly Wait[] = ['nothing', 'callback', 'ready', 'reply', 'queue', 'work']
const flag = { ref: 1, ref_number: 2, user: 4, digest: 8, details: 16, caller: 32, called: 64 }
const lengths_at = 44
const head_bytes = 72
const digest_bytes = 32
const id_bytes = 12

export function encodeTask(task: TaskRecord): Buffer {
  const texts = [
    task.conv_id,
    task.ref?.text ?? '',
    task.user_id ?? '',
    task.node_id,
    task.node_prev_id,
    task.details?.tag ?? '',
    task.details?.description ?? '',
  ]
  const joined = texts.join('')
  const caller_at = head_bytes + (task.digest === undefined ? 0 : digest_bytes)
  const called_at = caller_at + (task.caller_id === undefined ? 0 : id_bytes)
  const texts_at = called_at + (task.called_id === undefined ? 0 : id_bytes)
  const texts_bytes = Buffer.byteLength(joined)
  const out = Buffer.allocUnsafe(texts_at + texts_bytes + Buffer.byteLength(task.doc.text))
  out[0] = version
  out[1] = statuses.indexOf(task.status)
  out[2] = waits.indexOf(task.wait)
  out[3] =
    (task.ref === undefined ? 0 : flag.ref | (task.ref.is_number ? flag.ref_number : 0)) |
    (task.user_id === undefined ? 0 : flag.user) |
    (task.digest === undefined ? 0 : flag.digest) |
    (task.details === undefined ? 0 : flag.details) |
    (task.caller_id === undefined ? 0 : flag.caller) |
    (task.called_id === undefined ? 0 : flag.called)
  out.writeDoubleBE(task.create_ms, 8)
  out.writeDoubleBE(task.change_ms, 16)
  out.writeDoubleBE(task.due_ms, 24)
  out.writeUInt32BE(task.visit >>> 0, 32)
  out.writeUInt32BE(task.moves, 36)
  out.writeUInt16BE(task.logic_at, 40)
  out.writeUInt16BE(task.semaphor_at, 42)
  for (let n = 0; n < texts.length; n++) {
    out.writeUInt16BE((texts[n] as string).length, lengths_at + 2 * n)
  }
  out.writeUInt32BE(texts_bytes, 58)
  out.writeDoubleBE(task.at_ms, 62)
  out.writeUInt16BE(Math.min(task.attempts, 0xffff), 70)
  if (task.digest !== undefined) task.digest.copy(out, head_bytes)
  if (task.caller_id !== undefined) out.write(task.caller_id, caller_at, 'hex')
  if (task.called_id !== undefined) out.write(task.called_id, called_at, 'hex')
  out.write(joined, texts_at)
  out.write(task.doc.text, texts_at + texts_bytes)
  out.writeUInt32BE(checksum(out), 4)
  return out
}

/** The record, or `damaged` where the bytes are not what was written. */
export function decodeTask(obj_id: string, bytes: Buffer): TaskRecord | 'damaged' {
  if (bytes.length < head_bytes || bytes[0] !== version) return 'damaged'
  if (bytes.readUInt32BE(4) !== checksum(bytes)) return 'damaged'
  const flags = bytes[3] as number
  const caller_at = head_bytes + (flags & flag.digest ? digest_bytes : 0)
  const called_at = caller_at + (flags & flag.caller ? id_bytes : 0)
  const texts_at = called_at + (flags & flag.called ? id_bytes : 0)
  const data_at = texts_at + bytes.readUInt32BE(58)
  const joined = bytes.toString('utf8', texts_at, data_at)
  let from = 0
  let n = 0
  const text = (): string => {
    const length = bytes.readUInt16BE(lengths_at + 2 * n++)
    from += length
    return joined.slice(from - length, from)
  }
  const conv_id = text()
  const ref = text()
  const user_id = text()
  const node_id = text()
  const node_prev_id = text()
  const tag = text()
  const description = text()
  return {
    obj_id,
    conv_id,
    ref: flags & flag.ref ? { text: ref, is_number: (flags & flag.ref_number) !== 0 } : undefined,
    user_id: flags & flag.user ? user_id : undefined,
    create_ms: bytes.readDoubleBE(8),
    change_ms: bytes.readDoubleBE(16),
    status: statuses[bytes[1] as number] as Status,
    details: flags & flag.details ? { tag, description } : undefined,
    node_id,
    node_prev_id,
    wait: waits[bytes[2] as number] as Wait,
    logic_at: bytes.readUInt16BE(40),
    due_ms: bytes.readDoubleBE(24),
    semaphor_at: bytes.readUInt16BE(42),
    visit: bytes.readUInt32BE(32),
    moves: bytes.readUInt32BE(36),
    at_ms: bytes.readDoubleBE(62),
    attempts: bytes.readUInt16BE(70),
    caller_id: flags & flag.caller ? bytes.toString('hex', caller_at, called_at) : undefined,
    called_id: flags & flag.called ? bytes.toString('hex', called_at, texts_at) : undefined,
    digest: flags & flag.digest ? Buffer.from(bytes.subarray(head_bytes, caller_at)) : undefined,
    doc: docOfText(bytes.toString('utf8', data_at)),
  }
}

/** Over all bytes but the checksum's own four. */
function checksum(bytes: Buffer): number {
  return crc32(bytes.subarray(8), crc32(bytes.subarray(0, 4)))
}
