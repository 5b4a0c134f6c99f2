/**
 * Variables that definitions read as `{{env_var[@name]}}`. Given ones (`EngineOptions.variables`,
 * `setVariables`) live in memory only and take precedence over imported ones in the file. They may
 * be secrets, so failure descriptions mask them.
 */
import {
  isNumberToken,
  isObject,
  numberText,
  objectOf,
  parseStored,
  stringifyJson,
} from '../../codec/json.ts'
import { variableKey } from '../../codec/keys.ts'
import { docOfPlain, type PlainBounds } from '../../codec/plain-value.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import type { VariableItem } from '../../process/export-file.ts'
import type { Tx, View } from '../../store/store.ts'
import type { GivenVariables, VariableResult } from '../api/process-api.ts'

export interface Variables {
  /** Throws a TypeError for a value that is not plain JSON. */
  give(variables: GivenVariables): void
  of(view: View, name: string): JsonValue | undefined
  masked(text: string): string
}

export function newVariables(bounds: PlainBounds, first: GivenVariables = {}): Variables {
  let given: JsonObject = {}
  let secrets: string[] = []

  function give(variables: GivenVariables): void {
    const next = Object.create(null) as JsonObject
    for (const [name, value] of Object.entries(variables)) {
      next[name.replace(/^@/, '')] = exactValue(name, value, bounds)
    }
    given = next
    secrets = [...new Set(Object.values(next).flatMap(textsIn))].sort(
      (one, other) => other.length - one.length,
    )
  }
  give(first)

  return {
    give,
    of(view, name) {
      if (Object.hasOwn(given, name)) return given[name]
      const stored = view.get(variableKey(name))
      return stored === undefined ? undefined : parseStored(stored.toString('utf8'))
    },
    masked: (text) => secrets.reduce(withoutSecret, text),
  }
}

function exactValue(name: string, value: unknown, bounds: PlainBounds): JsonValue {
  const doc = docOfPlain({ value }, bounds)
  const read = typeof doc === 'string' ? undefined : objectOf(doc).value
  if (read !== undefined) return read
  const mistake = typeof doc === 'string' ? doc : 'data.value is undefined'
  throw new TypeError(mistake.replace('data.value', () => `variable @${name.replace(/^@/, '')}`))
}

/** Stores an imported variable. A secret has no value; it removes a stored one. */
export function putVariable(tx: Tx, { name, value }: VariableItem): VariableResult {
  const key = variableKey(name)
  if (value === undefined) {
    tx.del(key)
    return { name, state: 'not_stored' }
  }
  const text = stringifyJson(value)
  const old = tx.get(key)?.toString('utf8')
  if (old === text) return { name, state: 'unchanged' }
  tx.put(key, Buffer.from(text))
  return { name, state: old === undefined ? 'created' : 'updated' }
}

const masked_chars_min = 8
/** This prefix of a value is masked like the whole value. */
const compared_chars = 16

/** Texts and numbers in a value that are long enough to mask, as descriptions show them. */
export function textsIn(value: JsonValue): string[] {
  if (typeof value === 'string') {
    return [value, JSON.stringify(value).slice(1, -1)].filter(
      (text) => text.length >= masked_chars_min,
    )
  }
  if (typeof value === 'number' || isNumberToken(value)) return textsIn(numberText(value))
  if (Array.isArray(value)) return value.flatMap(textsIn)
  return isObject(value) ? Object.values(value).flatMap(textsIn) : []
}

/** Replaces the secret by `***`, also its beginning where the text was cut. */
export function withoutSecret(text: string, secret: string): string {
  const start = secret.slice(0, compared_chars)
  let masked = ''
  let from = 0
  for (;;) {
    const at = text.indexOf(start, from)
    if (at === -1) return masked + text.slice(from)
    let same = start.length
    while (same < secret.length && text[at + same] === secret[same]) same++
    masked += `${text.slice(from, at)}***`
    from = at + same
  }
}
