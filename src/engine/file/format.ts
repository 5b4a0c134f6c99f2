/**
 * The format of a data file, in its first record. A file of another format is refused unchanged.
 */
import { metaKey } from '../../codec/keys.ts'
import { fault } from '../../core/faults.ts'
import type { Tree } from '../../store/tree.ts'

export const format = 5
export const format_key = metaKey('format')

/** Undefined for a new file or one of another program. */
export function formatIn(found: Pick<Tree, 'get'>): number | undefined {
  const stored = found.get(format_key)
  return stored && Number(stored.toString('utf8'))
}

/** Throws `older_format` or `newer_format`, with the file's `name`. */
export function checkFormat(found_format: number, name: string): void {
  if (found_format > format) {
    throw fault('newer_format', `${name} was written by a newer conveyor; use that one`)
  }
  if (found_format < format) {
    const formats = `it has format ${found_format}, this one reads format ${format}`
    throw fault(
      'older_format',
      `${name} was written by an older conveyor (${formats}); use that one`,
    )
  }
}
