/**
 * The position of a change as text: the entry and the change in it with which a consumer goes on,
 * the time of the entry that has the change before, and the file. The last two tell a position of
 * another file, or of what a restored copy of the file has overwritten.
 */

export interface ChangePosition {
  /** The entry to go on with: after the last change of an entry, the next one. */
  readonly n: number
  /** The first change of it that is not consumed. */
  readonly at: number
  /** The time of the entry with the last change that is consumed. */
  readonly at_ms: number
}

const form = /^([0-9a-z]{1,11})\.([0-9a-z]{1,7})\.([0-9a-z]{1,11})\.([0-9a-f]{1,32})$/

export function positionText({ n, at, at_ms }: ChangePosition, file_id: string): string {
  return `${n.toString(36)}.${at.toString(36)}.${Math.floor(at_ms).toString(36)}.${file_id}`
}

/** `malformed`, or `foreign` for one of another file. */
export function parsePosition(
  text: unknown,
  file_id: string,
): ChangePosition | 'malformed' | 'foreign' {
  const [, n = '', at = '', at_ms = '', file] = (typeof text === 'string' && form.exec(text)) || []
  if (file === undefined) return 'malformed'
  if (file !== file_id) return 'foreign'
  return { n: number(n), at: number(at), at_ms: number(at_ms) }
}

const number = (digits: string): number => Number.parseInt(digits, 36)
