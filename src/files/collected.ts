/**
 * What has been read of an export so far, and its bounds. Exceeding a bound refuses the whole
 * import at once; a mistake in one file is collected with the others.
 */
import { fault } from '../core/faults.ts'
import type { ExportFile } from '../engine/api/process-api.ts'
import {
  export_bytes_max,
  export_entries_max,
  export_files_max,
} from '../process/definition-limits.ts'

export interface Collected {
  readonly files: ExportFile[]
  readonly mistakes: string[]
  /** Files and folders seen. */
  entries: number
  bytes: number
}

const ignored_names = new Set(['node_modules', '__MACOSX'])

/** Whether a file or folder is skipped. */
export function isIgnored(name: string): boolean {
  return name.startsWith('.') || ignored_names.has(name)
}

/** Counts the entries of a folder or an archive. Throws where there are too many. */
export function countEntries(name: string, count: number, to: Collected): void {
  to.entries += count
  if (to.entries > export_entries_max) throw tooMuch(name, `${export_entries_max} entries`)
}

/** Counts what was unpacked or read. Throws where there is too much. */
export function countBytes(name: string, bytes: number, to: Collected): void {
  to.bytes += bytes
  if (to.bytes > export_bytes_max) throw tooMuch(name, `${export_bytes_max} bytes`)
}

/** Adds a file, or a mistake if it is not text. Throws beyond a bound. */
export function addText(name: string, bytes: Uint8Array, is_found: boolean, to: Collected): void {
  if (to.files.length === export_files_max) throw tooMuch(name, `${export_files_max} files`)
  countBytes(name, bytes.length, to)
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    to.files.push({ name, text, is_found })
  } catch {
    to.mistakes.push(`${name}: not UTF-8 text`)
  }
}

export function tooMuch(name: string, bound: string): Error {
  const mistake = `${name}: more than ${bound}`
  return fault('bad_definition', mistake, { mistakes: [mistake] })
}
