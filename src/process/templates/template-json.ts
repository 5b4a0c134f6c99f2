/**
 * A template whose text becomes JSON, as in `{"id":{{id}},"name":"{{name}}"}`. Inside quotes no
 * inserted value can change the structure: it is escaped. Outside quotes a value is put in as text,
 * so `[{{ids}}]` with "1,2" is an array of two, or it must be one JSON value, as the caller asks.
 * Numbers keep their exact text.
 */
import { parseJson, stringifyJson } from '../../codec/json.ts'
import type { JsonValue } from '../../core/model.ts'
import { value_bounds } from '../definition-limits.ts'
import { truncated } from '../report.ts'
import { type Expansion, failWith, joinParts, type Part, spellText } from './parser.ts'

/** The text of a value outside quotes; undefined where the expansion failed. */
type SpellOutside = (value: JsonValue | undefined, expansion: Expansion) => string | undefined

/** Makes the JSON text; the function returns undefined where the expansion failed. */
export function jsonTemplate(
  parts: readonly Part[],
  spellOutside: SpellOutside = spellText,
): (expansion: Expansion) => string | undefined {
  const is_in_string = quotesAround(parts)
  return (expansion) =>
    joinParts(parts, expansion, (value, part) =>
      is_in_string[part]
        ? JSON.stringify(spellText(value)).slice(1, -1)
        : spellOutside(value, expansion),
    )
}

/** Lets outside quotes one JSON value stand, so that no value can add a member. */
export const spellJson: SpellOutside = (value, expansion) => {
  const description = `Value: ${truncated(spellText(value))}, Try convert to: JSON`
  return jsonOf(value) ?? failWith(expansion, 'convert', description)
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
