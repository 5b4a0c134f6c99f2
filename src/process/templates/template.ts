/**
 * Templates: `{{path}}` and `$.function(…)` in the texts of a definition (process format). A text
 * is read once, here, and compiled to closures; what a template puts in is data and is never read
 * again.
 *
 * A text that is exactly one template has the value of what it names, with its type; missing is
 * absent. Inside longer text a value is put in as text: a text as it is, anything else (null too)
 * as its compact JSON, numbers by token; missing is the empty string. Reading is linear in the
 * text's length.
 */
import { isFault } from '../../core/faults.ts'
import type { JsonValue } from '../../core/model.ts'
import { functionTable } from '../functions/table.ts'
import type { Report } from '../report.ts'
import { quoted } from '../report.ts'
import { textOf } from '../values.ts'
import {
  deeper,
  type Expansion,
  expectText,
  joinParts,
  mistakeAt,
  type Part,
  type TemplateCursor,
  type Term,
} from './parser.ts'
import { readPath } from './path.ts'

export interface Template {
  /** The text itself, where nothing is put in. */
  readonly constant: string | undefined
  readonly parts: readonly Part[]
  /** With the type of a lone template, else text. Undefined where absent or the run failed. */
  value(run: Expansion): JsonValue | undefined
  /** As text; undefined only where the run failed. */
  text(run: Expansion): string | undefined
}

/** Compiles a text. Mistakes go to `report` behind `place`; the result then puts nothing in. */
export function compileTemplate(text: string, report: Report, place: string): Template {
  const cursor = sourceOf(text, report, place)
  try {
    if (!text.isWellFormed()) throw mistakeAt(cursor, 'a lone surrogate stands in the text')
    return templateOf(cursor.parts(''))
  } catch (error) {
    if (!isFault(error) || error.code !== 'bad_definition') throw error
    report.mistake(`${place} ${quoted(text)}: ${error.message}`)
    return templateOf([])
  }
}

/** Compiles the path a condition names without braces. */
export function compileName(text: string, report: Report, place: string): Term {
  const cursor = sourceOf(text, report, place)
  try {
    return readPath(cursor, undefined)
  } catch (error) {
    if (!isFault(error) || error.code !== 'bad_definition') throw error
    report.mistake(`${place} ${quoted(text)}: ${error.message}`)
    return () => undefined
  }
}

/** Whether a text may hold a template. */
export function looksTemplated(text: string): boolean {
  return text.includes('{{') || function_start.test(text)
}

function templateOf(parts: readonly Part[]): Template {
  const [first] = parts
  const text = (run: Expansion): string | undefined => joinParts(parts, run, spellText)
  if (parts.length === 0) return constantTemplate('')
  if (parts.length === 1) {
    if (typeof first === 'string') return constantTemplate(first)
    return { constant: undefined, parts, value: first as Term, text }
  }
  return { constant: undefined, parts, value: text, text }
}

function constantTemplate(constant: string): Template {
  const text = (): string => constant
  return { constant, parts: [constant], value: text, text }
}

function spellText(value: JsonValue | undefined): string {
  return value === undefined ? '' : textOf(value)
}

const function_start = /\$\.[A-Za-z_][A-Za-z0-9_]*\(/
const function_name = /\$\.([A-Za-z_][A-Za-z0-9_]*)\(/y

function sourceOf(text: string, report: Report, place: string): TemplateCursor {
  const cursor: TemplateCursor = {
    text,
    at: 0,
    depth: 0,
    warn: (warning) => report.warning(`${place}: ${warning}`),
    targetProcess: (conv_id) => report.targetProcess(conv_id),
    term: () => readTerm(cursor),
    parts: (stops) => readParts(cursor, stops),
  }
  return cursor
}

function readParts(cursor: TemplateCursor, stops: string): Part[] {
  const { text } = cursor
  const parts: Part[] = []
  let from = cursor.at
  while (cursor.at < text.length) {
    const char = text[cursor.at] as string
    if (stops.includes(char)) break
    const at = cursor.at
    const term = char === '{' || char === '$' ? readTerm(cursor) : undefined
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

function readTerm(cursor: TemplateCursor): Term | undefined {
  const { text, at } = cursor
  if (text.startsWith('{{', at)) return readBraces(cursor)
  function_name.lastIndex = at
  const match = function_name.exec(text)
  if (match === null) return undefined
  const row = functionTable.find(({ name }) => name === match[1])
  if (row === undefined) throw mistakeAt(cursor, `"$.${match[1]}" is no function of this release`)
  cursor.at = function_name.lastIndex
  return deeper(cursor, () => row.read(cursor))
}

/**
 * Of three braces the first is text, as in `{"a":{{{x}}:1}}`; a name that is a template is none.
 */
function readBraces(cursor: TemplateCursor): Term | undefined {
  const { text, at } = cursor
  if (text.startsWith('{{{{', at)) throw mistakeAt(cursor, 'a name cannot come from a template')
  if (text[at + 2] === '{') return undefined
  cursor.at += 2
  return deeper(cursor, () => {
    const term = readPath(cursor, '}}')
    expectText(cursor, '}}')
    return term
  })
}
