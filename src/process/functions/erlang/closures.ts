/**
 * Closures of expressions that bind no variable: composite terms, members, prefix operators and
 * chains of operators.
 */
import type { JsonObject, JsonValue } from '../../../core/model.ts'
import { type Apply, type OperatorLevel, prefixOperators } from './operators.ts'
import {
  charsOf,
  type ErlangTerm,
  type Evaluation,
  failTerm,
  isJsonObject,
  listOf,
  type MapPair,
  mapOf,
  type Result,
  readingSteps,
  shown,
  sized,
  spend,
  tooLong,
  undefined_atom,
} from './terms.ts'

/** Undefined where the evaluation has failed. */
export type Evaluate = (evaluation: Evaluation) => Result

export type Make = (evaluation: Evaluation, parts: readonly ErlangTerm[]) => Result

export function withAll(name: string, parts: readonly Evaluate[], make: Make): Evaluate {
  return (evaluation) => {
    const terms: ErlangTerm[] = []
    let steps = 1
    for (const part of parts) {
      const term = part(evaluation)
      if (term === undefined) return undefined
      steps += 1 + readingSteps(term)
      terms.push(term)
    }
    if (!spend(evaluation, steps)) return undefined
    const made = make(evaluation, terms)
    if (made !== undefined && evaluation.failure === undefined) return made
    const given = terms.slice(0, 4).map(shown).join(', ')
    return failTerm(evaluation, `${name} has no value for ${given}`)
  }
}

export const listOfParts: Make = (evaluation, parts) => sized(evaluation, parts)

export const listWithTail: Make = (evaluation, parts) => {
  const tail = listOf(evaluation, parts.at(-1) as ErlangTerm)
  return tail && sized(evaluation, [...parts.slice(0, -1), ...tail])
}

export const textOfParts: Make = (evaluation, parts) => {
  if (!parts.every((part) => typeof part === 'string')) return undefined
  return charsOf(parts) > evaluation.size_max
    ? tooLong(evaluation)
    : sized(evaluation, parts.join(''))
}

export const mapOfParts: Make = (evaluation, parts) => {
  const pairs: MapPair[] = []
  for (let at = 0; at < parts.length; at += 2) {
    pairs.push([parts[at] as ErlangTerm, parts[at + 1] as ErlangTerm])
  }
  return mapOf(evaluation, pairs)
}

export function membersOf(of: Evaluate, keys: readonly string[]): Evaluate {
  return (evaluation) => {
    let term = of(evaluation)
    for (const key of keys) {
      if (term === undefined) return undefined
      const object: JsonObject = isJsonObject(term) ? term : {}
      term = Object.hasOwn(object, key) ? (object[key] as JsonValue) : undefined_atom
    }
    return term
  }
}

export function prefixed(signs: readonly string[], value: Evaluate): Evaluate {
  const applied = signs.map((sign) => ({ sign, apply: prefixOperators[sign] as Apply })).reverse()
  return (evaluation) => {
    let term = value(evaluation)
    for (const { sign, apply } of applied) {
      if (term === undefined || !spend(evaluation, 1 + readingSteps(term))) return undefined
      term = apply(evaluation, term) ?? failTerm(evaluation, `${sign} ${shown(term)} has no value`)
    }
    return term
  }
}

export interface Link {
  readonly sign: string
  readonly apply: Apply
  readonly operand: Evaluate
}

/** `andalso` and `orelse`: what cannot change the value is not evaluated. */
function lazyChain(start: Evaluate, links: readonly Link[]): Evaluate {
  return (evaluation) => {
    let term = start(evaluation)
    for (const { sign, operand } of links) {
      if (term === undefined || !spend(evaluation, 1)) return undefined
      if (typeof term !== 'boolean') {
        return failTerm(evaluation, `${sign}: ${shown(term)} is neither true nor false`)
      }
      if (term === (sign === 'orelse')) return term
      term = operand(evaluation)
    }
    return term
  }
}

export function chained(
  order: OperatorLevel['order'],
  start: Evaluate,
  links: readonly Link[],
): Evaluate {
  if (order === 'lazy') return lazyChain(start, links)
  if (order === 'right') return rightChain(start, links)
  return (evaluation) => {
    let term = start(evaluation)
    for (const link of links) {
      const right = term === undefined ? undefined : link.operand(evaluation)
      if (term === undefined || right === undefined) return undefined
      term = applied(evaluation, link, term, right)
    }
    return term
  }
}

function applied(
  evaluation: Evaluation,
  { sign, apply }: Link,
  left: ErlangTerm,
  right: ErlangTerm,
): Result {
  if (!spend(evaluation, 1 + readingSteps(left) + readingSteps(right))) return undefined
  const made = apply(evaluation, left, right)
  if (made !== undefined && evaluation.failure === undefined) return made
  return failTerm(evaluation, `${shown(left)} ${sign} ${shown(right)} has no value`)
}

/** `++` and `--`: all operands from the left, then the operators from the right. */
function rightChain(start: Evaluate, links: readonly Link[]): Evaluate {
  return (evaluation) => {
    const terms: ErlangTerm[] = []
    for (const operand of [start, ...links.map((link) => link.operand)]) {
      const term = operand(evaluation)
      if (term === undefined) return undefined
      terms.push(term)
    }
    let right = terms.pop()
    for (let at = links.length - 1; at >= 0; at--) {
      if (right === undefined) return undefined
      right = applied(evaluation, links[at] as Link, terms[at] as ErlangTerm, right)
    }
    return right
  }
}
