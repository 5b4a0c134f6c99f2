/**
 * Variables that definitions read as `{{env_var[@name]}}`, or by number. Given ones
 * (`EngineOptions.variables`, `setVariables`) live in memory only and take precedence over imported
 * ones in the file, in every stage. They may be secrets, so failure descriptions mask them.
 */

import { aboutOf, describedText, encodeDescribed } from '../../codec/described.ts'
import {
  isNumberToken,
  isObject,
  numberText,
  objectOf,
  parseStored,
  stringifyJson,
} from '../../codec/json.ts'
import { secretsOf, variableKey } from '../../codec/keys.ts'
import { docOfPlain, type PlainBounds } from '../../codec/plain-value.ts'
import type { VariableAbout } from '../../codec/records.ts'
import { inStage, partsOf } from '../../core/alias.ts'
import { defined } from '../../core/defined.ts'
import { fault } from '../../core/faults.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import type { VariableItem } from '../../process/export-file.ts'
import { variableRef } from '../../process/values.ts'
import type { Tx, View } from '../../store/store.ts'
import type { GivenVariables, VariableResult } from '../api/process-api.ts'
import { removeAll } from './scans.ts'

export interface Variables {
  /** Throws a TypeError for a value that is not plain JSON. */
  give(variables: GivenVariables): void
  /**
   * `name` as `variableRef` makes it. Looked up in the stage, then among those of no stage.
   */
  of(view: View, name: string, stage_id?: string): JsonValue | undefined
  masked(text: string): string
  /** Whether a value of this name was given, which comes before all stored ones. */
  isGiven(name: string): boolean
  /** A secret by its owner; undefined where it cannot be read. */
  readonly secretOf: SecretOf
}

export type SecretOf = (owner: string) => string | undefined

/** Before the name of a variable's secret, in place of a user of the secret. */
export const variable_owner = 'variable '
export const variableOwner = (secret: string): string => variable_owner + secret

export function newVariables(
  bounds: PlainBounds,
  first: GivenVariables = {},
  secretOf: SecretOf = () => undefined,
): Variables {
  let given: JsonObject = {}
  let secrets: string[] = []

  function give(variables: GivenVariables): void {
    const next = Object.create(null) as JsonObject
    for (const [name, value] of Object.entries(variables)) {
      next[name.replace(/^@/, '')] = exactValue(name, value, bounds)
    }
    given = next
    secrets = [...new Set(Object.values(next).flatMap(textsIn))].sort(longestFirst)
  }
  give(first)

  /** What a task was shown is masked in descriptions from now on. */
  function readSecret(owner: string): string | undefined {
    const plain = secretOf(owner)
    if (plain === undefined) return undefined
    const texts = textsIn(plain).filter((text) => !secrets.includes(text))
    if (texts.length > 0) secrets = [...secrets, ...texts].sort(longestFirst)
    return plain
  }

  return {
    give,
    of(view, ref, stage_id) {
      const { name, stored } = storedVariable(view, ref, stage_id)
      if (Object.hasOwn(given, name)) return given[name]
      return stored && storedValue(stored, readSecret)
    },
    isGiven: (name) => Object.hasOwn(given, name),
    secretOf,
    masked: (text) => secrets.reduce(withoutSecret, text),
  }
}

const longestFirst = (one: string, other: string): number => other.length - one.length

export function storedValue(stored: Buffer, secretOf: SecretOf): JsonValue | undefined {
  const text = describedText(stored)
  if (text !== '') return parseStored(text)
  const { secret, data_type } = aboutOf<VariableAbout>(stored)
  const plain = secret === undefined ? undefined : secretOf(variableOwner(secret))
  return plain !== undefined && data_type === 'json' ? parseStored(plain) : plain
}

/** Where a variable of this reference stands; one of an unknown number has that as its name. */
function storedVariable(
  view: View,
  ref: string,
  stage_id: string | undefined,
): { readonly name: string; readonly stored: Buffer | undefined } {
  const { name: number } = partsOf(ref)
  const by_number = number === ref ? undefined : view.get(variableKey(ref))?.toString('utf8')
  if (by_number !== undefined) {
    return { name: partsOf(by_number).name, stored: view.get(variableKey(by_number)) }
  }
  const there =
    stage_id === undefined ? undefined : view.get(variableKey(inStage(number, stage_id)))
  return { name: number, stored: there ?? view.get(variableKey(number)) }
}

function exactValue(name: string, value: unknown, bounds: PlainBounds): JsonValue {
  const doc = docOfPlain({ value }, bounds)
  const read = typeof doc === 'string' ? undefined : objectOf(doc).value
  if (read !== undefined) return read
  const mistake = typeof doc === 'string' ? doc : 'data.value is undefined'
  throw new TypeError(mistake.replace('data.value', () => `variable @${name.replace(/^@/, '')}`))
}

/**
 * Stores an imported variable, and under its number the place of it. A secret has no value; it
 * removes a stored one, but for a secret that was set here. Throws `bad_definition` where its
 * number is another variable's.
 */
export function putVariable(
  tx: Tx,
  { name, value, stage_id, obj_id, place }: VariableItem,
): VariableResult {
  const staged = inStage(name, stage_id)
  const key = variableKey(staged)
  const of = { name, ...defined({ stage_id }) }
  if (obj_id !== undefined) putNumber(tx, obj_id, staged, place)
  const old = tx.get(key)
  const { secret, ...about } = old === undefined ? {} : aboutOf<VariableAbout>(old)
  if (value === undefined) {
    if (secret !== undefined) return { ...of, state: 'unchanged' }
    tx.del(key)
    return { ...of, state: 'not_stored' }
  }
  if (secret !== undefined) removeAll(tx, secretsOf(variableOwner(secret)))
  const number = obj_id === undefined ? {} : { obj_id: Number(obj_id) }
  const next = encodeDescribed(stringifyJson(value), { ...about, ...number })
  if (old?.equals(next)) return { ...of, state: 'unchanged' }
  tx.put(key, next)
  return { ...of, state: old === undefined ? 'created' : 'updated' }
}

function putNumber(tx: Tx, obj_id: string, staged: string, place: string): void {
  const key = variableKey(variableRef(obj_id))
  const other = tx.get(key)?.toString('utf8')
  if (other === staged) return
  const { name, stage } = partsOf(other ?? staged)
  const is_other = name !== partsOf(staged).name
  if (other !== undefined && is_other && tx.get(variableKey(other)) !== undefined) {
    const where = stage === undefined ? 'in the file' : `of stage ${stage} in the file`
    const mistake = `${place}variable ${obj_id} is @${name} ${where} already`
    throw fault('bad_definition', mistake, { mistakes: [mistake] })
  }
  tx.put(key, Buffer.from(staged))
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
