/**
 * Values that people at a terminal are not shown: the parameters of a process that carry the flag
 * `auto-clear` print as `***`. The stored task is not touched, and programs read it unmasked.
 */
import { isObject, parseStored, setMember, stringifyJson } from '../../codec/json.ts'

/** The names of the parameters to mask, read from the definition's text. */
export function maskedNames(definition_text: string): ReadonlySet<string> {
  const names = new Set<string>()
  const definition = parseStored(definition_text)
  const params = isObject(definition) ? definition.params : undefined
  for (const param of Array.isArray(params) ? params : []) {
    if (!isObject(param) || typeof param.name !== 'string' || !Array.isArray(param.flags)) continue
    if (param.flags.includes('auto-clear')) names.add(param.name)
  }
  return names
}

/** A task's data with the named top-level values masked; the others keep their text. */
export function maskData(data_text: string, names: ReadonlySet<string>): string {
  if (names.size === 0) return data_text
  const data = parseStored(data_text)
  if (!isObject(data)) return data_text
  for (const name of names) if (Object.hasOwn(data, name)) setMember(data, name, '***')
  return stringifyJson(data)
}
