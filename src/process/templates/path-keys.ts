/**
 * The keys of a path: names between dots, and indexes in brackets. `\.` and `\[` are a dot and a
 * bracket in a name. An index may hold a template: what it gives is one key or index, never more of
 * a path. Only own members are found, so `__proto__` and `constructor` are names like any other.
 */
import { isObject } from '../../codec/json.ts'
import type { JsonValue } from '../../core/model.ts'
import { quoted } from '../report.ts'
import { textOf } from '../values.ts'
import {
  deeper,
  type Expansion,
  expectText,
  joinParts,
  mistakeAt,
  skipSpaces,
  type TemplateCursor,
} from './parser.ts'

/** A key as it is written, or as it comes out for one task. */
export type Key = string | ((run: Expansion) => string | undefined)

export type PathEnd = '}}' | undefined

/** Reads the keys that follow, up to `end`, which is left standing, or to the end of the text. */
export function readKeys(cursor: TemplateCursor, end: PathEnd, keys: Key[]): Key[] {
  for (;;) {
    const char = cursor.text[cursor.at]
    if (char === '.') {
      cursor.at++
      keys.push(
        cursor.text.startsWith('{{', cursor.at) ? readGivenName(cursor) : readName(cursor, end),
      )
    } else if (char === '[') keys.push(readIndex(cursor))
    else if (char === undefined || atEnd(cursor, end)) return trimmed(cursor, keys)
    else throw mistakeAt(cursor, `${quoted(char)} was not expected in a name`)
  }
}

export function readName(cursor: TemplateCursor, end: PathEnd): string {
  const { text } = cursor
  let name = ''
  let from = cursor.at
  while (cursor.at < text.length) {
    const char = text[cursor.at] as string
    if (char === '.' || char === '[' || char === ']') break
    if (atEnd(cursor, end)) break
    if (char === '{' && text[cursor.at + 1] === '{') {
      throw mistakeAt(cursor, 'a name cannot come from a template')
    }
    if (char === '\\' && cursor.at + 1 < text.length) {
      name += text.slice(from, cursor.at)
      from = cursor.at + 1
      cursor.at++
    }
    cursor.at++
  }
  name += text.slice(from, cursor.at)
  if (name.trim() === '') throw mistakeAt(cursor, 'a name was expected')
  return name
}

/** A name that a template gives: one key, whatever stands in it. */
function readGivenName(cursor: TemplateCursor): Key {
  const term = cursor.term()
  if (term === undefined) throw mistakeAt(cursor, 'a name was expected')
  return (run) => indexText(term(run))
}

/** Reads `[…]`, which begins here. */
export function readIndex(cursor: TemplateCursor): Key {
  cursor.at++
  const key = deeper(cursor, () => readKey(cursor))
  skipSpaces(cursor)
  return key
}

/** A key for one task; undefined where it is missing or the run failed. */
export function keyOf(key: Key, run: Expansion): string | undefined {
  return typeof key === 'string' ? key : key(run)
}

/** What `keys` find in a value, from `from` on. */
export function follow(
  value: JsonValue | undefined,
  keys: readonly Key[],
  from: number,
  run: Expansion,
): JsonValue | undefined {
  let found = value
  for (let at = from; at < keys.length; at++) {
    const name = keyOf(keys[at] as Key, run)
    if (name === undefined || found === undefined) return undefined
    found = member(found, name)
  }
  return found
}

/** The member of an object or the element of an array; undefined where there is none. */
export function member(value: JsonValue | undefined, key: string): JsonValue | undefined {
  if (Array.isArray(value)) return array_index.test(key) ? value[Number(key)] : undefined
  if (!isObject(value)) return undefined
  return Object.hasOwn(value, key) ? value[key] : undefined
}

const array_index = /^(?:0|[1-9][0-9]{0,9})$/

function readKey(cursor: TemplateCursor): Key {
  const parts = cursor.parts(']')
  expectText(cursor, ']')
  if (parts.every((part) => typeof part === 'string')) {
    const key = parts.join('').trim()
    if (key === '') throw mistakeAt(cursor, 'an index was expected')
    return key
  }
  return (run) => joinParts(parts, run, indexText)?.trim()
}

/** A missing part names no element, so that `items[{{n}}]` without an n is missing too. */
function indexText(value: JsonValue | undefined): string | undefined {
  return value === undefined ? undefined : textOf(value)
}

function atEnd(cursor: TemplateCursor, end: PathEnd): boolean {
  return end !== undefined && cursor.text.startsWith(end, cursor.at)
}

/** White space around a whole path is not part of its names. */
function trimmed(cursor: TemplateCursor, keys: Key[]): Key[] {
  const last = keys.at(-1)
  if (typeof last === 'string' && cursor.text[cursor.at - 1] === ' ') {
    keys[keys.length - 1] = last.trimEnd()
  }
  return keys
}
