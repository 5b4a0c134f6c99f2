/**
 * Keys of assignments. `a.b` and `l[0]` are paths; `\.` and `\[` are literal; a template gives one
 * name or index, never more of a path. A key that is no path is one name.
 *
 * Setting copies what it changes, creates missing objects and arrays, pads arrays with null, and
 * fails where the path leads through any other value or beyond the bounds.
 */
import { isObject, setMember } from '../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../core/model.ts'
import { key_index_max, value_bounds } from '../definition-limits.ts'
import { type Report, truncated } from '../report.ts'
import {
  type Expansion,
  expectText,
  failWith,
  notTemplate,
  type Part,
  type TemplateCursor,
} from '../templates/parser.ts'
import { isArrayIndex, member } from '../templates/path.ts'
import { compileTemplate, parsedText, type Template, templateOf } from '../templates/template.ts'
import { textOf } from '../values.ts'
import { failConversion } from './failures.ts'

/** One key for one task; undefined where the expansion failed. */
type Name = (expansion: Expansion) => string | undefined

/** A name that follows the first. In brackets it may be the index of an array. */
interface Step {
  readonly name: Name
  readonly in_brackets: boolean
}

export interface DataKey {
  /** The key of the data. */
  readonly key: Name
  /** The names within its value; empty where the key is no path. */
  readonly steps: readonly Step[]
}

/** The objects and arrays that the assignments of one list have made. */
export type MadeHere = Set<JsonValue>

export function readDataKey(text: string, report: Report): DataKey {
  const may_be_path = /[.[]/.test(text)
  const names = may_be_path ? parsedText(text, report, 'the key', readNames) : undefined
  if (names === undefined) return readKey(text, report)
  const [key, ...steps] = names.map(({ parts, in_brackets }) => ({
    name: nameOf(templateOf(parts), text),
    in_brackets,
  })) as [Step, ...Step[]]
  return { key: key.name, steps }
}

/** A key that is one name, dots and brackets included. */
export function readKey(text: string, report: Report): DataKey {
  return { key: nameOf(compileTemplate(text, report, 'the key'), text), steps: [] }
}

function nameOf(template: Template, text: string): Name {
  return (expansion) => {
    const made = template.value(expansion)
    if (made !== undefined) return textOf(made)
    return failWith(expansion, 'convert', `the key ${truncated(text)} is missing`)
  }
}

interface PathName {
  readonly parts: readonly Part[]
  readonly in_brackets: boolean
}

function readNames(cursor: TemplateCursor): readonly PathName[] {
  const names: PathName[] = [{ parts: readName(cursor), in_brackets: false }]
  for (;;) {
    const char = cursor.text[cursor.at]
    if (char === undefined) return names
    const in_brackets = char === '['
    if (!in_brackets && char !== '.') throw notTemplate(cursor, '"." or "[" was expected')
    cursor.at++
    names.push({ parts: in_brackets ? readIndex(cursor) : readName(cursor), in_brackets })
    if (names.length > value_bounds.nesting_max) throw notTemplate(cursor, 'too many names')
  }
}

function readName(cursor: TemplateCursor): Part[] {
  const { text } = cursor
  const parts: Part[] = []
  for (;;) {
    for (const part of cursor.parts('.[]\\')) parts.push(part)
    if (text[cursor.at] !== '\\') break
    // At the end of the text a backslash is one.
    parts.push(text[cursor.at + 1] ?? '\\')
    cursor.at = Math.min(cursor.at + 2, text.length)
  }
  return expectName(cursor, parts)
}

function readIndex(cursor: TemplateCursor): Part[] {
  const parts = expectName(cursor, cursor.parts(']'))
  expectText(cursor, ']')
  return parts
}

/** Neighbouring texts become one, so that a constant name is one part. */
function expectName(cursor: TemplateCursor, given: readonly Part[]): Part[] {
  const parts: Part[] = []
  for (const part of given) {
    const last = parts.at(-1)
    if (typeof part !== 'string' || typeof last !== 'string') parts.push(part)
    else parts[parts.length - 1] = last + part
  }
  if (parts.length === 0) throw notTemplate(cursor, 'a name was expected')
  return parts
}

/** Sets the value at the path; the expansion has failed where it cannot be. */
export function setAtPath(
  data: JsonObject,
  key: string,
  steps: readonly Step[],
  value: JsonValue,
  expansion: Expansion,
  made: MadeHere,
): void {
  if (isDeep(value, value_bounds.nesting_max - steps.length)) {
    failWith(expansion, 'convert', `the key ${truncated(key)} leads too deep for its value`)
    return
  }
  let holder: JsonObject | JsonValue[] = data
  let name = key
  let path = key
  for (const { name: nameIn, in_brackets } of steps) {
    const next = nameIn(expansion)
    if (next === undefined || expansion.failure !== undefined) return
    const found: JsonValue = member(holder, name) ?? null
    const is_index = isArrayIndex(next)
    const is_list = found === null ? in_brackets && is_index : Array.isArray(found)
    if (is_list ? !is_index : found !== null && !isObject(found)) {
      failConversion(expansion, path, found, is_index && in_brackets ? 'array' : 'object')
      return
    }
    const opened = ownCopy(found, is_list, made)
    put(holder, name, opened, expansion)
    holder = opened
    name = next
    path += in_brackets ? `[${next}]` : `.${next}`
    expansion.left_chars -= next.length
  }
  put(holder, name, value, expansion)
}

function ownCopy(found: JsonValue, is_list: boolean, made: MadeHere): JsonObject | JsonValue[] {
  if (made.has(found)) return found as JsonObject | JsonValue[]
  const copy = is_list ? [...((found ?? []) as JsonValue[])] : { ...(found as JsonObject | null) }
  made.add(copy)
  return copy
}

function put(
  holder: JsonObject | JsonValue[],
  name: string,
  value: JsonValue,
  expansion: Expansion,
): void {
  if (!Array.isArray(holder)) {
    setMember(holder, name, value)
    return
  }
  const index = Number(name)
  if (index > key_index_max) {
    failWith(expansion, 'convert', `the index ${name} of a key is over ${key_index_max}`)
    return
  }
  while (holder.length < index) {
    holder.push(null)
    expansion.left_chars -= 'null,'.length
  }
  holder[index] = value
}

export function isDeep(value: JsonValue, levels_left: number): boolean {
  if (!Array.isArray(value) && !isObject(value)) return false
  return levels_left === 0 || Object.values(value).some((one) => isDeep(one, levels_left - 1))
}
