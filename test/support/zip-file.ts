/**
 * Writes zip archives for tests, also such as lie about themselves: any field of an entry's record
 * in the central directory, and of the end record, may be replaced.
 */
import { crc32, deflateRawSync } from 'node:zlib'

export interface ZipEntry {
  readonly name: string
  readonly text?: string | Buffer
  readonly stored?: true
  /** What the central directory says instead. */
  readonly says?: {
    readonly crc?: number
    readonly flags?: number
    readonly method?: number
    readonly packed?: number
    readonly size?: number
    readonly mode?: number
    readonly offset?: number
    readonly extra?: Buffer
  }
}

export interface ZipEnd {
  readonly count?: number
  readonly directory_at?: number
}

export function zipOf(entries: readonly ZipEntry[], end: ZipEnd = {}): Buffer {
  const locals: Buffer[] = []
  const records: Buffer[] = []
  let offset = 0
  for (const { name, text = '', stored, says = {} } of entries) {
    const bytes = Buffer.from(text)
    const packed = stored ? bytes : deflateRawSync(bytes)
    const named = Buffer.from(name)
    const { flags = 0x800, method = stored ? 0 : 8, extra = Buffer.alloc(0) } = says
    const shared = Buffer.alloc(26)
    shared.writeUInt16LE(20, 0)
    shared.writeUInt16LE(flags, 2)
    shared.writeUInt16LE(method, 4)
    shared.writeUInt32LE(says.crc ?? crc32(bytes), 10)
    shared.writeUInt32LE(says.packed ?? packed.length, 14)
    shared.writeUInt32LE(says.size ?? bytes.length, 18)
    shared.writeUInt16LE(named.length, 22)
    locals.push(signed(0x04034b50), shared, named, packed)
    const more = Buffer.alloc(14)
    more.writeUInt32LE(((says.mode ?? 0o100644) << 16) >>> 0, 6)
    more.writeUInt32LE(says.offset ?? offset, 10)
    shared.writeUInt16LE(0, 24)
    const record = Buffer.from(shared)
    record.writeUInt16LE(extra.length, 24)
    records.push(signed(0x02014b50), Buffer.from([20, 3]), record, more, named, extra)
    offset += 30 + named.length + packed.length
  }
  const directory = Buffer.concat(records)
  const last = Buffer.alloc(18)
  const count = end.count ?? entries.length
  last.writeUInt16LE(count, 4)
  last.writeUInt16LE(count, 6)
  last.writeUInt32LE(directory.length, 8)
  last.writeUInt32LE(end.directory_at ?? offset, 12)
  return Buffer.concat([...locals, directory, signed(0x06054b50), last])
}

function signed(signature: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(signature)
  return bytes
}

/** The zip64 extra field, with 64-bit numbers for the fields that hold ff…. */
export function zip64(...numbers: readonly bigint[]): Buffer {
  const bytes = Buffer.alloc(4 + 8 * numbers.length)
  bytes.writeUInt16LE(1, 0)
  bytes.writeUInt16LE(8 * numbers.length, 2)
  for (const [at, number] of numbers.entries()) bytes.writeBigUInt64LE(number, 4 + 8 * at)
  return bytes
}
