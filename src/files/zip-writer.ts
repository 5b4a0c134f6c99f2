/**
 * Writes text files into a zip archive in memory, which `zip.ts` reads back within its bounds: an
 * entry that would grow more than an import takes is stored as it is. Node compresses; what is left
 * are three records of the format, too few for a package.
 */
import { promisify } from 'node:util'
import { crc32, deflateRaw } from 'node:zlib'
import { export_ratio_max } from '../process/definition-limits.ts'

export interface TextFile {
  /** A path with `/`. */
  readonly name: string
  readonly text: string
}

const deflated = promisify<Buffer, Buffer>(deflateRaw)

const local_signature = 0x04034b50
const central_signature = 0x02014b50
const end_signature = 0x06054b50
const format_version = 20
const utf8_flag = 0x0800
const method_deflated = 8
const method_stored = 0
/** Of a record without the texts behind it. */
const local_bytes = 30
const central_bytes = 46
const end_bytes = 22
const bytes_max = 0xffffffff
const entries_max = 0xffff

/** Throws a RangeError for more than the format holds without extensions. */
export async function zipOf(files: readonly TextFile[], now_ms: number): Promise<Buffer> {
  if (files.length > entries_max) throw new RangeError('too many files for a zip archive')
  const parts: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const { name, text } of files) {
    const [path, bytes] = [Buffer.from(name), Buffer.from(text)]
    const packed = await deflated(bytes)
    const is_packed = packed.length > 0 && bytes.length / packed.length <= export_ratio_max
    const content = is_packed ? packed : bytes
    const head = entryHead(is_packed ? method_deflated : method_stored, now_ms, {
      ...{ crc: crc32(bytes), packed_bytes: content.length },
      ...{ bytes: bytes.length, path_bytes: path.length },
    })
    const local = Buffer.alloc(local_bytes)
    local.writeUInt32LE(local_signature, 0)
    head.copy(local, 4)
    const listed = Buffer.alloc(central_bytes)
    listed.writeUInt32LE(central_signature, 0)
    listed.writeUInt16LE(format_version, 4)
    head.copy(listed, 6)
    listed.writeUInt32LE(offset, 42)
    parts.push(local, path, content)
    central.push(listed, path)
    offset += local.length + path.length + content.length
    if (offset > bytes_max) throw new RangeError('too many bytes for a zip archive')
  }
  const list = Buffer.concat(central)
  const end = Buffer.alloc(end_bytes)
  end.writeUInt32LE(end_signature, 0)
  end.writeUInt16LE(files.length, 8)
  end.writeUInt16LE(files.length, 10)
  end.writeUInt32LE(list.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, list, end])
}

interface Sizes {
  readonly crc: number
  readonly packed_bytes: number
  readonly bytes: number
  readonly path_bytes: number
}

/** What both records of an entry have in common, from its version on. */
function entryHead(method: number, now_ms: number, sizes: Sizes): Buffer {
  const head = Buffer.alloc(26)
  const { time, date } = dosTime(now_ms)
  head.writeUInt16LE(format_version, 0)
  head.writeUInt16LE(utf8_flag, 2)
  head.writeUInt16LE(method, 4)
  head.writeUInt16LE(time, 6)
  head.writeUInt16LE(date, 8)
  head.writeUInt32LE(sizes.crc, 10)
  head.writeUInt32LE(sizes.packed_bytes, 14)
  head.writeUInt32LE(sizes.bytes, 18)
  head.writeUInt16LE(sizes.path_bytes, 22)
  return head
}

/** In UTC; the format counts from 1980, in steps of two seconds. */
function dosTime(now_ms: number): { readonly time: number; readonly date: number } {
  const at = new Date(now_ms)
  const years = Math.min(127, Math.max(0, at.getUTCFullYear() - 1980))
  const date = (years << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate()
  const seconds = at.getUTCSeconds() >> 1
  return { time: (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | seconds, date }
}
