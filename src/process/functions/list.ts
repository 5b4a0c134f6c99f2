/**
 * `$.map` and `$.filter`: a new list by a fun in a small part of Erlang (folder erlang). An object
 * is the list of its pairs, also inside items; a list of pairs becomes an object again. A missing
 * value, or one that is no list, counts as an empty list. An Erlang exception or an oversized
 * result fails.
 */
import { isObject } from '../../codec/json.ts'
import {
  argumentOf,
  expectText,
  failWith,
  type TemplateCursor,
  type Term,
} from '../templates/parser.ts'
import { parsedValue } from '../values.ts'
import { compileFun, type Fun } from './erlang/compile.ts'
import { jsonOf } from './erlang/json.ts'
import { skipBlanks } from './erlang/lexer.ts'
import {
  type ErlangTerm,
  type Evaluation,
  evaluationOf,
  failTerm,
  listOf,
  remainder,
  shown,
} from './erlang/terms.ts'
import type { FunctionKind } from './function.ts'

export const mapFunction: FunctionKind = {
  name: 'map',
  syntax: ['$.map(fun(X) -> expression end, list)'],
  result: 'array',
  examples: [
    { text: '$.map(fun(Item) -> Item*2 end, {{a}})', data: { a: [1, 2, 3] }, gives: [2, 4, 6] },
    {
      text: `$.map(fun(E) -> FieldName = eutils:get_value(<<"fieldName">>, E), FieldName end,
        {{arr}})`,
      data: { arr: [{ fieldName: 1 }, { fieldName: 'x' }] },
      gives: [1, 'x'],
    },
    {
      text: '$.map(fun(E) -> eutils:get_value(<<"fieldName">>, E) end, {{arr}})',
      data: { arr: [{ fieldName: 1 }, { fieldName: 'x' }] },
      gives: [1, 'x'],
    },
    {
      text: `$.map(fun(Value) -> #{<<"fieldName1">> => Value, <<"fieldName2">> => Value} end,
        {{arr}})`,
      data: { arr: [1, 2] },
      gives: [
        { fieldName1: 1, fieldName2: 1 },
        { fieldName1: 2, fieldName2: 2 },
      ],
    },
    {
      text: `$.map(fun(Value) -> [{<<"fieldName1">>, Value}, {<<"fieldName2">>, Value}] end,
        {{arr}})`,
      data: { arr: [1, 2] },
      gives: [
        { fieldName1: 1, fieldName2: 1 },
        { fieldName1: 2, fieldName2: 2 },
      ],
    },
    {
      text: `$.map(fun(Item) -> Test = proplists:get_value(<<"test">>, Item),
        [{<<"test">>, Test + 1} | proplists:delete(<<"test">>, Item)] end, {{arr}})`,
      data: { arr: [{ test: 1 }] },
      gives: [{ test: 2 }],
    },
    {
      text: `$.map(fun(Item) -> Test0 = eutils:get_value(<<"test">>, Item),
        Test1 = eutils:from_json(Test0), [{<<"a">>, eutils:get_value(<<"a">>, Test1)} | Item] end,
        {{arr}})`,
      data: { arr: [{ test: '{"a":1}' }, { test: '{"a":2}' }, { test: '{"a":4}' }] },
      gives: [
        { a: 1, test: '{"a":1}' },
        { a: 2, test: '{"a":2}' },
        { a: 4, test: '{"a":4}' },
      ],
    },
    { text: '$.map(fun(X) -> X.id end, {{a}})', data: { a: [{ id: 7 }, {}] }, gives: [7, null] },
    { text: '$.map(fun(N) -> N rem 2 == 1 end, [1,2])', gives: [true, false] },
  ],
  read: (cursor) => readList(cursor, false),
}

export const filterFunction: FunctionKind = {
  name: 'filter',
  syntax: ['$.filter(fun(X) -> condition end, list)'],
  result: 'array',
  examples: [
    {
      text: '$.filter(fun(Item) when Item rem 2 < 1 -> true; (_) -> false end, {{b}})',
      data: { b: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] },
      gives: [2, 4, 6, 8, 10, 12, 14],
    },
    {
      text: '$.filter(fun(U) -> U.age >= 18 andalso U.name /= <<"Bo">> end, {{a}})',
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
  read: (cursor) => readList(cursor, true),
}

function readList(cursor: TemplateCursor, is_filter: boolean): Term {
  const fun = compileFun(cursor)
  skipBlanks(cursor)
  expectText(cursor, ',')
  const read = readListArgument(cursor)
  return (expansion) => {
    const list = read(expansion)
    if (list === undefined) return undefined
    const evaluation = evaluationOf(expansion)
    const items = listOf(evaluation, list)
    const made = items && madeBy(fun, items, is_filter, evaluation)
    const rest = made && is_filter ? remainder(list, made) : made
    const value = rest === undefined ? undefined : jsonOf(evaluation, rest)
    const { failure } = evaluation
    return failure === undefined ? value : failWith(expansion, failure.why, failure.description)
  }
}

/** A list, or an object, which is a list of its pairs; anything else counts as an empty list. */
function readListArgument(cursor: TemplateCursor): Term {
  const argument = argumentOf(cursor.parts(')'))
  expectText(cursor, ')')
  return (expansion) => {
    const value = argument(expansion)
    if (expansion.failure !== undefined) return undefined
    const read = typeof value === 'string' ? parsedValue(value) : value
    return Array.isArray(read) || isObject(read) ? read : []
  }
}

function madeBy(
  fun: Fun,
  items: readonly ErlangTerm[],
  is_filter: boolean,
  evaluation: Evaluation,
): readonly ErlangTerm[] | undefined {
  const made: ErlangTerm[] = []
  for (const item of items) {
    const term = fun(evaluation, item)
    if (term === undefined) return undefined
    if (!is_filter) made.push(term)
    else if (term === true) made.push(item)
    else if (term !== false) {
      return failTerm(evaluation, `$.filter: ${shown(term)} is neither true nor false`)
    }
  }
  return made
}
