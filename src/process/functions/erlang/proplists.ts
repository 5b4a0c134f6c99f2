/**
 * The module proplists, without expand, normalize and substitute. A property is `{Key, Value}` or
 * an atom, short for `{Atom, true}`. Keys compare by `=:=`, the first one wins, other items are
 * skipped. An object is the list of its pairs; the remainder of an object stays an object.
 */
import type { JsonValue } from '../../../core/model.ts'
import type { Apply } from './operators.ts'
import {
  atomOf,
  type ErlangTerm,
  type Evaluation,
  isAtom,
  isJsonObject,
  isList,
  isMap,
  isSame,
  isTuple,
  listOf,
  type MapPair,
  mapOf,
  type Result,
  remainder,
  sized,
  spend,
  tupleOf,
  undefined_atom,
} from './terms.ts'

type Items = readonly ErlangTerm[]

/** A key, a list and perhaps a default. */
export const getValue = ofKey(([first], otherwise) =>
  first === undefined ? otherwise : (valueIn(first) ?? otherwise),
)

export const proplistFunctions: readonly (readonly [string, Apply])[] = [
  ['proplists:get_value/2', getValue],
  ['proplists:get_value/3', getValue],
  ['proplists:get_bool/2', ofKey(([first]) => first !== undefined && valueIn(first) === true)],
  ['proplists:is_defined/2', ofKey(([first]) => first !== undefined)],
  [
    'proplists:lookup/2',
    ofKey(([first]) => (first === undefined ? atomOf('none') : pairOf(first))),
  ],
  ['proplists:lookup_all/2', ofKey((items) => items.map(pairOf))],
  ['proplists:get_all_values/2', ofKey(valuesIn)],
  ['proplists:append_values/2', ofKey(appendedValues)],
  ['proplists:delete/2', without],
  ['proplists:get_keys/1', keysOf],
  ['proplists:property/1', (_evaluation, item) => shortest(item)],
  ['proplists:property/2', (_evaluation, key, value) => shortest(tupleOf([key, value]))],
  ['proplists:compact/1', (evaluation, list) => listOf(evaluation, list)?.map(shortest)],
  ['proplists:unfold/1', (evaluation, list) => listOf(evaluation, list)?.map(pairOf)],
  ['proplists:split/2', splitList],
  ['proplists:to_map/1', toMap],
  ['proplists:from_map/1', (_evaluation, map) => (isMap(map) ? map.pairs.map(tupleOf) : undefined)],
]

/** A function of a key and a list, by the items of that key. */
function ofKey(
  apply: (items: Items, otherwise: ErlangTerm, evaluation: Evaluation) => Result,
): Apply {
  return (evaluation, key, list, otherwise = undefined_atom) => {
    const items = itemsOf(evaluation, key, list, true)
    return items === undefined ? undefined : apply(items, otherwise, evaluation)
  }
}

/** The items of a list that have the key, or those that do not. */
function itemsOf(
  evaluation: Evaluation,
  key: ErlangTerm,
  list: ErlangTerm,
  is_with: boolean,
): Items | undefined {
  if (is_with && isJsonObject(list)) {
    const is_member = typeof key === 'string' && Object.hasOwn(list, key)
    return is_member ? [tupleOf([key, list[key] as JsonValue])] : []
  }
  const items = listOf(evaluation, list)
  if (items === undefined || !spend(evaluation, items.length / 8)) return undefined
  return items.filter((item) => {
    const own = keyOf(item)
    return (own !== undefined && isSame(evaluation, own, key)) === is_with
  })
}

function keyOf(item: ErlangTerm): ErlangTerm | undefined {
  return isTuple(item) ? item.items[0] : isAtom(item) ? item : undefined
}

/** The value of a property; undefined where it is a tuple of another size. */
function valueIn(property: ErlangTerm): ErlangTerm | undefined {
  if (!isTuple(property)) return true
  return property.items.length === 2 ? property.items[1] : undefined
}

function pairOf(item: ErlangTerm): ErlangTerm {
  return isAtom(item) ? tupleOf([item, true]) : item
}

/** `{Atom, true}` as the lone atom. */
function shortest(item: ErlangTerm): ErlangTerm {
  if (!isTuple(item) || item.items.length !== 2 || item.items[1] !== true) return item
  const [key] = item.items
  return key !== undefined && isAtom(key) ? key : item
}

function valuesIn(items: Items): Items {
  return items.flatMap((item) => {
    const value = valueIn(item)
    return value === undefined ? [] : [value]
  })
}

function appendedValues(
  items: Items,
  _otherwise: ErlangTerm,
  evaluation: Evaluation,
): Items | undefined {
  const made: ErlangTerm[] = []
  for (const value of valuesIn(items)) {
    const list = listOf(evaluation, value) ?? [value]
    if (!spend(evaluation, list.length)) return undefined
    for (const item of list) made.push(item)
  }
  return sized(evaluation, made)
}

function without(evaluation: Evaluation, key: ErlangTerm, list: ErlangTerm): Result {
  const items = itemsOf(evaluation, key, list, false)
  return items === undefined ? undefined : sized(evaluation, remainder(list, items))
}

/** Each key once, in the order of terms. */
function keysOf(evaluation: Evaluation, list: ErlangTerm): Result {
  const keys = listOf(evaluation, list)?.flatMap((item) => keyOf(item) ?? [])
  if (keys === undefined) return undefined
  const pairs = keys.map((key): MapPair => [key, key])
  return mapOf(evaluation, pairs).pairs.map(([key]) => key)
}

/** `{ListOfEachKey, Rest}`. */
function splitList(evaluation: Evaluation, list: ErlangTerm, keys: ErlangTerm): Result {
  const lists: ErlangTerm[] = []
  let rest: Result = list
  for (const key of listOf(evaluation, keys) ?? []) {
    const items = itemsOf(evaluation, key, list, true)
    rest = without(evaluation, key, rest)
    if (items === undefined || rest === undefined) return undefined
    lists.push(items)
  }
  return tupleOf([lists, rest])
}

/** Of equal keys the first one holds. */
function toMap(evaluation: Evaluation, list: ErlangTerm): Result {
  const pairs: MapPair[] = []
  for (const item of listOf(evaluation, list) ?? []) {
    const key = keyOf(item)
    const value = valueIn(item)
    if (key !== undefined && value !== undefined) pairs.push([key, value])
  }
  return isList(list) ? mapOf(evaluation, pairs.reverse()) : undefined
}
