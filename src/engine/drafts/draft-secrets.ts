/**
 * Secrets of definitions, which readers see as `***`: a draft that brings `***` back keeps what is
 * stored.
 */
import { isObject, setMember } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'

export const hidden = '***'
export const secret_names: ReadonlySet<string> = new Set(['api_secret_outer', 'password', 'secret'])

/** `value` with the secrets of `base` where it has `***`; `onLost` gets names without one. */
export function keepSecrets(
  value: JsonObject,
  base: JsonObject | undefined,
  onLost: (name: string) => void,
): JsonObject {
  let known: Map<string, Set<string>> | undefined

  function walk(one: JsonValue, was: JsonValue | undefined): JsonValue {
    if (Array.isArray(one)) {
      const list = Array.isArray(was) ? was : []
      return one.map((part, at) => walk(part, list[at]))
    }
    if (!isObject(one)) return one
    const old = isObject(was) ? was : {}
    const copy: JsonObject = {}
    for (const [name, member] of Object.entries(one)) {
      const before = Object.hasOwn(old, name) ? old[name] : undefined
      const is_hidden = secret_names.has(name) && member === hidden
      setMember(copy, name, is_hidden ? secretOf(name, before) : walk(member, before))
    }
    return copy
  }

  /** From the same place, or the only one of this name in the node. */
  function secretOf(name: string, before: JsonValue | undefined): string {
    if (typeof before === 'string' && before !== '') return before
    known ??= secretsIn(base ?? {}, new Map())
    const [only, more] = known.get(name) ?? []
    if (only !== undefined && more === undefined) return only
    onLost(name)
    return hidden
  }

  return walk(value, base) as JsonObject
}

function secretsIn(value: JsonValue, found: Map<string, Set<string>>): Map<string, Set<string>> {
  if (Array.isArray(value)) for (const one of value) secretsIn(one, found)
  else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      if (secret_names.has(name) && typeof member === 'string' && member !== '') {
        found.set(name, (found.get(name) ?? new Set()).add(member))
      } else secretsIn(member, found)
    }
  }
  return found
}
