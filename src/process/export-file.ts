/**
 * Reads an export: a file with one process, or with an array of processes, folders and aliases. A
 * map may give processes new ids; every place that names them changes with them: `conv_id` of
 * logics, `{{conv[id]…}}` in their texts, and aliases. `@name` stays in a definition, to be looked
 * up when a task runs, unless the map says what it means.
 *
 * Ids are replaced before a definition is compiled, so the stored definition is consistent and has
 * the same hash each time the file is imported. A definition in which nothing is replaced is the
 * object that was read.
 */
import { isObject, setMember } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { quoted } from './report.ts'
import { idText, isAliasName, processId } from './values.ts'

export interface ExportFile {
  readonly definitions: readonly {
    readonly definition: JsonObject
    /** Its place in the file, counted from 1. */
    readonly at: number
  }[]
  readonly aliases: readonly { readonly name: string; readonly conv_id: string }[]
  readonly mistakes: readonly string[]
}

/** Old id or `@name` → new id. */
export type IdMap = Readonly<Record<string, string>>

export function readExport(value: JsonValue, map: IdMap = {}): ExportFile {
  const mistakes: string[] = []
  const found: { readonly definition: JsonObject; readonly at: number }[] = []
  const aliases = new Map<string, string>()
  for (const [n, item] of (Array.isArray(value) ? value : [value]).entries()) {
    const at = n + 1
    if (!isObject(item)) mistakes.push(`definition ${at}: no JSON object`)
    else if (isAlias(item)) addAlias(item, at, aliases, mistakes)
    else if (!isOther(item)) found.push({ definition: item, at })
  }
  if (found.length + aliases.size === 0 && mistakes.length === 0) {
    mistakes.push('the file holds no definition')
  }
  const used = new Set<string>()
  const newId = (id: string): string => {
    used.add(id)
    return (Object.hasOwn(map, id) ? map[id] : undefined) ?? id
  }
  const definitions = found.map(({ definition, at }) => ({
    definition: renamed(definition, newId),
    at,
  }))
  const new_aliases = [...aliases].map(([name, to]) => {
    const mapped = newId(`@${name}`)
    return { name, conv_id: mapped === `@${name}` ? newId(to) : mapped }
  })
  for (const id of Object.keys(map)) {
    if (!used.has(id)) mistakes.push(`nothing in the file is or names ${quoted(id)}, to be mapped`)
  }
  return { definitions, aliases: new_aliases, mistakes }
}

/** Whether the item is a folder, a dashboard or anything else that has no scheme. */
function isOther({ obj_type, scheme }: JsonObject): boolean {
  return scheme === undefined && obj_type !== undefined && obj_type !== 1
}

function isAlias(item: JsonObject): boolean {
  return typeof item.short_name === 'string' && item.scheme === undefined
}

/** An alias without a target is ignored: exports hold names that stand for nothing yet. */
function addAlias(
  { short_name, obj_to_id }: JsonObject,
  at: number,
  aliases: Map<string, string>,
  mistakes: string[],
): void {
  const to = processId(obj_to_id)
  const name = String(short_name).replace(/^@/, '')
  if (!isAliasName(name)) mistakes.push(`definition ${at}: ${quoted(short_name)} is no alias`)
  else if (to !== undefined) aliases.set(name, to)
}

type NewId = (id: string) => string

function renamed(definition: JsonObject, newId: NewId): JsonObject {
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
  const number = Number(to)
  const is_number = typeof id === 'number' && Number.isSafeInteger(number) && String(number) === to
  return is_number ? number : to
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
