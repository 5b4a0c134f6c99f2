/**
 * What a template function is, and the parsers of its arguments. A function parses its text once,
 * at compilation, and returns the term that computes its value.
 */
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { truncated } from '../report.ts'
import {
  argumentOf,
  type Expansion,
  failWith,
  mistakeAt,
  type TemplateCursor,
  type Term,
} from '../templates/parser.ts'
import { doubleOf } from '../values.ts'

export interface FunctionKind {
  /** The name after `$.`. */
  readonly name: string
  readonly syntax: readonly string[]
  readonly result: 'number' | 'string' | 'array' | 'object'
  readonly examples: readonly FunctionExample[]
  /** Malformed arguments are warned of and fail the expansion; of other functions a mistake. */
  readonly fails_when_run?: true
  /** Parses the arguments, from after the opening parenthesis to after the closing one. */
  read(cursor: TemplateCursor): Term
}

/** `text` over `data` evaluates to `gives` at 2024-02-29 12:30:15.250 UTC, where chance is 0.5. */
export interface FunctionExample {
  readonly text: string
  readonly data?: JsonObject
  readonly gives: JsonValue
}

/** Evaluates to a number; NaN where the expansion failed. */
export type NumberTerm = (expansion: Expansion) => number

/** Parses an argument that must be a whole number, up to one of `stops`, which is not consumed. */
export function readWholeNumber(cursor: TemplateCursor, stops: string): NumberTerm {
  const start = cursor.at
  const parts = cursor.parts(stops)
  const label = cursor.text.slice(start, cursor.at).trim()
  if (parts.every((part) => typeof part === 'string')) {
    const number = wholeNumber(label)
    if (number === undefined) {
      cursor.at = start
      throw mistakeAt(cursor, `${label === '' ? 'nothing' : truncated(label)} is no whole number`)
    }
    return () => number
  }
  return wholeNumberTerm(argumentOf(parts), label)
}

/** The term's value as a whole number; any other value fails the expansion and names `label`. */
export function wholeNumberTerm(term: Term, label: string): NumberTerm {
  return (expansion) => {
    const number = wholeNumber(term(expansion))
    if (number !== undefined) return number
    failWith(expansion, 'convert', `${truncated(label)} is no whole number`)
    return Number.NaN
  }
}

/**
 * A whole number, or a text that is one. One beyond what a double represents exactly is the largest
 * that it does, as the maximum of `$.random` is bounded in the public service.
 */
function wholeNumber(value: JsonValue | undefined): number | undefined {
  const double = doubleOf(value)
  if (double === undefined || !Number.isInteger(double)) return undefined
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(double, Number.MAX_SAFE_INTEGER))
}

/** A number as JSON can hold it: without minus zero, and a failure where it is not finite. */
export function numberResult(expansion: Expansion, number: number): number | undefined {
  if (expansion.failure !== undefined) return undefined
  if (!Number.isFinite(number))
    return failWith(expansion, 'convert', 'the result is no finite number')
  return number === 0 ? 0 : number
}
