/**
 * Gives the processes that a definition names new ids, before it is compiled: its own `obj_id`,
 * `conv_id` of logics, and `{{conv[id]…}}` in their texts. So the stored definition is consistent
 * and has the same hash each time it is imported. What does not change is the object that was
 * given.
 */
import { isObject, setMember } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { idText, idValue } from './values.ts'

/** The new id of a process or an alias; the id itself where it stays. */
export type NewId = (id: string) => string

export function renamed(definition: JsonObject, newId: NewId): JsonObject {
  const { obj_id, scheme } = definition
  const changed: [string, JsonValue][] = []
  if (idText(obj_id) !== undefined) changed.push(['obj_id', renamedId(obj_id, newId)])
  if (isObject(scheme) && Array.isArray(scheme.nodes)) {
    const nodes = eachOf(scheme.nodes, (node) => renamedNode(node, newId))
    changed.push(['scheme', withMembers(scheme, [['nodes', nodes]])])
  }
  return withMembers(definition, changed)
}

function renamedNode(node: JsonValue, newId: NewId): JsonValue {
  if (!isObject(node) || !isObject(node.condition)) return node
  const { condition } = node
  const lists = ['logics', 'semaphors'].flatMap((name): [string, JsonValue][] => {
    const list = condition[name]
    return Array.isArray(list) ? [[name, eachOf(list, (one) => renamedLogic(one, newId))]] : []
  })
  return withMembers(node, [['condition', withMembers(condition, lists)]])
}

function renamedLogic(logic: JsonValue, newId: NewId): JsonValue {
  if (!isObject(logic)) return logic
  const members = Object.keys(logic).map((key): [string, JsonValue] => {
    const value = logic[key] as JsonValue
    if (key === 'conv_id') return [key, renamedId(value, newId)]
    // Code contains no templates.
    return [key, key === 'src' ? value : renamedTexts(value, newId)]
  })
  return withMembers(logic, members)
}

/** A number stays a number where the new id is one. */
function renamedId(id: JsonValue | undefined, newId: NewId): JsonValue {
  const text = idText(id)
  if (text === undefined) return id ?? null
  if (text.includes('{{')) return renamedText(text, newId)
  const to = newId(text)
  if (to === text) return id as JsonValue
  return typeof id === 'number' ? idValue(to) : to
}

function renamedTexts(value: JsonValue, newId: NewId): JsonValue {
  if (typeof value === 'string') return renamedText(value, newId)
  if (Array.isArray(value)) return eachOf(value, (one) => renamedTexts(one, newId))
  if (!isObject(value)) return value
  const keys = Object.keys(value)
  const entries = keys.map((key): [string, JsonValue] => [
    renamedText(key, newId),
    renamedTexts(value[key] as JsonValue, newId),
  ])
  if (entries.every(([key, to], at) => key === keys[at] && to === value[key])) return value
  return objectWith(entries)
}

/** `{{conv[id]` in a template, and `conv[id]` at the start of a condition's param. */
const conv_pattern = /((?:\{\{|^)\s*conv\[\s*)([^\][{}\\]*[^\][{}\\\s])(?=\s*\]\s*\.)/g

function renamedText(text: string, newId: NewId): string {
  return text.includes('conv[')
    ? text.replace(conv_pattern, (_whole, opening: string, id: string) => opening + newId(id))
    : text
}

function eachOf(list: readonly JsonValue[], rename: (one: JsonValue) => JsonValue): JsonValue[] {
  const renamed = list.map(rename)
  return renamed.every((one, at) => one === list[at]) ? (list as JsonValue[]) : renamed
}

/** The object itself where no member changes. */
function withMembers(object: JsonObject, members: readonly [string, JsonValue][]): JsonObject {
  if (members.every(([key, value]) => object[key] === value)) return object
  const changed = new Map(members)
  return objectWith(
    Object.keys(object).map((key) => [key, changed.get(key) ?? (object[key] as JsonValue)]),
  )
}

function objectWith(entries: readonly [string, JsonValue][]): JsonObject {
  const object: JsonObject = {}
  for (const [key, value] of entries) setMember(object, key, value)
  return object
}
