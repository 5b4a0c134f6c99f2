/**
 * Patterns and the variables that they bind: the first pattern that names a variable binds it, a
 * later one compares; `_` never binds. A JSON object matches as the list of its pairs, or by `#{Key
 * := P}`.
 */
import type { JsonValue } from '../../../core/model.ts'
import { truncated } from '../../report.ts'
import { mistakeAt, type ParseFault, type TemplateCursor } from '../../templates/parser.ts'
import { numericOf, termOf } from './numbers.ts'
import type { Expression } from './syntax.ts'
import {
  atomOf,
  type ErlangTerm,
  type Evaluation,
  isJsonObject,
  isMap,
  isSame,
  isTuple,
  listOf,
  type Result,
  remainder,
  sized,
} from './terms.ts'

export interface Scope {
  readonly cursor: TemplateCursor
  readonly bound: Map<string, number>
  /** The slots of names that are bound somewhere in the fun, and how many slots there are. */
  readonly named: Map<string, number>
  readonly slots: { count: number }
}

/** Whether a term fits; binds the variables of the pattern as far as it does. */
export type Match = (evaluation: Evaluation, term: ErlangTerm) => boolean

export function scopeOf(cursor: TemplateCursor): Scope {
  return { cursor, bound: new Map(), named: new Map(), slots: { count: 0 } }
}

/** A copy, whose variables are unknown outside of it. */
export function innerScope(scope: Scope): Scope {
  return { ...scope, bound: new Map(scope.bound) }
}

export function mistakeOf({ cursor }: Scope, { at }: Expression, what: string): ParseFault {
  cursor.at = at
  return mistakeAt(cursor, what)
}

/** The slot of a variable, which must be bound. */
export function slotOf(scope: Scope, expression: Expression, name: string): number {
  const slot = scope.bound.get(name)
  if (slot !== undefined) return slot
  throw mistakeOf(scope, expression, `the variable ${truncated(name)} has no value`)
}

/** Compiles a pattern and binds its variables in the scope. */
export function compileMatch(pattern: Expression, scope: Scope): Match {
  const constant = constantOf(pattern, scope)
  if (constant !== undefined) return (evaluation, term) => isSame(evaluation, constant, term)
  switch (pattern.kind) {
    case 'word':
    case 'variable':
      return variableMatch(pattern.name, scope)
    case 'tuple': {
      const parts = pattern.parts.map((part) => compileMatch(part, scope))
      return (evaluation, term) =>
        isTuple(term) &&
        term.items.length === parts.length &&
        allMatch(evaluation, parts, term.items)
    }
    case 'list': {
      const parts = pattern.parts.map((part) => compileMatch(part, scope))
      const tail = pattern.tail === undefined ? undefined : compileMatch(pattern.tail, scope)
      return listMatch(parts, tail)
    }
    case 'map':
      return mapMatch(pattern, scope)
    case 'binary':
      return binaryMatch(pattern, pattern.parts, scope)
    case 'match': {
      const both = [...pattern.patterns, pattern.value].map((part) => compileMatch(part, scope))
      return (evaluation, term) => both.every((match) => match(evaluation, term))
    }
    default:
      throw mistakeOf(scope, pattern, 'a pattern was expected')
  }
}

/** The term of a literal, an atom or a number with a sign. */
function constantOf(pattern: Expression, scope: Scope): ErlangTerm | undefined {
  if (pattern.kind === 'literal') return pattern.value
  if (pattern.kind === 'word' && !scope.bound.has(pattern.name)) return atomOf(pattern.name)
  if (pattern.kind !== 'prefixed' || pattern.value.kind !== 'literal') return undefined
  const number = numericOf(pattern.value.value)
  const is_negative = pattern.signs.filter((sign) => sign === '-').length % 2 === 1
  const is_signed = pattern.signs.every((sign) => sign === '-' || sign === '+')
  if (number === undefined || !is_signed) return undefined
  return termOf(is_negative ? -number : number)
}

function variableMatch(name: string, { bound, named, slots }: Scope): Match {
  if (name === '_') return () => true
  const known = bound.get(name)
  if (known !== undefined) {
    return (evaluation, term) => isSame(evaluation, evaluation.variables[known] as ErlangTerm, term)
  }
  const slot = named.get(name) ?? slots.count++
  named.set(name, slot)
  bound.set(name, slot)
  return (evaluation, term) => {
    evaluation.variables[slot] = term
    return true
  }
}

function allMatch(
  evaluation: Evaluation,
  parts: readonly Match[],
  items: readonly ErlangTerm[],
): boolean {
  return parts.every((match, at) => match(evaluation, items[at] as ErlangTerm))
}

function listMatch(parts: readonly Match[], tail: Match | undefined): Match {
  return (evaluation, term) => {
    const items = listOf(evaluation, term)
    if (items === undefined || items.length < parts.length) return false
    if (tail === undefined && items.length > parts.length) return false
    if (!allMatch(evaluation, parts, items)) return false
    if (tail === undefined) return true
    const rest = sized(evaluation, remainder(term, items.slice(parts.length)))
    return rest !== undefined && tail(evaluation, rest)
  }
}

function mapMatch(pattern: Extract<Expression, { kind: 'map' }>, scope: Scope): Match {
  const entries = pattern.entries.map(([key, value]) => {
    return { keyIn: mapKey(key, scope), match: compileMatch(value, scope) }
  })
  if (pattern.sign === '=>' && entries.length > 0) {
    throw mistakeOf(scope, pattern, 'a pattern of a map is written #{Key := Pattern}')
  }
  return (evaluation, term) =>
    (isMap(term) || isJsonObject(term)) &&
    entries.every(({ keyIn, match }) => {
      const value = valueAt(evaluation, term, keyIn(evaluation))
      return value !== undefined && match(evaluation, value)
    })
}

function mapKey(key: Expression, scope: Scope): (evaluation: Evaluation) => ErlangTerm {
  const constant = constantOf(key, scope)
  if (constant !== undefined) return () => constant
  if (key.kind !== 'variable') {
    throw mistakeOf(scope, key, 'a key of a pattern is a text, an atom, a number or a variable')
  }
  const slot = slotOf(scope, key, key.name)
  return ({ variables }) => variables[slot] as ErlangTerm
}

function valueAt(evaluation: Evaluation, term: ErlangTerm, key: ErlangTerm): Result {
  if (isMap(term)) return term.pairs.find(([own]) => isSame(evaluation, own, key))?.[1]
  if (!isJsonObject(term) || typeof key !== 'string' || !Object.hasOwn(term, key)) return undefined
  return term[key] as JsonValue
}

/** `<<"text", Rest/binary>>`: a text that begins so. */
function binaryMatch(pattern: Expression, parts: readonly Expression[], scope: Scope): Match {
  const texts = parts.map((part) => constantOf(part, scope))
  const last = parts.at(-1)
  const rest = typeof texts.at(-1) === 'string' || last === undefined ? undefined : last
  if (rest !== undefined) texts.pop()
  if (!texts.every((text) => typeof text === 'string')) {
    throw mistakeOf(scope, pattern, 'in a pattern only the last part of a binary is a variable')
  }
  const prefix = texts.join('')
  const match = rest === undefined ? undefined : compileMatch(rest, scope)
  return (evaluation, term) => {
    if (typeof term !== 'string' || !term.startsWith(prefix)) return false
    if (match === undefined) return term === prefix
    const left = sized(evaluation, term.slice(prefix.length))
    return left !== undefined && match(evaluation, left)
  }
}
