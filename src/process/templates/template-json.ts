/**
 * A template whose text becomes JSON, as in `{"id":{{id}},"name":"{{name}}"}`. No inserted value
 * can change the structure: inside quotes it is escaped, outside quotes it must be one JSON value,
 * else the expansion fails. Numbers keep their exact text.
 */
import { parseJson, stringifyJson } from '../../codec/json.ts'
import type { JsonValue } from '../../core/model.ts'
import { value_bounds } from '../definition-limits.ts'
import { truncated } from '../report.ts'
import { textOf } from '../values.ts'
import { type Expansion, failWith, joinParts, type Part } from './parser.ts'

/** Makes the JSON text; the function returns undefined where the expansion failed. */
export function jsonTemplate(parts: readonly Part[]): (expansion: Expansion) => string | undefined {
  const is_in_string = quotesAround(parts)
  return (expansion) =>
    joinParts(parts, expansion, (value, part) => {
      const text = value === undefined ? '' : textOf(value)
      if (is_in_string[part]) return JSON.stringify(text).slice(1, -1)
      return (
        jsonOf(value) ??
        failWith(expansion, 'convert', `Value: ${truncated(text)}, Try convert to: JSON`)
      )
    })
}

/** For each part of the template: whether it is inside quotes. */
function quotesAround(parts: readonly Part[]): boolean[] {
  const inside: boolean[] = []
  let is_in_string = false
  for (const part of parts) {
    inside.push(is_in_string)
    if (typeof part !== 'string') continue
    for (let at = 0; at < part.length; at++) {
      if (part[at] === '\\' && is_in_string) at++
      else if (part[at] === '"') is_in_string = !is_in_string
    }
  }
  return inside
}

function jsonOf(value: JsonValue | undefined): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string') return stringifyJson(value)
  try {
    parseJson(value, value_bounds)
    return value
  } catch {
    return undefined
  }
}
