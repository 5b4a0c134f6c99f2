/**
 * Parameters with the flag `auto-clear`: operators see `***` in their place, in the data of a task
 * and in descriptions of failures. A change must not write the mask back in place of the value.
 */
import { isObject, parseJson, parseStored, setMember, stringifyJson } from '../codec/json.ts'
import { isFault } from '../core/faults.ts'
import type { JsonObject, JsonValue, Task } from '../core/model.ts'
import { textsIn, withoutSecret } from '../engine/transactions/variables.ts'
import { type ParamPath, readParamPath } from '../process/compile-params.ts'
import { member } from '../process/templates/path.ts'

const masked_flag = 'auto-clear'

/** Where a definition's parameters with the flag `auto-clear` are; each also as one plain name. */
export function maskedPaths(definition_text: string): readonly ParamPath[] {
  // Seldom there, and the text is written as `stringifyJson` writes it.
  if (!definition_text.includes(masked_flag)) return []
  const paths: ParamPath[] = []
  const definition = parseStored(definition_text)
  const params = isObject(definition) ? definition.params : undefined
  for (const param of Array.isArray(params) ? params : []) {
    if (!isObject(param) || typeof param.name !== 'string' || !Array.isArray(param.flags)) continue
    if (param.flags.includes(masked_flag)) paths.push(readParamPath(param.name), [param.name])
  }
  return paths
}

const mask = '***'

type MaskedPart = Pick<Task, 'data_text' | 'status_details'>

const description_name = /^__conveyor_.*_return_description__$/

/**
 * The data and the status details of a task with what is at the paths masked, also in the
 * descriptions of failures. Other members keep their text.
 */
export function maskTask(
  { data_text, status_details }: MaskedPart,
  paths: readonly ParamPath[],
): MaskedPart {
  const details = status_details === undefined ? {} : { status_details }
  const data = paths.length === 0 ? undefined : parseStored(data_text)
  if (!isObject(data)) return { ...details, data_text }
  const secrets = paths.flatMap((path) => maskBelow(data, path))
  const masked = (text: string): string => secrets.reduce(withoutSecret, text)
  for (const [name, value] of Object.entries(data)) {
    if (typeof value === 'string' && description_name.test(name)) data[name] = masked(value)
  }
  if (details.status_details !== undefined) {
    const { tag, description } = details.status_details
    details.status_details = { tag, description: masked(description) }
  }
  return { ...details, data_text: stringifyJson(data) }
}

/** Masks what is at the path, and returns the texts that it held. */
function maskBelow(holder: JsonValue | undefined, [step, ...path]: ParamPath): string[] {
  if (step === null) {
    if (!Array.isArray(holder)) return []
    return [...holder.keys()].flatMap((at) => maskBelow(holder, [String(at), ...path]))
  }
  const value = step === undefined ? undefined : member(holder, step)
  if (step === undefined || value === undefined) return []
  if (path.length > 0) return maskBelow(value, path)
  if (Array.isArray(holder)) holder[Number(step)] = mask
  else setMember(holder as JsonObject, step, mask)
  return textsIn(value)
}

/** Undefined for a text that is not JSON, or holds no mask: then no definition need be read. */
export function maskedData(text: string, nesting_max: number): JsonValue | undefined {
  try {
    const data = parseJson(text, { nesting_max, values_max: Number.MAX_SAFE_INTEGER })
    return holdsMask(data) ? data : undefined
  } catch (error) {
    if (isFault(error)) return undefined
    throw error
  }
}

function holdsMask(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.some(holdsMask)
  if (typeof value === 'object' && value !== null) return Object.values(value).some(holdsMask)
  return value === mask
}

/** Whether the mask is in place of the parameter at the path. */
export function isMasked(value: JsonValue | undefined, [step, ...path]: ParamPath): boolean {
  if (step === undefined) return value === mask
  if (step !== null) return isMasked(member(value, step), path)
  return Array.isArray(value) && value.some((one) => isMasked(one, path))
}
