/**
 * What the files of an import hold together: each alias and variable once, each process under the
 * id that it is to have. A map may give processes new ids, in definitions and aliases alike.
 * `@name` stays in a definition, to be looked up when a task runs, unless the map says what it
 * means.
 */
import type { JsonValue } from '../core/model.ts'
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
import { type NewId, renamed } from './rename-ids.ts'
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
  // Without a map nothing changes, which to find out takes as long as a change.
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
