/**
 * What the parsers of templates, paths and functions share: the cursor over a text, compiled terms,
 * and the expansion that evaluates them. Parsers import only this file and call each other through
 * the cursor, which avoids a circle of imports.
 *
 * Parsing throws a `ParseFault` at the first mistake, which template.ts catches; `notTemplate`
 * marks text that only looks like a template. Evaluation never throws: it sets the failure of the
 * expansion.
 */
import { parseJson, stringifyJson } from '../../codec/json.ts'
import type { JsonValue } from '../../core/model.ts'
import { template_depth_max, value_bounds } from '../definition-limits.ts'
import type { EvaluationContext } from '../logic.ts'
import { truncated } from '../report.ts'
import { textOf } from '../values.ts'

/** One evaluation of all templates of a logic, for one task. */
export interface Expansion {
  readonly context: EvaluationContext
  /** Characters that templates may still insert; each is at least a byte of the task's data. */
  left_chars: number
  failure: ExpansionFailure | undefined
}

export interface ExpansionFailure {
  readonly why: 'convert' | 'overflow' | 'denied' | 'bind'
  readonly description: string
}

/** Evaluates to the value to insert; undefined where it is missing or the expansion failed. */
export type Term = (expansion: Expansion) => JsonValue | undefined

/** A piece of a template: literal text or a term. */
export type Part = string | Term

export interface TemplateCursor {
  readonly text: string
  at: number
  depth: number
  /** Whether a part that only looks like a template, or fails when it runs, has been warned of. */
  has_text: boolean
  /** Whether the parenthesis of a known function did not close. */
  has_unclosed: boolean
  warn(text: string): void
  /** Notes a process that the text names. */
  targetProcess(conv_id: string): void
  /** Notes a variable that the text names. */
  variable(name: string): void
  /** Parses the `{{…}}` or `$.function(…)` that begins here; undefined where neither does. */
  term(): Term | undefined
  /** Where the parenthesis that opens at `open` closes; undefined where it does not. */
  closing(open: number): number | undefined
  /** Parses up to one of the characters of `stops`, which is not consumed, or to the end. */
  parts(stops: string): Part[]
}

export function expansionOf(context: EvaluationContext): Expansion {
  return { context, left_chars: context.task_bytes_max, failure: undefined }
}

/** Fails the expansion. The first failure is kept. */
export function failWith(
  expansion: Expansion,
  why: ExpansionFailure['why'],
  description: string,
): undefined {
  expansion.failure ??= { why, description }
  return undefined
}

/**
 * Joins parts to a text, each value as `spell` writes it; undefined where the expansion failed. It
 * fails with an overflow before the text gets longer than the expansion may still insert.
 */
export function joinParts(
  parts: readonly Part[],
  expansion: Expansion,
  spell: (value: JsonValue | undefined, part: number) => string | undefined = spellText,
): string | undefined {
  let text = ''
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] as Part
    let piece: string | undefined
    if (typeof part === 'string') piece = part
    else {
      const value = part(expansion)
      if (expansion.failure !== undefined) return undefined
      piece = spell(value, at)
      if (piece === undefined) return undefined
    }
    if (text.length + piece.length > expansion.left_chars) {
      const { task_bytes_max } = expansion.context
      return failWith(expansion, 'overflow', `longer than ${task_bytes_max} bytes`)
    }
    text += piece
  }
  return text
}

/** A text as it is, any other value as its JSON, a missing one as the empty text. */
export function spellText(value: JsonValue | undefined): string {
  return value === undefined ? '' : textOf(value)
}

/** A function's argument: the value of a single term, else the parts as text. */
export function argumentOf(parts: readonly Part[]): Term {
  const filled = parts.filter((part) => typeof part !== 'string' || part.trim() !== '')
  const [only] = filled
  return filled.length === 1 && typeof only === 'function'
    ? only
    : (expansion) => joinParts(parts, expansion)
}

/** What parsing throws: a plain object, because a text may hold a great many of them. */
export interface ParseFault {
  readonly parse_fault: string
  /** Whether what was parsed only looked like a template, so it is text and no mistake. */
  readonly is_text: boolean
  /** Whether it is a mistake in every function around it too. */
  readonly is_final?: boolean
}

/**
 * The fault for a mistake at the cursor. Characters are counted from 1. At the end of the text a
 * brace or a parenthesis did not close, so it was no template.
 */
export function mistakeAt(
  { at, text }: TemplateCursor,
  what: string,
  is_text = at >= text.length,
): ParseFault {
  return { parse_fault: `${what} at character ${at + 1}`, is_text }
}

/** The fault where braces hold no path, or a function is not known: a text, not a mistake. */
export function notTemplate(cursor: TemplateCursor, what: string): ParseFault {
  return mistakeAt(cursor, what, true)
}

export function isParseFault(error: unknown): error is ParseFault {
  return typeof error === 'object' && error !== null && 'parse_fault' in error
}

/** Parses a nested construct, within the limit on nesting. */
export function deeper<Made>(cursor: TemplateCursor, read: () => Made): Made {
  if (++cursor.depth > template_depth_max) {
    const too_deep = mistakeAt(cursor, `nested deeper than ${template_depth_max}`)
    throw { ...too_deep, is_final: true } satisfies ParseFault
  }
  const made = read()
  cursor.depth--
  return made
}

/** Consumes what a sticky pattern matches here; undefined where it does not match. */
export function matchAt(
  cursor: Pick<TemplateCursor, 'text' | 'at'>,
  pattern: RegExp,
): RegExpExecArray | undefined {
  pattern.lastIndex = cursor.at
  const match = pattern.exec(cursor.text)
  if (match === null) return undefined
  cursor.at = pattern.lastIndex
  return match
}

/** Consumes `text`, which must be next. */
export function expectText(cursor: TemplateCursor, text: string): void {
  if (!cursor.text.startsWith(text, cursor.at)) throw mistakeAt(cursor, `"${text}" was expected`)
  cursor.at += text.length
}

export function skipSpaces(cursor: TemplateCursor): void {
  while (cursor.text[cursor.at] === ' ') cursor.at++
}

/** The text of a value outside quotes; undefined where the expansion failed. */
type SpellOutside = (value: JsonValue | undefined, expansion: Expansion) => string | undefined

/** Makes the JSON text; the function returns undefined where the expansion failed. */
export function jsonTemplate(
  parts: readonly Part[],
  spellOutside: SpellOutside = spellText,
): (expansion: Expansion) => string | undefined {
  const is_in_string = quotesAround(parts)
  return (expansion) =>
    joinParts(parts, expansion, (value, part) =>
      is_in_string[part]
        ? JSON.stringify(spellText(value)).slice(1, -1)
        : spellOutside(value, expansion),
    )
}

/** Allows one JSON value outside quotes, so that no value can add a member. */
export const spellJson: SpellOutside = (value, expansion) => {
  const description = `Value: ${truncated(spellText(value))}, Try convert to: JSON`
  return jsonOf(value) ?? failWith(expansion, 'convert', description)
}

/** For each part of the template: whether it is inside quotes. */
function quotesAround(parts: readonly Part[]): boolean[] {
  const inside: boolean[] = []
  let is_in_string = false
  for (const part of parts) {
    inside.push(is_in_string)
    if (typeof part !== 'string') continue
    for (let at = 0; at < part.length; at++) {
      if (part[at] === '\\' && is_in_string) at++
      else if (part[at] === '"') is_in_string = !is_in_string
    }
  }
  return inside
}

function jsonOf(value: JsonValue | undefined): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string') return stringifyJson(value)
  try {
    parseJson(value, value_bounds)
    return value
  } catch {
    return undefined
  }
}
