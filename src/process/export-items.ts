/**
 * Combines the files of an import: each alias and variable once in its stage, each process under
 * its final id, of all stages or of those that were chosen. A map of new ids is applied to
 * definitions (`obj_id`, `conv_id`, `{{conv[id]…}}`) and aliases before anything is compiled, so
 * the stored definition hashes alike each time. `@name` stays, to be looked up at run time, unless
 * the map has it.
 */
import { isObject, setMember } from '../codec/json.ts'
import type { StageRecord } from '../codec/records.ts'
import { inStage } from '../core/alias.ts'
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
  /** Those of the items. */
  readonly stages: readonly StageRecord[]
  /** Files that were found and hold nothing of an export. */
  readonly skipped: readonly string[]
  readonly mistakes: readonly string[]
}

/** Old id or `@name` → new id. */
export type IdMap = Readonly<Record<string, string>>

export interface ExportChoice {
  readonly map?: IdMap | undefined
  /** The id, title or short name of a stage, or `none`: all items, of no stage. */
  readonly stage?: string | undefined
  /** The id or title of a project. */
  readonly project?: string | undefined
}

export function exportItems(
  sources: readonly ExportSource[],
  choice: ExportChoice = {},
): ExportItems {
  const all: Found = {
    ...{ definitions: [], aliases: [], variables: [], mistakes: [] },
    stages: new Map(),
  }
  const skipped: string[] = []
  for (const source of sources) {
    const before = countOf(all)
    readExportFile(source, all)
    if (countOf(all) > before) continue
    if (source.is_found === true && !isOfExport(source)) skipped.push(source.name ?? '')
  }
  if (countOf(all) === 0) all.mistakes.push('there is no definition')
  const found = chosen(all, choice)
  const { map = {} } = choice
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
  checkNumbers(variables, mistakes)
  const of_items = new Set([...definitions, ...aliases, ...variables].map((one) => one.stage_id))
  const stages = [...found.stages.values()].filter(({ id }) => of_items.has(id))
  for (const id of Object.keys(map)) {
    if (!used.has(id)) mistakes.push(`nothing is or names ${quoted(id)}, to be mapped`)
  }
  return { definitions, aliases, variables, stages, skipped, mistakes }
}

/** The items of the stages that were asked for, and those of no stage. */
function chosen(found: Found, { stage, project }: ExportChoice): Found {
  if (stage === undefined && project === undefined) return found
  const { definitions, aliases, variables, stages, mistakes } = found
  const of_project = [...stages.values()].filter(
    ({ project_id, project_title }) =>
      project === undefined || project_id === project || project_title === project,
  )
  const wanted = of_project.filter(
    ({ id, title, short_name }) =>
      stage === undefined || stage === 'none' || [id, title, short_name].includes(stage),
  )
  const is_unclear = stage !== undefined && stage !== 'none' && wanted.length > 1
  if (wanted.length === 0 || is_unclear) {
    const asked = [
      ...(stage === undefined ? [] : [`stage ${quoted(stage)}`]),
      ...(project === undefined ? [] : [`project ${quoted(project)}`]),
    ].join(' of ')
    const there = [...stages.values()].map(stageText).join(', ') || 'none'
    const what = is_unclear ? `several are ${asked}: give the id` : `there is no ${asked}`
    mistakes.push(`${what}; the stages are ${there}`)
  }
  const ids = new Set([undefined, ...wanted.map(({ id }) => id)])
  const kept = <Item extends Placed>(items: readonly Item[]): Item[] =>
    items
      .filter(({ stage_id }) => ids.has(stage_id))
      .map((item) => (stage === 'none' ? { ...item, stage_id: undefined } : item))
  const of_kept = {
    ...{ definitions: kept(definitions), aliases: kept(aliases), variables: kept(variables) },
  }
  return { ...of_kept, stages, mistakes }
}

function stageText({ id, title, project_id }: StageRecord): string {
  const of = project_id === undefined ? '' : ` of project ${project_id}`
  return title === '' ? `${id}${of}` : `${id} (${title})${of}`
}

/** A number names one variable. */
function checkNumbers(variables: readonly VariableItem[], mistakes: string[]): void {
  const first = new Map<string, VariableItem>()
  for (const item of variables) {
    if (item.obj_id === undefined) continue
    const other = first.get(item.obj_id)
    if (other === undefined) first.set(item.obj_id, item)
    else {
      const both = `@${other.name}${inPlace(other)} and @${item.name}${inPlace(item)}`
      mistakes.push(`${item.place}variable ${item.obj_id} is ${both}`)
    }
  }
}

const inPlace = ({ place }: Placed): string =>
  place === '' ? '' : ` in ${place.replace(/: $/, '')}`

function countOf({ definitions, aliases, variables, mistakes }: Found): number {
  return definitions.length + aliases.length + variables.length + mistakes.length
}

function renamedAlias(item: AliasItem, newId: NewId): AliasItem {
  const mapped = newId(`@${item.name}`)
  return { ...item, conv_id: mapped === `@${item.name}` ? newId(item.conv_id) : mapped }
}

/**
 * Each name once in its stage. Two items that differ are a mistake; the text never shows a
 * variable’s value.
 */
function agreeing<Item extends Placed & { readonly name: string }>(
  items: readonly Item[],
  what: string,
  valueIn: (item: Item) => JsonValue | undefined,
  mistakes: string[],
): Item[] {
  const first = new Map<string, Item>()
  for (const item of items) {
    const name = inStage(item.name, item.stage_id)
    const other = first.get(name)
    if (other === undefined) first.set(name, item)
    else if (textOf(valueIn(item) ?? null) !== textOf(valueIn(other) ?? null)) {
      const before = inPlace(other) || ' before'
      mistakes.push(`${item.place}${what} @${item.name} is another one than${before}`)
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
