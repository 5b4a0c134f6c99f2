/**
 * Paths of templates and conditions:
 *
 * - `name`, `a.b[0].c`: into the task's data; `\.` and `\[` are literal, and a quote needs a
 *   backslash;
 * - `root.x`: a field of the task itself;
 * - `node[id].count`, `.name`, `.public_callback_corezoid`: live tasks, a running sum, the callback
 *   address of a node; `conv[id].node[id].…`: the same of another process;
 * - `conv[id].ref[ref].…`: the data of another task;
 * - `env_var[@name]`, `env_var[number]`: a variable.
 *
 * A process that the task may not read fails the expansion. A template as name or index gives one
 * key, never more of a path. Only own members are found: `__proto__` is a name like any other.
 */
import { isObject, objectOf } from '../../codec/json.ts'
import type { JsonValue } from '../../core/model.ts'
import { rootNames, type TargetProcess } from '../logic.ts'
import { quoted } from '../report.ts'
import { isIdLength, parsedValue, processId, textOf, variableRef } from '../values.ts'
import {
  deeper,
  type Expansion,
  expectText,
  failWith,
  joinParts,
  matchAt,
  notTemplate,
  skipSpaces,
  type TemplateCursor,
  type Term,
} from './parser.ts'

/** A key: constant, or evaluated for each task. */
type Key = string | ((expansion: Expansion) => string | undefined)

/** Where a path ends: before the braces of its template, or with the text. */
type PathEnd = '}}' | undefined

/** What a node's callback address is called in a path. */
export const callback_url = 'public_callback_corezoid'

/** Parses a path up to `end`, which is not consumed, or to the end of the text. */
export function readPath(cursor: TemplateCursor, end: PathEnd): Term {
  const first = readName(cursor, end).trimStart()
  const name = first.trimEnd()
  if (cursor.text[cursor.at] === '[' && Object.hasOwn(contextPaths, name)) {
    const read = contextPaths[name] as (cursor: TemplateCursor, end: PathEnd) => Term
    return read(cursor, end)
  }
  return dataTerm(readKeys(cursor, end, [first]), cursor)
}

/** The member of the task's data with this name, dots included. */
export function nameTerm(name: string): Term {
  return ({ context }) => {
    const data = objectOf(context.doc)
    return Object.hasOwn(data, name) ? data[name] : undefined
  }
}

/** The member of an object or the element of an array; undefined where there is none. */
export function member(value: JsonValue | undefined, key: string): JsonValue | undefined {
  if (Array.isArray(value)) return isArrayIndex(key) ? value[Number(key)] : undefined
  if (!isObject(value)) return undefined
  return Object.hasOwn(value, key) ? value[key] : undefined
}

export function isArrayIndex(key: string): boolean {
  return /^(?:0|[1-9][0-9]{0,9})$/.test(key)
}

function dataTerm(keys: readonly Key[], cursor: TemplateCursor): Term {
  const [first, second] = keys
  if (first === 'root' && typeof second === 'string' && keys.length === 2) {
    const name = rootNames.find((known) => known === second)
    if (name !== undefined) return (expansion) => expansion.context.rootField(name)
    cursor.warn(`"root.${second}" is no field of a task and is looked for in its data`)
  }
  if (keys.length === 1 && typeof first === 'string') return nameTerm(first)
  return (expansion) => follow(objectOf(expansion.context.doc), keys, expansion)
}

/** Paths that leave the task's data, by their first name. Each is parsed from its bracket on. */
const contextPaths: Readonly<Record<string, (cursor: TemplateCursor, end: PathEnd) => Term>> = {
  node: readNode,
  conv: readConv,
  env_var: readVariable,
}

type ConvTerm = (expansion: Expansion) => TargetProcess | undefined

/** Parses `[node].name`, of this process where there is no `convOf`. */
function readNode(cursor: TemplateCursor, end: PathEnd, convOf?: ConvTerm): Term {
  const node = readIndex(cursor)
  const at = cursor.at
  const keys = readKeys(cursor, end, [])
  const [name] = keys
  if (keys.length !== 1 || name === undefined) {
    cursor.at = at
    throw notTemplate(cursor, 'node[…] is followed by ".count" or the name of a sum')
  }
  return (expansion) => {
    const conv = convOf?.(expansion)
    if (convOf !== undefined && conv === undefined) return undefined
    const node_id = keyOf(node, expansion)
    const wanted = node_id === undefined ? undefined : keyOf(name, expansion)
    if (node_id === undefined || wanted === undefined || !isIdLength(node_id)) return undefined
    const { context } = expansion
    // An address is a right: no name out of the data gives it.
    if (name === callback_url) return context.callbackUrl(node_id, conv)
    if (wanted === 'count') return context.nodeCount(node_id, conv)
    return context.nodeSum(node_id, wanted, conv)
  }
}

function readConv(cursor: TemplateCursor, end: PathEnd): Term {
  const conv = readIndex(cursor)
  if (typeof conv === 'string') cursor.targetProcess(conv)
  const is_from_template = typeof conv !== 'string'
  const convOf: ConvTerm = (expansion) => {
    const conv_id = processId(keyOf(conv, expansion))
    if (conv_id === undefined) return undefined
    const target = { conv_id, is_from_template }
    const { context } = expansion
    if (context.canRead(target)) return target
    const user = textOf(context.rootField('user_id') ?? '-')
    return failWith(expansion, 'denied', `User: ${user}, Conv_id: ${conv_id}`)
  }
  if (matchAt(cursor, /\.node(?=\[)/y)) return readNode(cursor, end, convOf)
  if (!matchAt(cursor, /\.ref(?=\[)/y)) {
    throw notTemplate(cursor, 'conv[…] is followed by ".ref[…]" or ".node[…]"')
  }
  const ref = readIndex(cursor)
  const keys = readKeys(cursor, end, [])
  return (expansion) => {
    const target = convOf(expansion)
    const found = target === undefined ? undefined : keyOf(ref, expansion)
    if (target === undefined || found === undefined || !isIdLength(found)) return undefined
    return follow(expansion.context.taskData(target, found), keys, expansion)
  }
}

function readVariable(cursor: TemplateCursor, end: PathEnd): Term {
  const variable = readIndex(cursor)
  if (typeof variable === 'string') cursor.variable(variableRef(variable))
  const keys = readKeys(cursor, end, [])
  return (expansion) => {
    const name = keyOf(variable, expansion)
    if (name === undefined) return undefined
    const value = expansion.context.variable(variableRef(name))
    // A path into a text reads it as JSON: exports write the values of variables as text.
    const is_json = typeof value === 'string' && keys.length > 0
    return follow(is_json ? parsedValue(value) : value, keys, expansion)
  }
}

/** Parses the keys that follow and appends them to `keys`. */
function readKeys(cursor: TemplateCursor, end: PathEnd, keys: Key[]): Key[] {
  for (;;) {
    const char = cursor.text[cursor.at]
    if (char === '.') {
      cursor.at++
      const is_template = cursor.text.startsWith('{{', cursor.at)
      keys.push(is_template ? readTemplateName(cursor) : readName(cursor, end))
    } else if (char === '[') keys.push(readIndex(cursor))
    else if (char === undefined || isAtEnd(cursor, end)) return trimLast(cursor, keys)
    else throw notTemplate(cursor, `${quoted(char)} was not expected in a name`)
  }
}

function readName(cursor: TemplateCursor, end: PathEnd): string {
  const { text } = cursor
  let name = ''
  let from = cursor.at
  while (cursor.at < text.length) {
    const char = text[cursor.at] as string
    if (char === '.' || char === '[' || char === ']') break
    if (isAtEnd(cursor, end)) break
    if (char === '{' && text[cursor.at + 1] === '{') {
      throw notTemplate(cursor, 'a name cannot come from a template')
    }
    if (char === "'" || char === '"')
      throw notTemplate(cursor, 'a quote was not expected in a name')
    if (char === '\\' && cursor.at + 1 < text.length && !text.startsWith('{{', cursor.at + 1)) {
      name += text.slice(from, cursor.at)
      from = cursor.at + 1
      cursor.at++
    }
    cursor.at++
  }
  name += text.slice(from, cursor.at)
  if (name.trim() === '') throw notTemplate(cursor, 'a name was expected')
  return name
}

function readTemplateName(cursor: TemplateCursor): Key {
  const term = cursor.term()
  if (term === undefined) throw notTemplate(cursor, 'a name was expected')
  return (expansion) => keyText(term(expansion))
}

function readIndex(cursor: TemplateCursor): Key {
  cursor.at++
  const key = deeper(cursor, () => readIndexKey(cursor))
  skipSpaces(cursor)
  return key
}

function readIndexKey(cursor: TemplateCursor): Key {
  const parts = cursor.parts(']')
  expectText(cursor, ']')
  if (parts.every((part) => typeof part === 'string')) {
    const key = parts.join('').trim()
    if (key === '') throw notTemplate(cursor, 'an index was expected')
    return key
  }
  return (expansion) => joinParts(parts, expansion, keyText)?.trim()
}

/** A missing value is no key: `items[{{n}}]` without an n is missing, not `items[]`. */
function keyText(value: JsonValue | undefined): string | undefined {
  return value === undefined ? undefined : textOf(value)
}

/** The key for one task; undefined where it is missing or the expansion failed. */
function keyOf(key: Key, expansion: Expansion): string | undefined {
  return typeof key === 'string' ? key : key(expansion)
}

function follow(
  value: JsonValue | undefined,
  keys: readonly Key[],
  expansion: Expansion,
): JsonValue | undefined {
  let found = value
  for (const key of keys) {
    const name = keyOf(key, expansion)
    if (name === undefined || found === undefined) return undefined
    found = member(found, name)
  }
  return found
}

function isAtEnd(cursor: TemplateCursor, end: PathEnd): boolean {
  return end !== undefined && cursor.text.startsWith(end, cursor.at)
}

/** White space after the whole path is not part of its last name. */
function trimLast(cursor: TemplateCursor, keys: Key[]): Key[] {
  const last = keys.at(-1)
  if (typeof last === 'string' && cursor.text[cursor.at - 1] === ' ') {
    keys[keys.length - 1] = last.trimEnd()
  }
  return keys
}
