/**
 * What a function of a template is, and how its arguments are read. A function reads its own text
 * from behind its opening parenthesis to behind its end, once, and gives what computes it.
 */
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { truncated } from '../report.ts'
import {
  type Expansion,
  failWith,
  joinParts,
  mistakeAt,
  type Part,
  type TemplateCursor,
  type Term,
} from '../templates/parser.ts'
import { doubleOf, textOf } from '../values.ts'

export interface FunctionKind {
  /** Behind `$.`. */
  readonly name: string
  readonly syntax: readonly string[]
  readonly result: 'number' | 'string' | 'array'
  readonly examples: readonly FunctionExample[]
  read(cursor: TemplateCursor): Term
}

/** Worked: `text` over `data` gives `gives`, at 2024-02-29 12:30:15.250 UTC with chance 0.5. */
export interface FunctionExample {
  readonly text: string
  readonly data?: JsonObject
  readonly gives: JsonValue
}

/** A computed number, or NaN once the run has failed. */
export type NumberTerm = (run: Expansion) => number

/** Reads an argument that must be a whole number, up to one of `stops`, which is left standing. */
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
  return (run) => {
    const number = wholeNumber(argumentValue(parts, run))
    if (number !== undefined) return number
    failWith(run, 'convert', `${truncated(label)} is no whole number`)
    return Number.NaN
  }
}

function argumentValue(parts: readonly Part[], run: Expansion): JsonValue | undefined {
  const terms = parts.filter((part) => typeof part !== 'string' || part.trim() !== '')
  const [only] = terms
  if (terms.length === 1 && typeof only === 'function') return only(run)
  return joinParts(parts, run, (value) => (value === undefined ? '' : textOf(value)))
}

/** A whole number that a double has exactly, or a text that is one. */
export function wholeNumber(value: JsonValue | undefined): number | undefined {
  const double = doubleOf(value)
  return Number.isSafeInteger(double) ? double : undefined
}

/** A number as JSON has it: there is no minus zero and nothing infinite. */
export function numberResult(run: Expansion, number: number): number | undefined {
  if (run.failure !== undefined) return undefined
  if (!Number.isFinite(number)) return failWith(run, 'convert', 'the result is no finite number')
  return number === 0 ? 0 : number
}
