/**
 * The variables that definitions read as `{{env_var[@name]}}`. They come from two places: those
 * given to the engine (`EngineOptions.variables`, `setVariables`), which live in memory only, and
 * those that imports have stored in the file. A given one counts before a stored one.
 *
 * Given values may be secrets: they are stored nowhere, and masked in the descriptions of failures.
 */
import { isNumberToken, isObject, numberText, objectOf, parseStored } from '../codec/json.ts'
import { variableKey } from '../codec/keys.ts'
import { docOfPlain } from '../codec/plain-value.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import type { View } from '../store/store.ts'

/** Values by name. */
export type GivenVariables = Readonly<Record<string, unknown>>

export interface Variables {
  /** Replaces the given ones. Throws a TypeError for a value that is no plain JSON value. */
  give(variables: GivenVariables): void
  of(view: View, name: string): JsonValue | undefined
  /** The text with each given value in it as `***`; short ones stay, they would mask too much. */
  masked(text: string): string
}

export function newVariables(nesting_max: number, first: GivenVariables = {}): Variables {
  let given: JsonObject = {}
  let secrets: string[] = []

  function give(variables: GivenVariables): void {
    const next = Object.create(null) as JsonObject
    for (const [name, value] of Object.entries(variables)) {
      next[name.replace(/^@/, '')] = exactValue(name, value, nesting_max)
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

function exactValue(name: string, value: unknown, nesting_max: number): JsonValue {
  const doc = docOfPlain({ value }, nesting_max)
  const read = typeof doc === 'string' ? undefined : objectOf(doc).value
  if (read !== undefined) return read
  throw new TypeError(`variable ${name}: ${typeof doc === 'string' ? doc : 'is undefined'}`)
}

const masked_chars_min = 8
/** A description may end within a value, so its first characters are enough. */
const compared_chars = 16

/**
 * The texts and numbers in a value as they stand in a description, plain or quoted as JSON: those
 * long enough to be secrets.
 */
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

/** The text with `***` in place of the secret, also of its beginning where the text was cut. */
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
