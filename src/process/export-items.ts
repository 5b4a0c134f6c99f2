/**
 * Combines the files of an import: each alias and variable once, each process under its final id. A
 * map of new ids is applied to definitions (`obj_id`, `conv_id`, `{{conv[id]…}}`) and aliases
 * before anything is compiled, so the stored definition hashes alike each time. `@name` stays, to
 * be looked up at run time, unless the map has it.
 */
import { isObject, setMember } from '../codec/json.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import {
  type AliasItem,
  type DefinitionItem,
  type ExportSource,
  type Found,
  isOfExport,
  type Placed,
  readExportFile,
  type VariableItem,
} from './export-file.ts'
import { quoted } from './report.ts'
import { idText, idValue, textOf } from './values.ts'

export interface ExportItems {
  readonly definitions: readonly DefinitionItem[]
  readonly aliases: readonly AliasItem[]
  readonly variables: readonly VariableItem[]
  /** Files that were found and hold nothing of an export. */
  readonly skipped: readonly string[]
  readonly mistakes: readonly string[]
}

/** Old id or `@name` → new id. */
export type IdMap = Readonly<Record<string, string>>

export function exportItems(sources: readonly ExportSource[], map: IdMap = {}): ExportItems {
  const found: Found = { definitions: [], aliases: [], variables: [], mistakes: [] }
  const skipped: string[] = []
  for (const source of sources) {
    const before = countOf(found)
    readExportFile(source, found)
    if (countOf(found) > before) continue
    if (source.is_found === true && !isOfExport(source)) skipped.push(source.name ?? '')
  }
  if (countOf(found) === 0) found.mistakes.push('there is no definition')
  const used = new Set<string>()
  const newId = (id: string): string => {
    used.add(id)
    return (Object.hasOwn(map, id) ? map[id] : undefined) ?? id
  }
  const definitions =
    Object.keys(map).length === 0
      ? found.definitions
      : found.definitions.map((item) => ({ ...item, definition: renamed(item.definition, newId) }))
  const renamed_aliases = found.aliases.map((item) => renamedAlias(item, newId))
  const { mistakes } = found
  const aliases = agreeing(renamed_aliases, 'alias', ({ conv_id }) => conv_id, mistakes)
  const variables = agreeing(found.variables, 'variable', ({ value }) => value, mistakes)
  for (const id of Object.keys(map)) {
    if (!used.has(id)) mistakes.push(`nothing is or names ${quoted(id)}, to be mapped`)
  }
  return { definitions, aliases, variables, skipped, mistakes }
}

function countOf({ definitions, aliases, variables, mistakes }: Found): number {
  return definitions.length + aliases.length + variables.length + mistakes.length
}

function renamedAlias(item: AliasItem, newId: NewId): AliasItem {
  const mapped = newId(`@${item.name}`)
  return { ...item, conv_id: mapped === `@${item.name}` ? newId(item.conv_id) : mapped }
}

/** Each name once. Two items that differ are a mistake; the text never shows a variable's value. */
function agreeing<Item extends Placed & { readonly name: string }>(
  items: readonly Item[],
  what: string,
  valueIn: (item: Item) => JsonValue | undefined,
  mistakes: string[],
): Item[] {
  const first = new Map<string, Item>()
  for (const item of items) {
    const other = first.get(item.name)
    if (other === undefined) first.set(item.name, item)
    else if (textOf(valueIn(item) ?? null) !== textOf(valueIn(other) ?? null)) {
      const before = other.place === '' ? 'before' : `in ${other.place.replace(/: $/, '')}`
      mistakes.push(`${item.place}${what} @${item.name} is another one than ${before}`)
    }
  }
  return [...first.values()]
}

/** The same export with the one definition, and what leads to it, under another id. */
export function withId(items: ExportItems, conv_id: string): ExportItems {
  const [item] = items.definitions
  if (item === undefined || items.definitions.length > 1) {
    const mistake = 'there are several definitions or none, so none can be given an id'
    return { ...items, mistakes: [...items.mistakes, mistake] }
  }
  const { definition } = item
  const old = idText(definition.obj_id)
  return {
    ...items,
    definitions: [{ ...item, definition: { ...definition, obj_id: idValue(conv_id) } }],
    aliases: items.aliases.map((one) => (one.conv_id === old ? { ...one, conv_id } : one)),
  }
}

/** The new id of a process or an alias; the id itself where it stays. */
export type NewId = (id: string) => string

export function renamed(definition: JsonObject, newId: NewId): JsonObject {
  const { obj_id, scheme } = definition
  const made = { ...definition }
  if (idText(obj_id) !== undefined) made.obj_id = renamedId(obj_id, newId)
  if (isObject(scheme) && Array.isArray(scheme.nodes)) {
    made.scheme = { ...scheme, nodes: scheme.nodes.map((node) => renamedNode(node, newId)) }
  }
  return made
}

function renamedNode(node: JsonValue, newId: NewId): JsonValue {
  if (!isObject(node) || !isObject(node.condition)) return node
  const condition = { ...node.condition }
  for (const name of ['logics', 'semaphors']) {
    const list = condition[name]
    if (Array.isArray(list)) condition[name] = list.map((one) => renamedLogic(one, newId))
  }
  return { ...node, condition }
}

/** Code contains no templates. */
function renamedLogic(logic: JsonValue, newId: NewId): JsonValue {
  if (!isObject(logic)) return logic
  const made: JsonObject = {}
  for (const [key, value] of Object.entries(logic)) {
    if (key === 'conv_id') setMember(made, key, renamedId(value, newId))
    else setMember(made, key, key === 'src' ? value : renamedTexts(value, newId))
  }
  return made
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
  if (Array.isArray(value)) return value.map((one) => renamedTexts(one, newId))
  if (!isObject(value)) return value
  const made: JsonObject = {}
  for (const [key, one] of Object.entries(value)) {
    setMember(made, renamedText(key, newId), renamedTexts(one, newId))
  }
  return made
}

/** `{{conv[id]` in a template, and `conv[id]` at the start of a condition's param. */
const conv_pattern = /((?:\{\{|^)\s*conv\[\s*)([^\][{}\\]*[^\][{}\\\s])(?=\s*\]\s*\.)/g

function renamedText(text: string, newId: NewId): string {
  return text.includes('conv[')
    ? text.replace(conv_pattern, (_whole, opening: string, id: string) => opening + newId(id))
    : text
}
