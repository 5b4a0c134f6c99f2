/**
 * Terms as JSON. A list of pairs is an object in which the first of equal keys wins; the empty list
 * is an array. The atom undefined is null, any other atom its name. Tuples that are not pairs, and
 * more than a task may hold, fail: a term may hold one part many times.
 */
import { isNumberToken, setMember, stringifyJson } from '../../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../../core/model.ts'
import { value_bounds } from '../../definition-limits.ts'
import {
  atomName,
  type ErlangTerm,
  type Evaluation,
  failTerm,
  isAtom,
  isJsonObject,
  isMap,
  isNumber,
  isTuple,
  type MapPair,
  shown,
  spend,
  tooLong,
  undefined_atom,
} from './terms.ts'

interface Writer {
  readonly evaluation: Evaluation
  left_chars: number
}

/** Undefined where the term is no JSON or too large, which has failed the evaluation. */
export function jsonOf(evaluation: Evaluation, term: ErlangTerm): JsonValue | undefined {
  return jsonValueOf({ evaluation, left_chars: evaluation.size_max }, term, 0)
}

function jsonValueOf(writer: Writer, term: ErlangTerm, level: number): JsonValue | undefined {
  const { evaluation } = writer
  const chars = 1 + scalarChars(term)
  writer.left_chars -= chars
  if (!spend(evaluation, 1 + chars / 8)) return undefined
  if (writer.left_chars < 0) return tooLong(evaluation)
  if (level > value_bounds.nesting_max) {
    return failTerm(evaluation, `nested deeper than ${value_bounds.nesting_max}`)
  }
  if (typeof term === 'string' || isNumber(term) || isJsonObject(term)) return term
  if (isAtom(term)) {
    if (term === null || typeof term === 'boolean') return term
    return term === undefined_atom ? null : atomName(term)
  }
  if (isTuple(term)) return failTerm(evaluation, 'a tuple is no JSON')
  const pairs = isMap(term) ? term.pairs : pairsOf(term)
  if (pairs !== undefined) return objectOf(writer, pairs, level)
  const array: JsonValue[] = []
  for (const item of term as readonly ErlangTerm[]) {
    const value = jsonValueOf(writer, item, level + 1)
    if (value === undefined) return undefined
    array.push(value)
  }
  return array
}

function objectOf(
  writer: Writer,
  pairs: readonly MapPair[],
  level: number,
): JsonObject | undefined {
  const object: JsonObject = {}
  for (const [key, item] of pairs) {
    const name = typeof key === 'string' ? key : isAtom(key) ? atomName(key) : undefined
    if (name === undefined) return failTerm(writer.evaluation, `${shown(key)} is no key`)
    writer.left_chars -= name.length
    const value = jsonValueOf(writer, item, level + 1)
    if (value === undefined) return undefined
    if (!Object.hasOwn(object, name)) setMember(object, name, value)
  }
  return object
}

function pairsOf(list: ErlangTerm): readonly MapPair[] | undefined {
  if (!Array.isArray(list) || list.length === 0) return undefined
  const pairs: MapPair[] = []
  for (const item of list as readonly ErlangTerm[]) {
    const [key, value, more] = isTuple(item) ? item.items : []
    if (key === undefined || value === undefined || more !== undefined) return undefined
    pairs.push([key, value])
  }
  return pairs
}

/** Characters of a scalar, and of an object of JSON, whose members are not visited. */
function scalarChars(term: ErlangTerm): number {
  if (typeof term === 'string') return term.length
  if (isNumberToken(term)) return term.token.length
  return isJsonObject(term) ? stringifyJson(term).length : 0
}
