/**
 * Templates: `{{path}}` and `$.function(…)` in texts of a definition, parsed once and compiled to
 * closures. Inserted values are data and never parsed.
 *
 * A text that is one template has the value with its type, or nothing. In a longer text a value is
 * inserted as text or compact JSON (null included), a missing one as the empty text.
 *
 * Braces that do not close or hold no path, and functions that are unknown or do not close, are
 * text; the first in a text is warned of. Wrong arguments of a known function are a mistake, or
 * fail each expansion (`fails_when_run`). Parsing is linear: a failed read ends at the next braces
 * or the nesting limit.
 */
import type { JsonValue } from '../../core/model.ts'
import type { FunctionKind } from '../functions/function.ts'
import { functionTable } from '../functions/table.ts'
import { quoted, type Report } from '../report.ts'
import {
  deeper,
  type Expansion,
  expectText,
  failWith,
  isParseFault,
  joinParts,
  matchAt,
  mistakeAt,
  notTemplate,
  type ParseFault,
  type Part,
  type TemplateCursor,
  type Term,
} from './parser.ts'
import { nameTerm, readPath } from './path.ts'

export interface Template {
  /** The text itself where it contains no template. */
  readonly constant: string | undefined
  readonly parts: readonly Part[]
  /** The value of a lone template, else the text. Undefined where missing or failed. */
  value(expansion: Expansion): JsonValue | undefined
  /** The text; undefined only where the expansion failed. */
  text(expansion: Expansion): string | undefined
}

/** Compiles a text. A mistake goes to `report` with `place`; the result is then an empty text. */
export function compileTemplate(text: string, report: Report, place: string): Template {
  const parse = (cursor: TemplateCursor): Template => {
    if (!text.isWellFormed()) throw mistakeAt(cursor, 'a lone surrogate stands in the text')
    return templateOf(cursor.parts(''))
  }
  return parsedText(text, report, place, parse) ?? templateOf([])
}

/** Compiles a path without braces. A text that is no path is a name. */
export function compilePath(text: string, report: Report, place: string): Term {
  return parsedText(text, report, place, (cursor) => readPath(cursor, undefined)) ?? nameTerm(text)
}

/** Undefined where the text has a mistake, or is no path, which has been reported. */
export function parsedText<Made>(
  text: string,
  report: Report,
  place: string,
  parse: (cursor: TemplateCursor) => Made,
): Made | undefined {
  try {
    return parse(cursorOf(text, report, place))
  } catch (error) {
    if (!isParseFault(error)) throw error
    const emit = error.is_text ? report.warning : report.mistake
    emit(`${place} ${quoted(text)}: ${error.parse_fault}`)
    return undefined
  }
}

export function looksTemplated(text: string): boolean {
  return text.includes('{{') || function_start.test(text)
}

export function templateOf(parts: readonly Part[]): Template {
  const [first = ''] = parts
  if (parts.length <= 1 && typeof first === 'string') return constantTemplate(first)
  const text = (expansion: Expansion): string | undefined => joinParts(parts, expansion)
  const value = parts.length === 1 ? (first as Term) : text
  return { constant: undefined, parts, value, text }
}

/** A template that is this text and inserts nothing. */
export function constantTemplate(constant: string): Template {
  const text = (): string => constant
  return { constant, parts: [constant], value: text, text }
}

const function_start = /\$\.[A-Za-z_][A-Za-z0-9_]*\(/
const function_name = /\$\.([A-Za-z_][A-Za-z0-9_]*)\(/y

function cursorOf(text: string, report: Report, place: string): TemplateCursor {
  let closings: ReadonlyMap<number, number> | undefined
  const cursor: TemplateCursor = {
    text,
    at: 0,
    depth: 0,
    has_text: false,
    has_unclosed: false,
    warn: (warning) => report.warning(`${place}: ${warning}`),
    targetProcess: (conv_id) => report.targetProcess(conv_id),
    variable: (name) => report.variable(name),
    term: () => readTerm(cursor),
    closing(open) {
      closings ??= closingsIn(text)
      return closings.get(open)
    },
    parts: (stops) => readParts(cursor, stops),
  }
  return cursor
}

/** The parentheses of a text that close, and where. */
function closingsIn(text: string): ReadonlyMap<number, number> {
  const closings = new Map<number, number>()
  const open: number[] = []
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '(') open.push(at)
    else if (text[at] === ')' && open.length > 0) closings.set(open.pop() as number, at)
  }
  return closings
}

function readParts(cursor: TemplateCursor, stops: string): Part[] {
  const { text } = cursor
  const parts: Part[] = []
  let from = cursor.at
  while (cursor.at < text.length) {
    const char = text[cursor.at] as string
    if (stops.includes(char)) break
    const at = cursor.at
    const term = char === '{' || char === '$' ? readTermOrText(cursor) : undefined
    if (term === undefined) cursor.at++
    else {
      if (at > from) parts.push(text.slice(from, at))
      parts.push(term)
      from = cursor.at
    }
  }
  if (cursor.at > from) parts.push(text.slice(from, cursor.at))
  return parts
}

/** Undefined also for what only looks like a template; inside another one that is a fault. */
function readTermOrText(cursor: TemplateCursor): Term | undefined {
  const { at, depth } = cursor
  if (depth > 0) return readTerm(cursor)
  try {
    return readTerm(cursor)
  } catch (error) {
    if (!isParseFault(error) || !error.is_text) throw error
    warnOnce(cursor, `is text there: ${error.parse_fault}`)
    Object.assign(cursor, { at, depth })
    return undefined
  }
}

function warnOnce(cursor: TemplateCursor, text: string): void {
  if (!cursor.has_text) cursor.warn(`${quoted(cursor.text)} ${text}`)
  cursor.has_text = true
}

function readTerm(cursor: TemplateCursor): Term | undefined {
  const { text, at } = cursor
  if (text.startsWith('{{', at)) return readBraces(cursor)
  const name = matchAt(cursor, function_name)?.[1]
  if (name === undefined) return undefined
  const row = functionTable.find((known) => known.name === name)
  if (row !== undefined) return deeper(cursor, () => readCall(cursor, row))
  cursor.at = at
  throw notTemplate(cursor, `"$.${name}" is no function of this release`)
}

function readCall(cursor: TemplateCursor, row: FunctionKind): Term {
  const { at, depth } = cursor
  const isUnclosed = (): boolean => cursor.closing(at - 1) === undefined
  // Without reading it: a text may hold a great many of them.
  if (cursor.has_unclosed && isUnclosed()) throw notTemplate(cursor, '")" is missing')
  try {
    return row.read(cursor)
  } catch (error) {
    if (!isParseFault(error) || error.is_text) throw error
    if (isUnclosed()) {
      cursor.has_unclosed = true
      throw { ...error, is_text: true } satisfies ParseFault
    }
    if (row.fails_when_run !== true || error.is_final === true) {
      throw { ...error, is_final: true } satisfies ParseFault
    }
    warnOnce(cursor, `fails when it runs: ${error.parse_fault}`)
    Object.assign(cursor, { at: (cursor.closing(at - 1) as number) + 1, depth })
    const description = `$.${row.name}: ${error.parse_fault}`
    return (expansion) => failWith(expansion, 'convert', description)
  }
}

/** Of three braces and more the first is text, as in `{"a":{{{x}}:1}}`. */
function readBraces(cursor: TemplateCursor): Term | undefined {
  const { text, at } = cursor
  if (text[at + 2] === '{') return undefined
  cursor.at += 2
  return deeper(cursor, () => {
    const term = readPath(cursor, '}}')
    expectText(cursor, '}}')
    return term
  })
}
