/**
 * The module proplists. A property is `{Key, Value}` or an atom, short for `{Atom, true}`. Keys
 * compare by `=:=`, the first one wins, other items are skipped. An object is the list of its
 * pairs; the remainder of an object stays an object.
 */
import type { JsonValue } from '../../../core/model.ts'
import type { Apply } from './operators.ts'
import {
  atomName,
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
  ['proplists:substitute_aliases/2', substituteAliases],
  ['proplists:substitute_negations/2', substituteNegations],
  ['proplists:expand/2', expand],
  ['proplists:normalize/2', normalize],
  ['proplists:to_map/1', toMap],
  [
    'proplists:to_map/2',
    (evaluation, list, stages) => {
      const normal = normalize(evaluation, list, stages)
      return normal === undefined ? undefined : toMap(evaluation, normal)
    },
  ],
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

/** The items of `[{A, B}, …]`; undefined where one is no pair. */
function pairsOf(evaluation: Evaluation, list: ErlangTerm): readonly MapPair[] | undefined {
  const items = listOf(evaluation, list)
  const pairs = items?.flatMap((item) => (isTuple(item) && item.items.length === 2 ? [item] : []))
  if (pairs === undefined || pairs.length !== items?.length) return undefined
  return pairs.map(
    ({ items: [first, second] }): MapPair => [first as ErlangTerm, second as ErlangTerm],
  )
}

/** Each item whose key a pair names first, changed to the pair's second. */
function substituted(change: (item: ErlangTerm, key: ErlangTerm) => ErlangTerm) {
  return (evaluation: Evaluation, pairs: ErlangTerm, list: ErlangTerm): Result => {
    const [keys, items] = [pairsOf(evaluation, pairs), listOf(evaluation, list)]
    if (keys === undefined || items === undefined) return undefined
    if (!spend(evaluation, (items.length * keys.length) / 8)) return undefined
    const made = items.map((item) => {
      const own = keyOf(item)
      const pair = own === undefined ? own : keys.find(([key]) => isSame(evaluation, key, own))
      return pair === undefined ? item : change(item, pair[1])
    })
    return sized(evaluation, made)
  }
}

function substituteAliases(evaluation: Evaluation, pairs: ErlangTerm, list: ErlangTerm): Result {
  const renamed = (item: ErlangTerm, key: ErlangTerm): ErlangTerm =>
    shortest(tupleOf([key, ...(isTuple(item) ? item.items.slice(1) : [true])]))
  return substituted(renamed)(evaluation, pairs, list)
}

/** What is not true counts as false. */
function substituteNegations(evaluation: Evaluation, pairs: ErlangTerm, list: ErlangTerm): Result {
  const negated = (item: ErlangTerm, key: ErlangTerm): ErlangTerm =>
    shortest(tupleOf([key, valueIn(item) !== true]))
  return substituted(negated)(evaluation, pairs, list)
}

/** Of `[{Property, Terms}, …]`: terms replace the first item of that key if it is the property. */
function expand(evaluation: Evaluation, expansions: ErlangTerm, list: ErlangTerm): Result {
  const [rules, items] = [pairsOf(evaluation, expansions), listOf(evaluation, list)]
  if (rules === undefined || items === undefined) return undefined
  if (!spend(evaluation, (items.length * rules.length) / 4)) return undefined
  let left = items.map((item): { item: ErlangTerm; added?: Items } => ({ item }))
  const seen: ErlangTerm[] = []
  for (const [property, terms] of rules) {
    const [wanted, added] = [shortest(property), listOf(evaluation, terms)]
    const key = keyOf(wanted)
    if (added === undefined) return undefined
    if (key === undefined || seen.some((one) => isSame(evaluation, one, key))) continue
    seen.push(key)
    const isOfKey = ({ item, added: is_added }: (typeof left)[number]): boolean => {
      const own = is_added === undefined ? keyOf(item) : undefined
      return own !== undefined && isSame(evaluation, own, key)
    }
    const first = left.find(isOfKey)
    if (first === undefined || !isSame(evaluation, shortest(first.item), wanted)) continue
    left = left.filter((one) => one === first || !isOfKey(one))
    first.added = added
  }
  const made: ErlangTerm[] = []
  for (const { item, added } of left) {
    const terms = added ?? (isList(item) ? listOf(evaluation, item) : [item])
    if (terms === undefined || !spend(evaluation, terms.length)) return undefined
    for (const term of terms) made.push(term)
  }
  return sized(evaluation, made)
}

/** By `[{aliases | negations | expand, List}, …]`, compacted at the end. */
function normalize(evaluation: Evaluation, list: ErlangTerm, stages: ErlangTerm): Result {
  let made: Result = list
  for (const stage of listOf(evaluation, stages) ?? [stages]) {
    const [name, argument] = isTuple(stage) ? stage.items : []
    const apply =
      name !== undefined && isAtom(name) ? stages_by_name.get(atomName(name)) : undefined
    if (apply === undefined || argument === undefined) return undefined
    made = apply(evaluation, argument, made)
    if (made === undefined) return undefined
  }
  return listOf(evaluation, made)?.map(shortest)
}

const stages_by_name = new Map([
  ['aliases', substituteAliases],
  ['negations', substituteNegations],
  ['expand', expand],
])

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
