/** Parts of the records of tasks: trace contexts and ids from hex digits, and the checksum. */
import { crc32 } from 'node:zlib'
import type { TraceContext } from '../core/tracing.ts'

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
