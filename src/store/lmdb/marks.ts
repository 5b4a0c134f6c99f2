/**
 * Two small records in the data file, in the part of LMDB's two meta pages that LMDB writes only
 * when it creates the file.
 *
 *      at 512 of a meta page   `pages`: checksums of the last commit (lmdb/page-sums)
 *     at 1024 of a meta page   `commit_log`: whether the file needs it (commit-log/log-mark)
 *
 *      0  "CVMK" (4)
 *      4  crc32 of the rest of the record (4)
 *      8  generation: one more with each write (8)
 *     16  bytes of the payload (4)
 *     20  payload
 *
 * Integers are big-endian. Writes alternate between the two pages, so a torn write leaves the
 * previous record. Nothing is synced here. Any copy of the file has the records too.
 */
import { readSync, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'

const place = { pages: 512, commit_log: 1024 } as const
export type MarkKind = keyof typeof place

export interface Mark {
  readonly generation: number
  readonly payload: Buffer
}

const magic = 0x43564d4b
const head_bytes = 20
const mark_bytes = 512
export const mark_payload_max = mark_bytes - head_bytes

/** The newest valid record, if any. `file` is an open descriptor. */
export function readMark(file: number, page_bytes: number, kind: MarkKind): Mark | undefined {
  const [first, second] = [0, page_bytes].map((page_at) => {
    const bytes = Buffer.alloc(mark_bytes)
    readSync(file, bytes, 0, mark_bytes, page_at + place[kind])
    return decodeMark(bytes)
  })
  if (first === undefined || second === undefined) return first ?? second
  return first.generation > second.generation ? first : second
}

function decodeMark(bytes: Buffer): Mark | undefined {
  const end = head_bytes + bytes.readUInt32BE(16)
  if (bytes.readUInt32BE(0) !== magic || end > mark_bytes) return undefined
  if (bytes.readUInt32BE(4) !== crc32(bytes.subarray(8, end))) return undefined
  return {
    generation: Number(bytes.readBigUInt64BE(8)),
    payload: bytes.subarray(head_bytes, end),
  }
}

/** The bytes and place of the next generation of a mark. */
export function placedMark(
  page_bytes: number,
  kind: MarkKind,
  { generation, payload }: Mark,
): { readonly bytes: Buffer; readonly at: number } {
  if (payload.length > mark_payload_max) throw new RangeError(`${payload.length} bytes`)
  const bytes = Buffer.alloc(head_bytes + payload.length)
  bytes.writeUInt32BE(magic, 0)
  bytes.writeBigUInt64BE(BigInt(generation), 8)
  bytes.writeUInt32BE(payload.length, 16)
  bytes.set(payload, head_bytes)
  bytes.writeUInt32BE(crc32(bytes.subarray(8)), 4)
  return { bytes, at: (generation % 2) * page_bytes + place[kind] }
}

export function writeMark(file: number, page_bytes: number, kind: MarkKind, mark: Mark): void {
  const { bytes, at } = placedMark(page_bytes, kind, mark)
  if (writeSync(file, bytes, 0, bytes.length, at) < bytes.length)
    throw Object.assign(new Error('short write'), { code: 'ENOSPC' })
}
