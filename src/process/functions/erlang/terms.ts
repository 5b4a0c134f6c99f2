/**
 * The values of a fun: JSON values, and the terms that JSON lacks. A JSON object is a list of
 * `{<<"key">>, Value}` pairs, a text a binary; true, false and null are atoms. An untouched value
 * keeps its exact text. Visiting, building and comparing terms spends steps, which bounds time and
 * memory whatever the data is.
 */
import { isNumberToken, isObject } from '../../../codec/json.ts'
import type { JsonObject, JsonValue, NumberToken } from '../../../core/model.ts'
import { type Steps, steps_passed, takeSteps, value_bounds } from '../../definition-limits.ts'
import { quoted } from '../../report.ts'
import type { Expansion, ExpansionFailure } from '../../templates/parser.ts'
import { compareNumbers } from './numbers.ts'

export type ErlangTerm =
  | Exclude<JsonValue, JsonValue[]>
  | readonly ErlangTerm[]
  | Atom
  | Tuple
  | ErlangMap

/**
 * What evaluating gives: undefined where the evaluation has failed, or where the arguments of a
 * function or an operator do not fit.
 */
export type Result = ErlangTerm | undefined

const form: unique symbol = Symbol('conveyor.erlang')

/** An atom other than true, false and null. */
export interface Atom {
  readonly [form]: 'atom'
  readonly name: string
}

export interface Tuple {
  readonly [form]: 'tuple'
  readonly items: readonly ErlangTerm[]
}

/** A `#{}` map: pairs in the order of their keys, no key twice. */
export interface ErlangMap {
  readonly [form]: 'map'
  readonly pairs: readonly MapPair[]
}

export type MapPair = readonly [key: ErlangTerm, value: ErlangTerm]

export interface Evaluation {
  readonly variables: ErlangTerm[]
  readonly steps: Steps
  /** Characters of the longest text and items of the longest list: what a task may hold. */
  readonly size_max: number
  /** Why a term is undefined. A guard that fails resets it. */
  failure: ExpansionFailure | undefined
}

export function evaluationOf({ context }: Expansion): Evaluation {
  const { steps, task_bytes_max: size_max } = context
  return { variables: [], steps, size_max, failure: undefined }
}

/** What a failure costs: a guard may fail again and again. */
const failure_steps = 30

/** Fails the evaluation, as an exception of Erlang does. */
export function failTerm(evaluation: Evaluation, description: string): undefined {
  evaluation.steps.left -= failure_steps
  evaluation.failure ??= { why: 'convert', description }
  return undefined
}

/** Spends steps; false where there are not so many left, which fails the evaluation for good. */
export function spend(evaluation: Evaluation, steps: number): boolean {
  if (takeSteps(evaluation.steps, steps)) return true
  failTerm(evaluation, steps_passed)
  return false
}

/** Steps to read a term: a number of many digits takes more than others. */
export function readingSteps(term: ErlangTerm): number {
  return isNumberToken(term) ? term.token.length / 8 : 0
}

export function charsOf(texts: readonly string[]): number {
  return texts.reduce((chars, text) => chars + text.length, 0)
}

/** Fails the evaluation: something is longer than a task may be. */
export function tooLong(evaluation: Evaluation): undefined {
  evaluation.failure ??= { why: 'overflow', description: '' }
  return undefined
}

/** The text or list where it is no longer than a task may be; building it costs steps. */
export function sized<Made extends string | readonly ErlangTerm[] | JsonObject>(
  evaluation: Evaluation,
  made: Made,
): Made | undefined {
  const length = isJsonObject(made) ? 0 : made.length
  if (!spend(evaluation, 1 + length / (typeof made === 'string' ? 8 : 1))) return undefined
  return length <= evaluation.size_max ? made : tooLong(evaluation)
}

export const undefined_atom: Atom = { [form]: 'atom', name: 'undefined' }

export function atomOf(name: string): ErlangTerm {
  if (name === 'undefined') return undefined_atom
  return name === 'null' ? null : name === 'true' || (name !== 'false' && { [form]: 'atom', name })
}

export function tupleOf(items: readonly ErlangTerm[]): Tuple {
  return { [form]: 'tuple', items }
}

/** A map of the pairs; of equal keys the last one wins. */
export function mapOf(evaluation: Evaluation, pairs: readonly MapPair[]): ErlangMap {
  const order = (a: MapPair, b: MapPair): number => compareTerms(evaluation, a[0], b[0], true)
  const sorted = [...pairs].sort(order)
  return {
    [form]: 'map',
    pairs: sorted.filter((pair, at) => {
      const next = sorted[at + 1]
      return next === undefined || order(pair, next) !== 0
    }),
  }
}

function formOf(term: ErlangTerm): 'atom' | 'tuple' | 'map' | undefined {
  return typeof term === 'object' && term !== null && form in term ? term[form] : undefined
}

export function isAtom(term: ErlangTerm): term is Atom | boolean | null {
  return term === null || typeof term === 'boolean' || formOf(term) === 'atom'
}

export function atomName(term: Atom | boolean | null): string {
  return term === null || typeof term === 'boolean' ? String(term) : term.name
}

export function isTuple(term: ErlangTerm): term is Tuple {
  return formOf(term) === 'tuple'
}

export function isMap(term: ErlangTerm): term is ErlangMap {
  return formOf(term) === 'map'
}

export function isNumber(term: ErlangTerm): term is number | NumberToken {
  return typeof term === 'number' || isNumberToken(term)
}

export function isList(term: ErlangTerm): term is readonly ErlangTerm[] | JsonObject {
  return Array.isArray(term) || isJsonObject(term)
}

export function isJsonObject(term: ErlangTerm): term is JsonObject {
  return isObject(term) && formOf(term) === undefined
}

/** The items of a list, the pairs of an object; undefined for any other term. */
export function listOf(
  evaluation: Evaluation,
  term: ErlangTerm,
): readonly ErlangTerm[] | undefined {
  if (Array.isArray(term)) return term
  if (!isJsonObject(term)) return undefined
  const keys = Object.keys(term)
  if (!spend(evaluation, keys.length)) return undefined
  return keys.map((key) => tupleOf([key, term[key] as JsonValue]))
}

/** The rest of a list; the rest of an object, if nothing is left, is the empty object. */
export function remainder(
  whole: ErlangTerm,
  items: readonly ErlangTerm[],
): readonly ErlangTerm[] | JsonObject {
  return items.length === 0 && isJsonObject(whole) ? {} : items
}

export function isSame(evaluation: Evaluation, left: ErlangTerm, right: ErlangTerm): boolean {
  return compareTerms(evaluation, left, right, true) === 0
}

/**
 * The order of Erlang: number < atom < tuple < map < list < binary. Negative where `left` comes
 * before `right`. 1 equals 1.0, unless `is_exact`. Where the limit of steps is passed the result
 * means nothing, and the evaluation has failed.
 */
export function compareTerms(
  evaluation: Evaluation,
  left: ErlangTerm,
  right: ErlangTerm,
  is_exact: boolean,
  level = 0,
): number {
  if (left === right) return 0
  if (!spend(evaluation, 1)) return 0
  if (level > value_bounds.nesting_max) {
    failTerm(evaluation, `nested deeper than ${value_bounds.nesting_max}`)
    return 0
  }
  if (typeof left === 'string' && typeof right === 'string') {
    spend(evaluation, (left.length + right.length) / 8)
    return Buffer.compare(Buffer.from(left), Buffer.from(right))
  }
  const by_rank = rankOf(left) - rankOf(right)
  if (by_rank !== 0) return by_rank
  if (isNumber(left) && isNumber(right)) {
    const is_paid = spend(evaluation, readingSteps(left) + readingSteps(right))
    return is_paid ? compareNumbers(left, right, is_exact) : 0
  }
  if (isAtom(left) && isAtom(right)) return compareText(atomName(left), atomName(right))
  const ones = partsOf(evaluation, left)
  const others = partsOf(evaluation, right)
  if (!isList(left) && ones.length !== others.length) return ones.length - others.length
  const length = Math.min(ones.length, others.length)
  for (let at = 0; at < length && evaluation.failure === undefined; at++) {
    const one = ones[at] as ErlangTerm
    const order = compareTerms(evaluation, one, others[at] as ErlangTerm, is_exact, level + 1)
    if (order !== 0) return order
  }
  return ones.length - others.length
}

function compareText(left: string, right: string): number {
  return left === right ? 0 : left < right ? -1 : 1
}

function rankOf(term: ErlangTerm): number {
  if (Array.isArray(term)) return 4
  if (isNumber(term)) return 0
  if (isAtom(term)) return 1
  if (isTuple(term)) return 2
  if (isMap(term)) return 3
  return typeof term === 'string' ? 5 : 4
}

/** What two terms of one kind are compared by; the keys of maps before their values. */
function partsOf(evaluation: Evaluation, term: ErlangTerm): readonly ErlangTerm[] {
  if (Array.isArray(term)) return term
  if (isTuple(term)) return term.items
  if (!isMap(term)) return listOf(evaluation, term) ?? []
  return [...term.pairs.map(([key]) => key), ...term.pairs.map(([, value]) => value)]
}

export function shown(term: ErlangTerm): string {
  if (isTuple(term)) return 'a tuple'
  if (isMap(term)) return 'a map'
  return isAtom(term) ? atomName(term) : quoted(term)
}
