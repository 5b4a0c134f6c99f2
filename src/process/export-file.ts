/**
 * Reads the processes, aliases and variables in a file of an export: one process, an array, or a
 * folder with its children. Only a process without an id, alone in its file, takes the id of the
 * file name: `4711_name.conv.json`. What stands in a folder `7_name.stage/` belongs to that stage.
 */
import { isObject, parseJson } from '../codec/json.ts'
import type { StageRecord } from '../codec/records.ts'
import { defined } from '../core/defined.ts'
import { isFault } from '../core/faults.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { isAbsent } from './logics/members.ts'
import { quoted } from './report.ts'
import { idText, idValue, isAliasName, processId } from './values.ts'

/** The JSON of one file; without a name for what did not come from a file. */
export interface ExportSource {
  readonly name: string | undefined
  readonly value: JsonValue
  /** Whether it was found in a folder, where other files may lie too. */
  readonly is_found?: boolean
}

/** An item with its place: text to put before a mistake, empty where it needs none. */
export interface Placed {
  readonly place: string
  /** The id of the stage that it belongs to. */
  readonly stage_id?: string | undefined
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
  /** Its number, by which templates may name it too. */
  readonly obj_id?: string | undefined
  /** Undefined for a secret: exports leave its value out, and it is not stored. */
  readonly value: JsonValue | undefined
}

export interface Found {
  readonly definitions: DefinitionItem[]
  readonly aliases: AliasItem[]
  readonly variables: VariableItem[]
  /** By their ids. */
  readonly stages: Map<string, StageRecord>
  readonly mistakes: string[]
}

/** Where an item was found, and the stage of that place. */
type Origin = ExportSource & Pick<Placed, 'stage_id'>

export function readExportFile(given: ExportSource, found: Found): void {
  const { name, value } = given
  if (isInstance(name)) return
  const source = { ...given, stage_id: stageOfPath(name, found) }
  const file = name === undefined ? '' : `${name}: `
  if (isNamed(name, '_ENV_VARS_.json') && isObject(value)) {
    for (const [key, row] of Object.entries(value)) {
      const variable = isObject(row) ? { short_name: key, ...row } : { short_name: key, value: row }
      collectVariable(variable, file, source, found)
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

/** Whether a file without any item belongs to an export: folders, stages, empty lists. */
export function isOfExport({ name, value }: ExportSource): boolean {
  if (isInstance(name)) return true
  if (isNamed(name, '_ALIASES_.json') || isNamed(name, '_ENV_VARS_.json')) return true
  return isObject(value) && value.obj_type !== undefined
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
  return { ...item, obj_id: idValue(id) }
}

function collectItem(item: JsonObject, place: string, source: Origin, found: Found): void {
  const { obj_type, scheme, short_name } = item
  if (obj_type === stage_type) {
    const stage_id = stageOfMarker(item, source, found)
    collectChildren(item, place, { ...source, stage_id }, found)
  } else if (typeof short_name === 'string' && scheme === undefined) {
    const is_variable = 'env_var_type' in item || 'data_type' in item || 'value' in item
    const is_file = isNamed(source.name, '_ENV_VARS_.json')
    if (is_variable || is_file) collectVariable(item, place, source, found)
    else collectAlias(item, place, source, found)
  } else if (obj_type === 1 || (isObject(scheme) && 'nodes' in scheme)) {
    found.definitions.push({ definition: item, place, stage_id: source.stage_id })
  } else if (obj_type !== undefined) collectChildren(item, place, source, found)
  else if (source.is_found !== true) {
    found.definitions.push({ definition: item, place, stage_id: source.stage_id })
  }
}

/** A folder keeps its children in arrays, under any name. */
function collectChildren(folder: JsonObject, place: string, source: Origin, found: Found): void {
  for (const [member, list] of Object.entries(folder)) {
    if (!Array.isArray(list)) continue
    for (const [at, child] of list.entries()) {
      const is_item =
        isObject(child) && (typeof child.obj_type === 'number' || isObject(child.scheme))
      if (is_item) collectItem(child, `${place}${member}[${at}]: `, source, found)
    }
  }
}

/** An alias without a process is ignored: exports hold such names. */
function collectAlias(item: JsonObject, place: string, source: Origin, found: Found): void {
  const { aliases, mistakes } = found
  const { obj_to_id, obj_to_type = 'conv' } = item
  const conv_id = obj_to_type === 'conv' ? processId(obj_to_id) : undefined
  const name = nameOf(item, 'an alias', place, mistakes)
  if (name !== undefined && conv_id !== undefined) {
    aliases.push({ place, name, conv_id, stage_id: stageOfItem(item, source, found) })
  }
}

function collectVariable(item: JsonObject, place: string, source: Origin, found: Found): void {
  const { variables, mistakes } = found
  const name = nameOf(item, 'a variable', place, mistakes)
  if (name === undefined) return
  const { env_var_type, data_type, value } = item
  const stage_id = stageOfItem(item, source, found)
  const of = { place, name, stage_id, obj_id: numberIn(item.obj_id) }
  if (env_var_type === 'secret' || value === undefined || value === null) {
    variables.push({ ...of, value: undefined })
  } else if (data_type !== 'json' || typeof value !== 'string') {
    variables.push({ ...of, value })
  } else {
    try {
      variables.push({ ...of, value: parseJson(value) })
    } catch (error) {
      if (!isFault(error)) throw error
      mistakes.push(`${place}variable @${name} is no JSON: ${error.message}`)
    }
  }
}

const stage_type = 6

/** The innermost stage that a file stands in, and the project around it. */
function stageOfPath(name: string | undefined, { stages }: Found): string | undefined {
  const folders = [...(name ?? '').matchAll(/(?<=^|[/\\])(\d+)_([^/\\]*)\.(stage|project)[/\\]/g)]
  const [, project_id, project_title] = folders.findLast(([, , , kind]) => kind === 'project') ?? []
  const [, id, title = ''] = folders.findLast(([, , , kind]) => kind === 'stage') ?? []
  if (id === undefined) return undefined
  noteStage(stages, { id, title, ...defined({ project_id, project_title }) })
  return id
}

/** A stage as its own file or a tree describes it, which says more than the name of a folder. */
function stageOfMarker(item: JsonObject, source: Origin, { stages }: Found): string | undefined {
  const id = numberIn(item.obj_id) ?? source.stage_id
  const { title, short_name } = item
  if (id === undefined) return undefined
  const texts = {
    ...(typeof title === 'string' ? { title } : {}),
    ...(typeof short_name === 'string' ? { short_name } : {}),
  }
  stages.set(id, { ...(stages.get(id) ?? { id, title: '' }), ...texts, ...projectOf(item) })
  return id
}

/** The stage that an item names itself, else that of its place. */
function stageOfItem(item: JsonObject, source: Origin, { stages }: Found): string | undefined {
  const id = numberIn(item.stage_id)
  if (id === undefined) return source.stage_id
  noteStage(stages, { id, title: '', ...projectOf(item) })
  return id
}

function projectOf({ project_id }: JsonObject): Pick<StageRecord, 'project_id'> {
  return defined({ project_id: numberIn(project_id) })
}

function noteStage(stages: Map<string, StageRecord>, stage: StageRecord): void {
  stages.set(stage.id, { ...stage, ...stages.get(stage.id) })
}

/** A number of the service; 0 is none. */
function numberIn(value: JsonValue | undefined): string | undefined {
  const text = idText(value)
  return text !== undefined && /^[1-9][0-9]{0,14}$/.test(text) ? text : undefined
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
