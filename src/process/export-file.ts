/**
 * Reads what the files of an export hold: processes, aliases and variables. A file holds one
 * process, an array, or a folder with its children as members; some are known by their names.
 *
 * A process has the id that its definition says. Only where it says none, and is alone in its file,
 * the file's name gives it: `4711_name.conv.json`.
 *
 * A map may give processes new ids, in definitions and aliases alike. `@name` stays in a
 * definition, to be looked up when a task runs, unless the map says what it means.
 */
import { isObject, parseJson } from '../codec/json.ts'
import { isFault } from '../core/faults.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { isAbsent } from './logics/members.ts'
import { type NewId, renamed } from './rename-ids.ts'
import { quoted } from './report.ts'
import { idText, isAliasName, processId, textOf } from './values.ts'

/** The JSON of one file; without a name for what did not come from a file. */
export interface ExportSource {
  readonly name: string | undefined
  readonly value: JsonValue
  /** Whether it was found in a folder, where other files may lie too. */
  readonly is_found?: boolean
}

/** An item with its place: text to put before a mistake, empty where it needs none. */
interface Placed {
  readonly place: string
}

export interface DefinitionItem extends Placed {
  readonly definition: JsonObject
}

export interface AliasItem extends Placed {
  readonly name: string
  readonly conv_id: string
}

export interface VariableItem extends Placed {
  readonly name: string
  /** Undefined for a secret: exports leave its value out, and it is not stored. */
  readonly value: JsonValue | undefined
}

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
    collectFile(source, found)
    if (countOf(found) > before) continue
    if (source.is_found === true && !isOfExport(source)) skipped.push(source.name ?? '')
  }
  if (countOf(found) === 0) found.mistakes.push('there is no definition')
  const used = new Set<string>()
  const newId = (id: string): string => {
    used.add(id)
    return (Object.hasOwn(map, id) ? map[id] : undefined) ?? id
  }
  const definitions = found.definitions.map((item) => ({
    ...item,
    definition: renamed(item.definition, newId),
  }))
  const renamed_aliases = found.aliases.map((item) => renamedAlias(item, newId))
  const { mistakes } = found
  const aliases = agreeing(renamed_aliases, 'alias', ({ conv_id }) => conv_id, mistakes)
  const variables = agreeing(found.variables, 'variable', ({ value }) => value, mistakes)
  for (const id of Object.keys(map)) {
    if (!used.has(id)) mistakes.push(`nothing is or names ${quoted(id)}, to be mapped`)
  }
  return { definitions, aliases, variables, skipped, mistakes }
}

/** Whether a file without any item belongs to an export: folders, stages, empty lists. */
function isOfExport({ name, value }: ExportSource): boolean {
  if (isInstance(name)) return true
  if (isNamed(name, '_ALIASES_.json') || isNamed(name, '_ENV_VARS_.json')) return true
  return isObject(value) && value.obj_type !== undefined
}

interface Found {
  readonly definitions: DefinitionItem[]
  readonly aliases: AliasItem[]
  readonly variables: VariableItem[]
  readonly mistakes: string[]
}

function countOf({ definitions, aliases, variables, mistakes }: Found): number {
  return definitions.length + aliases.length + variables.length + mistakes.length
}

function collectFile(source: ExportSource, found: Found): void {
  const { name, value } = source
  if (isInstance(name)) return
  const file = name === undefined ? '' : `${name}: `
  if (isNamed(name, '_ENV_VARS_.json') && isObject(value)) {
    for (const [key, row] of Object.entries(value)) {
      const variable = isObject(row) ? { short_name: key, ...row } : { short_name: key, value: row }
      collectVariable(variable, file, found)
    }
    return
  }
  const first = found.definitions.length
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) {
      const place = `${file}definition ${at + 1}: `
      if (isObject(item)) collectItem(item, place, source, found)
      else if (source.is_found !== true) found.mistakes.push(`${place}no JSON object`)
    }
  } else if (isObject(value)) collectItem(withNamedId(value, name), file, source, found)
  else if (source.is_found !== true) found.mistakes.push(`${file}no JSON object`)
  // A single definition needs no number.
  const [only, ...more] = found.definitions.slice(first)
  if (only === undefined || more.length > 0) return
  found.definitions[first] = { ...only, place: file }
}

function isNamed(name: string | undefined, file_name: string): boolean {
  return name !== undefined && (name === file_name || name.endsWith(`/${file_name}`))
}

/** What a process connects to, as a database: nothing that is imported. */
function isInstance(name: string | undefined): boolean {
  return name?.toLowerCase().endsWith('.instance.json') === true
}

/** A process without an id has that of its file. */
function withNamedId(item: JsonObject, name: string | undefined): JsonObject {
  const [, id] = /(?:^|[/\\])(\d+)_[^/\\]*\.conv\.json$/i.exec(name ?? '') ?? []
  const is_process = item.obj_type === 1 || isObject(item.scheme)
  if (id === undefined || !is_process || !isAbsent(item.obj_id)) return item
  return { ...item, obj_id: idOf(id) }
}

/** As exports write ids: a number where it can be one. */
function idOf(text: string): JsonValue {
  const number = Number(text)
  return Number.isSafeInteger(number) && String(number) === text ? number : text
}

function collectItem(item: JsonObject, place: string, source: ExportSource, found: Found): void {
  const { obj_type, scheme, short_name } = item
  if (typeof short_name === 'string' && scheme === undefined) {
    const is_variable = 'env_var_type' in item || 'data_type' in item || 'value' in item
    if (is_variable || isNamed(source.name, '_ENV_VARS_.json')) collectVariable(item, place, found)
    else collectAlias(item, place, found)
  } else if (obj_type === 1 || (isObject(scheme) && 'nodes' in scheme)) {
    found.definitions.push({ definition: item, place })
  } else if (obj_type !== undefined) collectChildren(item, place, source, found)
  else if (source.is_found !== true) found.definitions.push({ definition: item, place })
}

/** A folder keeps its children in arrays, whatever they are called. */
function collectChildren(
  folder: JsonObject,
  place: string,
  source: ExportSource,
  found: Found,
): void {
  for (const [member, list] of Object.entries(folder)) {
    if (!Array.isArray(list)) continue
    for (const [at, child] of list.entries()) {
      const is_item =
        isObject(child) && (typeof child.obj_type === 'number' || isObject(child.scheme))
      if (is_item) collectItem(child, `${place}${member}[${at}]: `, source, found)
    }
  }
}

/** An alias of no process is ignored: exports hold names that stand for nothing yet. */
function collectAlias(item: JsonObject, place: string, { aliases, mistakes }: Found): void {
  const { obj_to_id, obj_to_type = 'conv' } = item
  const conv_id = obj_to_type === 'conv' ? processId(obj_to_id) : undefined
  const name = nameOf(item, 'an alias', place, mistakes)
  if (name !== undefined && conv_id !== undefined) aliases.push({ place, name, conv_id })
}

function collectVariable(item: JsonObject, place: string, { variables, mistakes }: Found): void {
  const name = nameOf(item, 'a variable', place, mistakes)
  if (name === undefined) return
  const { env_var_type, data_type, value } = item
  if (env_var_type === 'secret' || value === undefined || value === null) {
    variables.push({ place, name, value: undefined })
  } else if (data_type !== 'json' || typeof value !== 'string') {
    variables.push({ place, name, value })
  } else {
    try {
      variables.push({ place, name, value: parseJson(value) })
    } catch (error) {
      if (!isFault(error)) throw error
      mistakes.push(`${place}variable @${name} is no JSON: ${error.message}`)
    }
  }
}

function nameOf(
  { short_name }: JsonObject,
  what: string,
  place: string,
  mistakes: string[],
): string | undefined {
  const name = String(short_name).replace(/^@/, '')
  if (isAliasName(name)) return name
  mistakes.push(`${place}${quoted(short_name)} cannot name ${what}`)
  return undefined
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
    definitions: [{ ...item, definition: { ...definition, obj_id: idOf(conv_id) } }],
    aliases: items.aliases.map((one) => (one.conv_id === old ? { ...one, conv_id } : one)),
  }
}
