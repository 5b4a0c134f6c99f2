/**
 * What may name a process, a node or a task from inside a definition or a task's data. A name
 * longer than anything that can be stored ends here, before it becomes a key.
 */
import { isNumberToken, numberText } from '../codec/json.ts'
import { isName } from '../codec/op.ts'
import type { JsonValue } from '../core/model.ts'
import { name_chars_max } from './definition-limits.ts'

/** The text of a text or a number that is not empty; undefined for any other value. */
export function idText(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value
  return typeof value === 'number' || isNumberToken(value) ? numberText(value) : undefined
}

/** The id of a process; undefined where the value can be none. */
export function processId(value: JsonValue | undefined): string | undefined {
  const text = idText(value)
  return text !== undefined && isName(text, name_chars_max) ? text : undefined
}

/** Whether a text is short enough for a ref or a node id. */
export function isIdLength(text: string): boolean {
  if (text.length <= name_chars_max) return true
  return text.length <= 2 * name_chars_max && [...text].length <= name_chars_max
}
