/**
 * `$.map` and `$.filter`: a new list from each item of a list by one expression
 * (item-expression.ts). `$.map` replaces an item by the expression's value, by null where that is
 * missing. `$.filter` keeps the items for which the expression is true. A value that is no list, or
 * is missing, counts as an empty list. A result larger than a task may be makes the template fail.
 */
import type { JsonValue } from '../../core/model.ts'
import {
  argumentOf,
  type Expansion,
  expectText,
  failWith,
  matchAt,
  mistakeAt,
  type TemplateCursor,
  type Term,
} from '../templates/parser.ts'
import { charsOf, convert } from '../values.ts'
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
  read: (cursor) => readList(cursor, mapped),
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
  read: (cursor) => readList(cursor, kept),
}

type Make = (
  list: readonly JsonValue[],
  body: ItemTerm,
  expansion: Expansion,
) => JsonValue[] | undefined

const list_opening = /\s*fun\s*\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*\)\s*->/y
const reserved_words = [
  'true',
  'false',
  'not',
  'div',
  'rem',
  'and',
  'or',
  'xor',
  'andalso',
  'orelse',
  'end',
]

function readList(cursor: TemplateCursor, make: Make): Term {
  const at = cursor.at
  const name = matchAt(cursor, list_opening)?.[1]
  if (name === undefined) throw mistakeAt(cursor, '"fun(X) -> expression end" was expected')
  if (reserved_words.includes(name)) {
    cursor.at = at
    throw mistakeAt(cursor, `"${name}" cannot be the name of an item`)
  }
  const body = readItemExpression(cursor, name)
  skipBlanks(cursor)
  expectText(cursor, 'end')
  skipBlanks(cursor)
  expectText(cursor, ',')
  const list = readListArgument(cursor)
  return (expansion) => {
    const items = list(expansion)
    return items === undefined ? undefined : make(items, body, expansion)
  }
}

function readListArgument(
  cursor: TemplateCursor,
): (expansion: Expansion) => readonly JsonValue[] | undefined {
  const argument = argumentOf(cursor.parts(')'))
  expectText(cursor, ')')
  return (expansion) => {
    const value = argument(expansion)
    if (expansion.failure !== undefined) return undefined
    const list = value === undefined ? undefined : convert(value, 'array')
    return Array.isArray(list) ? list : []
  }
}

function mapped(
  list: readonly JsonValue[],
  body: ItemTerm,
  expansion: Expansion,
): JsonValue[] | undefined {
  const made: JsonValue[] = []
  let left_chars = expansion.context.task_bytes_max
  for (const item of list) {
    const value = body(expansion, item) ?? null
    if (expansion.failure !== undefined) return undefined
    left_chars -= 1 + charsOf(value)
    if (left_chars < 0) return failWith(expansion, 'overflow', '')
    made.push(value)
  }
  return made
}

function kept(
  list: readonly JsonValue[],
  body: ItemTerm,
  expansion: Expansion,
): JsonValue[] | undefined {
  const made: JsonValue[] = []
  for (const item of list) {
    const value = body(expansion, item)
    if (expansion.failure !== undefined) return undefined
    if (value === true) made.push(item)
    else if (value !== false) {
      return failWith(expansion, 'convert', '$.filter: the condition is neither true nor false')
    }
  }
  return made
}
