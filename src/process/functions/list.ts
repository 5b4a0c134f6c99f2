/**
 * `$.map` and `$.filter`: a new list made of each item of a list by one expression
 * (functions/item-expression). `$.map` puts the expression's value in the item's place, null where
 * it is missing; `$.filter` keeps the items for which it is true. What is no list, missing
 * included, is an empty one. No list is made that would be over the size of a task.
 */
import { stringifyJson } from '../../codec/json.ts'
import type { JsonValue } from '../../core/model.ts'
import {
  type Expansion,
  expectText,
  failWith,
  joinParts,
  mistakeAt,
  type TemplateCursor,
  type Term,
} from '../templates/parser.ts'
import { convert, textOf } from '../values.ts'
import type { FunctionKind } from './function.ts'
import { type ItemTerm, readItemExpression, skipBlanks } from './item-expression.ts'

export const mapFunction: FunctionKind = {
  name: 'map',
  syntax: ['$.map(fun(X) -> expression end, list)'],
  result: 'array',
  examples: [
    { text: '$.map(fun(X) -> X*2 end, {{a}})', data: { a: [1, 2, 3] }, gives: [2, 4, 6] },
    { text: '$.map(fun(X) -> X.id end, {{a}})', data: { a: [{ id: 7 }, {}] }, gives: [7, null] },
    { text: '$.map(fun(N) -> N rem 2 == 1 end, [1,2])', gives: [true, false] },
  ],
  read: (cursor) => readList(cursor, (list, body, run) => mapped(list, body, run)),
}

export const filterFunction: FunctionKind = {
  name: 'filter',
  syntax: ['$.filter(fun(X) -> condition end, list)'],
  result: 'array',
  examples: [
    { text: '$.filter(fun(X) -> X > 1 end, {{a}})', data: { a: [1, 2, 3] }, gives: [2, 3] },
    {
      text: '$.filter(fun(U) -> U.age >= 18 andalso U.name /= "Bo" end, {{a}})',
      data: {
        a: [
          { age: 20, name: 'Al' },
          { age: 20, name: 'Bo' },
          { age: 7, name: 'Cy' },
        ],
      },
      gives: [{ age: 20, name: 'Al' }],
    },
  ],
  read: (cursor) => readList(cursor, (list, body, run) => kept(list, body, run)),
}

type Make = (list: readonly JsonValue[], body: ItemTerm, run: Expansion) => JsonValue[] | undefined

const opening = /\s*fun\s*\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*\)\s*->/y
const words = ['true', 'false', 'not', 'div', 'rem', 'and', 'or', 'xor', 'andalso', 'orelse', 'end']

function readList(cursor: TemplateCursor, make: Make): Term {
  opening.lastIndex = cursor.at
  const match = opening.exec(cursor.text)
  const name = match?.[1]
  if (name === undefined) throw mistakeAt(cursor, '"fun(X) -> expression end" was expected')
  if (words.includes(name)) throw mistakeAt(cursor, `"${name}" cannot be the name of an item`)
  cursor.at = opening.lastIndex
  const body = readItemExpression(cursor, name)
  skipBlanks(cursor)
  expectText(cursor, 'end')
  skipBlanks(cursor)
  expectText(cursor, ',')
  const list = readListArgument(cursor)
  return (run) => {
    const items = list(run)
    return items === undefined ? undefined : make(items, body, run)
  }
}

function readListArgument(
  cursor: TemplateCursor,
): (run: Expansion) => readonly JsonValue[] | undefined {
  const parts = cursor.parts(')')
  expectText(cursor, ')')
  const filled = parts.filter((part) => typeof part !== 'string' || part.trim() !== '')
  const [only] = filled
  return (run) => {
    const is_term = filled.length === 1 && typeof only === 'function'
    const value = is_term
      ? only(run)
      : joinParts(parts, run, (one) => (one === undefined ? '' : textOf(one)))
    if (run.failure !== undefined) return undefined
    const list = value === undefined ? undefined : convert(value, 'array')
    return Array.isArray(list) ? list : []
  }
}

function mapped(
  list: readonly JsonValue[],
  body: ItemTerm,
  run: Expansion,
): JsonValue[] | undefined {
  const made: JsonValue[] = []
  let left_chars = run.context.task_bytes_max
  for (const item of list) {
    const value = body(run, item) ?? null
    if (run.failure !== undefined) return undefined
    left_chars -= 1 + charsOf(value)
    if (left_chars < 0) return failWith(run, 'overflow', '')
    made.push(value)
  }
  return made
}

function charsOf(value: JsonValue): number {
  if (typeof value === 'string') return value.length
  return typeof value === 'object' && value !== null ? stringifyJson(value).length : 1
}

function kept(list: readonly JsonValue[], body: ItemTerm, run: Expansion): JsonValue[] | undefined {
  const made: JsonValue[] = []
  for (const item of list) {
    const value = body(run, item)
    if (run.failure !== undefined) return undefined
    if (value === true) made.push(item)
    else if (value !== false) {
      return failWith(run, 'convert', '$.filter: the condition is neither true nor false')
    }
  }
  return made
}
