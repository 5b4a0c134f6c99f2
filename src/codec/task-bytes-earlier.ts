/**
 * The stored form of a task in versions 1 to 3, which are only read: a head of fixed size, some
 * texts, and the data as JSON text. Offsets, with sizes in bytes in parentheses; big-endian:
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
 * history, without anything between them. Version 1 has no history and its head is 2 bytes shorter.
 */
import type { Status, StatusDetails } from '../core/model.ts'
import { docOfText } from './json.ts'
import { checksum, digest_bytes, flag, id_bytes, readTrace, trace_bytes } from './task-parts.ts'
import { statuses, type TaskRecord, type Wait, waits } from './task-record.ts'

const traced_version = 3
const head_bytes = 74
/** Of each version, from 1 on. */
const heads_bytes = [72, head_bytes, head_bytes + trace_bytes] as const

/** As `decodeTask` of codec/task-bytes. */
export function decodeEarlier(obj_id: string, bytes: Buffer): TaskRecord | 'damaged' {
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
    trace: of_version === traced_version ? readTrace(bytes, head_bytes) : undefined,
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
