/**
 * Paths into a task's data: `name`, `a.b[0].c`, `\.` and `\[` for a dot or a bracket in a name,
 * `root.x` for the fields of the task itself. An index may hold a template, `items[{{n}}]`: what it
 * gives is one key or index, never more of a path. Only own members are found, so `__proto__` and
 * `constructor` are names like any other.
 */
import { isObject, objectOf } from '../bytes/json.ts'
import type { JsonObject, JsonValue } from '../words/model.ts'
import { textOf } from './convert.ts'
import { type RootName, rootNames } from './logic.ts'
import { quoted } from './quoted.ts'
import {
  deeper,
  type Expansion,
  expectText,
  joinParts,
  mistakeAt,
  type Source,
  skipSpaces,
  type Term,
} from './template-source.ts'

type Key = string | ((run: Expansion) => string | undefined)

/** Names that the format reserves for what later releases read. */
const reserved_names = ['node', 'conv', 'env_var']

/** Reads a path up to `end`, or to the end of the text, and gives what finds its value. */
export function readPath(source: Source, end: '}}' | undefined): Term {
  const start = source.at
  const keys: Key[] = [readName(source, end)]
  for (;;) {
    const char = source.text[source.at]
    if (char === '.') {
      source.at++
      keys.push(readName(source, end))
    } else if (char === '[') {
      if (keys.length === 1 && reserved_names.includes(String(keys[0]).trim())) {
        source.at = start
        throw mistakeAt(source, `"${String(keys[0]).trim()}[…]" is not read by this release`)
      }
      source.at++
      keys.push(deeper(source, () => readIndex(source)))
      skipSpaces(source)
    } else if (char === undefined || atEnd(source, end)) break
    else throw mistakeAt(source, `${quoted(char)} was not expected in a name`)
  }
  return termOf(trimmed(source, keys), source)
}

/** The member of an object or the element of an array; undefined where there is none. */
export function member(value: JsonValue | undefined, key: string): JsonValue | undefined {
  if (Array.isArray(value)) return array_index.test(key) ? value[Number(key)] : undefined
  if (!isObject(value)) return undefined
  return Object.hasOwn(value, key) ? value[key] : undefined
}

const array_index = /^(?:0|[1-9][0-9]{0,9})$/

/** The member a path of one plain name reads: the fast path of conditions. */
export function plainName(text: string): string | undefined {
  return /^[A-Za-z0-9_-]+$/.test(text) ? text : undefined
}

function readName(source: Source, end: '}}' | undefined): string {
  const { text } = source
  let name = ''
  let from = source.at
  while (source.at < text.length) {
    const char = text[source.at] as string
    if (char === '.' || char === '[' || char === ']') break
    if (atEnd(source, end)) break
    if (char === '{' && text[source.at + 1] === '{') {
      throw mistakeAt(source, 'a name cannot come from a template')
    }
    if (char === '\\' && source.at + 1 < text.length) {
      name += text.slice(from, source.at)
      from = source.at + 1
      source.at++
    }
    source.at++
  }
  name += text.slice(from, source.at)
  if (name.trim() === '') throw mistakeAt(source, 'a name was expected')
  return name
}

function readIndex(source: Source): Key {
  const parts = source.parts(']')
  expectText(source, ']')
  if (parts.every((part) => typeof part === 'string')) {
    const key = parts.join('').trim()
    if (key === '') throw mistakeAt(source, 'an index was expected')
    return key
  }
  return (run) => joinParts(parts, run, indexText)?.trim()
}

/** A missing part names no element, so that `items[{{n}}]` without an n is missing too. */
function indexText(value: JsonValue | undefined): string | undefined {
  return value === undefined ? undefined : textOf(value)
}

function atEnd(source: Source, end: '}}' | undefined): boolean {
  return end !== undefined && source.text.startsWith(end, source.at)
}

/** White space around a whole path is not part of its names. */
function trimmed(source: Source, keys: Key[]): Key[] {
  const first = keys[0]
  if (typeof first === 'string') keys[0] = first.trimStart()
  const last = keys.at(-1)
  if (typeof last === 'string' && source.text[source.at - 1] === ' ') {
    keys[keys.length - 1] = last.trimEnd()
  }
  return keys
}

function termOf(keys: readonly Key[], source: Source): Term {
  const [first, second] = keys
  if (first === 'root' && typeof second === 'string' && keys.length === 2) {
    const name = rootNames.find((known) => known === second)
    if (name !== undefined) return (run) => run.scope.root(name satisfies RootName)
    source.warn(`"root.${second}" is no field of a task and is looked for in its data`)
  }
  if (keys.length === 1 && typeof first === 'string') {
    return (run) => {
      const data: JsonObject = objectOf(run.scope.doc)
      return Object.hasOwn(data, first) ? data[first] : undefined
    }
  }
  return (run) => {
    let value: JsonValue | undefined = objectOf(run.scope.doc)
    for (const key of keys) {
      const name = typeof key === 'string' ? key : key(run)
      if (name === undefined || value === undefined) return undefined
      value = member(value, name)
    }
    return value
  }
}
