/**
 * The ground that templates stand on: what a part of a compiled template is, how it runs, and the
 * cursor it is read with. The readers of paths and functions see only this file, so that functions
 * can hold templates and templates functions without a circle of imports.
 *
 * Reading throws a `bad_definition` fault at the first mistake of a text; `compileTemplate` alone
 * catches it. Running never throws: it leaves a failure and gives undefined.
 */
import { fault } from '../../core/faults.ts'
import type { JsonValue } from '../../core/model.ts'
import { template_depth_max } from '../definition-limits.ts'
import type { EvaluationContext } from '../logic.ts'

/** One run of a logic's templates. */
export interface Expansion {
  readonly context: EvaluationContext
  /** What may still be put in, in characters; a character is at least a byte of the task's data. */
  left_chars: number
  failure: ExpansionFailure | undefined
}

export interface ExpansionFailure {
  readonly why: 'convert' | 'overflow'
  readonly description: string
}

/**
 * What stands in a template's place: its value, undefined where it is missing or the run failed.
 */
export type Term = (run: Expansion) => JsonValue | undefined

/** A piece of a template: text as written, or a term. */
export type Part = string | Term

/** The cursor over one text of a definition. */
export interface TemplateCursor {
  readonly text: string
  at: number
  depth: number
  warn(text: string): void
  /** Notes a process that the text names. */
  targetProcess(conv_id: string): void
  /** Reads the `{{…}}` or `$.function(…)` that begins here; undefined where none does. */
  term(): Term | undefined
  /** Reads up to one of the characters of `stops`, which is left standing, or to the end. */
  parts(stops: string): Part[]
}

export function expansionOf(context: EvaluationContext): Expansion {
  return { context, left_chars: context.task_bytes_max, failure: undefined }
}

/** Ends the run: the first failure stays. */
export function failWith(
  run: Expansion,
  why: ExpansionFailure['why'],
  description: string,
): undefined {
  run.failure ??= { why, description }
  return undefined
}

/**
 * Joins parts, each term's value as `spell` has it. Stops with an overflow before the text is
 * longer than the run may still put in.
 */
export function joinParts(
  parts: readonly Part[],
  run: Expansion,
  spell: (value: JsonValue | undefined, part: number) => string | undefined,
): string | undefined {
  let text = ''
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] as Part
    let piece: string | undefined
    if (typeof part === 'string') piece = part
    else {
      const value = part(run)
      if (run.failure !== undefined) return undefined
      piece = spell(value, at)
      if (piece === undefined) return undefined
    }
    if (text.length + piece.length > run.left_chars) {
      return failWith(run, 'overflow', `longer than ${run.context.task_bytes_max} bytes`)
    }
    text += piece
  }
  return text
}

/** The fault that ends reading: what is wrong and at which character, counted from 1. */
export function mistakeAt(cursor: TemplateCursor, what: string): Error {
  return fault('bad_definition', `${what} at character ${cursor.at + 1}`)
}

/** Reads what stands inside something else, within the bound of depth. */
export function deeper<Made>(cursor: TemplateCursor, read: () => Made): Made {
  if (++cursor.depth > template_depth_max) {
    throw mistakeAt(cursor, `nested deeper than ${template_depth_max}`)
  }
  const made = read()
  cursor.depth--
  return made
}

/** Steps over `text`, which must stand here. */
export function expectText(cursor: TemplateCursor, text: string): void {
  if (!cursor.text.startsWith(text, cursor.at)) throw mistakeAt(cursor, `"${text}" was expected`)
  cursor.at += text.length
}

export function skipSpaces(cursor: TemplateCursor): void {
  while (cursor.text[cursor.at] === ' ') cursor.at++
}
