/**
 * Reads an export from disk as text: JSON files, zip files, and folders of them, all bounded
 * (process/definition-limits). In a folder, hidden files, `node_modules`, symbolic links and other
 * file types are skipped. All mistakes are collected, each with its file name.
 */
import { createReadStream, type Dirent } from 'node:fs'
import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fault } from '../core/faults.ts'
import type { ExportFile } from '../engine/api/process-api.ts'
import {
  export_bytes_max,
  export_depth_max,
  export_file_bytes_max,
} from '../process/definition-limits.ts'
import { addText, type Collected, countEntries, isIgnored } from './collected.ts'

/** A file that comes from elsewhere, such as standard input. */
export interface GivenFile {
  readonly name: string
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

/**
 * The files of an export, from paths of files and folders, ordered by name. Rejects with
 * `bad_definition`, whose `mistakes` name every unreadable file.
 */
export async function readExport(paths: readonly (string | GivenFile)[]): Promise<ExportFile[]> {
  const collected: Collected = { files: [], mistakes: [], entries: 0, bytes: 0 }
  for (const path of paths) {
    if (typeof path !== 'string') await addFile(path, false, collected)
    else {
      const found = await stat(path).catch((error: unknown) => mistakeOf(path, error, collected))
      if (found?.isDirectory()) await walk(path, 0, collected)
      else if (found !== undefined) await addFile(onDisk(path), false, collected)
    }
  }
  const { files, mistakes } = collected
  const [first, ...more] = mistakes
  if (first === undefined) return files
  const also = more.length > 0 ? `, and ${more.length} more` : ''
  throw fault('bad_definition', `${first}${also}`, { mistakes })
}

async function walk(folder: string, depth: number, to: Collected): Promise<void> {
  if (depth === export_depth_max) {
    to.mistakes.push(`${folder}: nested deeper than ${export_depth_max} folders`)
    return
  }
  const entries: Dirent[] = []
  const opened = await opendir(folder).catch((error: unknown) => mistakeOf(folder, error, to))
  for await (const entry of opened ?? []) {
    countEntries(folder, 1, to)
    entries.push(entry)
  }
  entries.sort((one, other) => (one.name < other.name ? -1 : 1))
  for (const entry of entries) {
    const { name } = entry
    const path = join(folder, name)
    if (isIgnored(name)) continue
    if (entry.isDirectory()) await walk(path, depth + 1, to)
    else if (entry.isFile() && /\.(json|zip)$/i.test(name)) await addFile(onDisk(path), true, to)
  }
}

function onDisk(path: string): GivenFile {
  return { name: path, chunks: createReadStream(path) as AsyncIterable<Buffer> }
}

async function addFile(file: GivenFile, is_found: boolean, to: Collected): Promise<void> {
  const { name } = file
  const bytes = await readBounded(file).catch((error: unknown) => mistakeOf(name, error, to))
  if (bytes === undefined) return
  if (bytes === 'too large') to.mistakes.push(`${name}: over ${export_bytes_max} bytes`)
  else await addBytes(name, bytes, is_found, to)
}

async function addBytes(
  name: string,
  bytes: Buffer,
  is_found: boolean,
  to: Collected,
): Promise<void> {
  if (isZip(bytes)) {
    const { addZip } = await import('./zip.ts')
    await addZip(name, bytes, to)
  } else if (bytes.length > export_file_bytes_max) {
    to.mistakes.push(`${name}: over ${export_file_bytes_max} bytes`)
  } else addText(name, bytes, is_found, to)
}

/** A zip file begins with an entry, or with its end where it is empty. */
function isZip(bytes: Uint8Array): boolean {
  const [first, second, third, fourth] = bytes
  if (first !== 0x50 || second !== 0x4b) return false
  return (third === 3 && fourth === 4) || (third === 5 && fourth === 6)
}

async function readBounded({ chunks }: GivenFile): Promise<Buffer | 'too large'> {
  const read: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > export_bytes_max) return 'too large'
    read.push(chunk)
  }
  return Buffer.concat(read)
}

function mistakeOf(path: string, error: unknown, { mistakes }: Collected): undefined {
  const { code, message } = error as NodeJS.ErrnoException
  mistakes.push(`${path}: ${code === 'ENOENT' ? 'there is no such file' : message}`)
}
