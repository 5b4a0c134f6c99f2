/**
 * A line of `task create --file` to an op. A line with a member `data` is a task,
 * `{"ref":…,"data":{…}}`, and may hold nothing else; a line without one is the data itself. So a
 * slip in a task's line is refused, never stored as data.
 */
import { isNumberToken, isObject, parseJson, stringifyJson } from '../codec/json.ts'
import { isFault } from '../core/faults.ts'
import type { JsonValue } from '../core/model.ts'
import type { RawOp } from '../server/admin/task-verbs.ts'

/** The create op, or a sentence on what is wrong with the line. */
export function opOfLine(text: string, conv_id: string): RawOp | string {
  let value: JsonValue
  try {
    value = parseJson(text)
  } catch (error) {
    if (isFault(error)) return error.message
    throw error
  }
  if (!isObject(value)) return 'not a JSON object'
  if (!Object.hasOwn(value, 'data')) return { type: 'create', conv_id, data_text: text }
  const stranger = Object.keys(value).find((key) => key !== 'data' && key !== 'ref')
  if (stranger !== undefined) return `beside data and ref there is ${JSON.stringify(stranger)}`
  const data_text = dataText(value.data as JsonValue)
  if (data_text === undefined) return 'data is not a JSON object'
  const { ref } = value
  if (ref === undefined || ref === null) return { type: 'create', conv_id, data_text }
  if (typeof ref !== 'string' && typeof ref !== 'number' && !isNumberToken(ref)) {
    return 'ref is no string and no number'
  }
  return { type: 'create', conv_id, ref_text: stringifyJson(ref), data_text }
}

/** Data as JSON text; an empty array is an empty object (wire 1.1). Undefined for other values. */
export function dataText(data: JsonValue): string | undefined {
  if (Array.isArray(data) && data.length === 0) return '{}'
  return isObject(data) ? stringifyJson(data) : undefined
}
