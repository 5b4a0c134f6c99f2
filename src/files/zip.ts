/**
 * Reads the JSON files of an untrusted zip archive; writes nothing to disk. Bounded before and
 * during unpacking: the number of entries, the bytes of each and of all, their growth, and
 * overlaps. Names that lead out of the archive, links, encrypted entries and wrong checksums are
 * mistakes. A nested archive is read as a folder, down to `export_zips_max` levels, within the same
 * bounds.
 */
import { crc32 } from 'node:zlib'
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl'
import { isFault } from '../core/faults.ts'
import {
  export_bytes_max,
  export_file_bytes_max,
  export_ratio_max,
  export_zips_max,
} from '../process/definition-limits.ts'
import { quoted, truncated } from '../process/report.ts'
import {
  addText,
  type Collected,
  countBytes,
  countEntries,
  isIgnored,
  tooMuch,
} from './collected.ts'

/** Adds the files of an archive, or mistakes. Throws beyond a bound. */
export async function addZip(name: string, bytes: Buffer, to: Collected, depth = 1): Promise<void> {
  if (depth > export_zips_max) throw tooMuch(name, `${export_zips_max} archives in one another`)
  let zip: ZipFile | undefined
  try {
    zip = await fromBufferPromise(bytes, { lazyEntries: true, strictFileNames: true })
    countEntries(name, zip.entryCount, to)
    const wanted = await wantedEntries(zip, name, to)
    for (const entry of wanted) {
      const path = `${name}/${nameOf(entry)}`
      const unpacked = await unpackedEntry(zip, entry, path, to)
      if (unpacked === undefined) continue
      if (is_json.test(path)) addText(path, unpacked, true, to)
      else {
        countBytes(path, unpacked.length, to)
        await addZip(path, unpacked, to, depth + 1)
      }
    }
  } catch (error) {
    pushError(name, error, to)
  } finally {
    zip?.close()
  }
}

/** An error of yauzl or zlib is a mistake of the archive. */
function pushError(name: string, error: unknown, { mistakes }: Collected): void {
  if (isFault(error) || !(error instanceof Error)) throw error
  mistakes.push(`${name}: ${truncated(error.message)}`)
}

/** The entries to read, in the order of their names; each refused one is a mistake. */
async function wantedEntries(zip: ZipFile, name: string, to: Collected): Promise<Entry[]> {
  const entries: Entry[] = []
  const names = new Set<string>()
  const mistakes_before = to.mistakes.length
  let bytes = 0
  for await (const entry of zip.eachEntry()) {
    const { fileName } = entry
    const why = whyRefused(entry) ?? (names.has(fileName) ? 'is there twice' : undefined)
    names.add(fileName)
    if (why !== undefined) to.mistakes.push(`${name}: ${quoted(fileName)} ${why}`)
    entries.push(entry)
    if (why !== undefined || !isWanted(fileName)) continue
    bytes += entry.uncompressedSize
    if (to.bytes + bytes > export_bytes_max) throw tooMuch(name, `${export_bytes_max} bytes`)
  }
  const other = firstOverlap(entries)
  if (other !== undefined) {
    to.mistakes.push(`${name}: ${quoted(other.fileName)} overlaps another entry`)
  }
  if (to.mistakes.length > mistakes_before) return []
  return entries
    .filter(({ fileName }) => isWanted(fileName))
    .sort((one, next) => (one.fileName < next.fileName ? -1 : 1))
}

const is_json = /\.json$/i

function isWanted(path: string): boolean {
  return /\.(json|zip)$/i.test(path) && !path.split('/').some(isIgnored)
}

/** The public service writes the UTF-8 bytes of a name as if they were Latin-1. */
function nameOf({ fileName }: Entry): string {
  if (!/^[\0-\xff]*$/.test(fileName)) return fileName
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(fileName, 'latin1'))
  } catch {
    return fileName
  }
}

const name_chars_max = 1_000
const file_type_mask = 0o170000
const regular_file = 0o100000
const folder = 0o040000
/** A small file of one repeated letter grows more than any export, and is harmless. */
const small_bytes = 64 * 1024

function whyRefused(entry: Entry): string | undefined {
  const { uncompressedSize, compressedSize } = entry
  const fileName = nameOf(entry)
  if (/\p{Cc}/u.test(fileName)) return 'has a control character in its name'
  if (fileName.length > name_chars_max) return `has a name over ${name_chars_max} characters`
  const file_type = (entry.externalFileAttributes >>> 16) & file_type_mask
  if (file_type !== 0 && file_type !== regular_file && file_type !== folder) {
    return 'is a link or a special file'
  }
  if (!isWanted(fileName)) return undefined
  if (entry.isEncrypted()) return 'is encrypted'
  if (uncompressedSize > export_file_bytes_max) return `is over ${export_file_bytes_max} bytes`
  const grows = uncompressedSize / Math.max(1, compressedSize)
  if (uncompressedSize > small_bytes && grows > export_ratio_max) {
    return `grows more than ${export_ratio_max} times`
  }
  return undefined
}

const local_header_bytes = 30

/** The first entry that shares bytes with another, by which a small archive unpacks without end. */
function firstOverlap(entries: readonly Entry[]): Entry | undefined {
  const ordered = [...entries].sort(
    (one, other) => one.relativeOffsetOfLocalHeader - other.relativeOffsetOfLocalHeader,
  )
  let end = 0
  return ordered.find((entry) => {
    const { relativeOffsetOfLocalHeader: from, fileNameLength, compressedSize } = entry
    const overlaps = from < end
    end = from + local_header_bytes + fileNameLength + compressedSize
    return overlaps
  })
}

/** Undefined for a mistake. */
async function unpackedEntry(
  zip: ZipFile,
  entry: Entry,
  name: string,
  to: Collected,
): Promise<Buffer | undefined> {
  try {
    const chunks: Buffer[] = []
    // yauzl ends the stream with an error after the declared size.
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
    const bytes = Buffer.concat(chunks)
    if (crc32(bytes) === entry.crc32) return bytes
    to.mistakes.push(`${name}: its checksum is wrong`)
  } catch (error) {
    pushError(name, error, to)
  }
  return undefined
}
