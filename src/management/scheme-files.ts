/**
 * The files of an export: definitions with the aliases and variables of their stages, in the
 * folders and under the names that an import of `process/export-file` knows. It is read a few
 * processes at a time; processes without nodes are left out, because no import takes them.
 */
import { parseStored, stringifyJson } from '../codec/json.ts'
import { keysOfType, processOfKey, versionKey } from '../codec/keys.ts'
import {
  type AliasAbout,
  decodeRecord,
  type ProcessRecord,
  type StageRecord,
  type VariableAbout,
} from '../codec/records.ts'
import { nextTurn } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { allIn } from '../engine/transactions/scans.ts'
import { stagesIn } from '../engine/transactions/stages.ts'
import type { TextFile } from '../files/zip-writer.ts'
import { export_bytes_max } from '../process/definition-limits.ts'
import { idText } from '../process/values.ts'
import type { Store, View } from '../store/store.ts'
import { idValue, noObject } from './act.ts'
import { withoutSecrets } from './definition.ts'
import { type Named, namedIn } from './named.ts'
import { root_title } from './reading.ts'

export interface SchemeChoice {
  /** A folder is the root: all processes. */
  readonly kind: 'conv' | 'folder' | 'stage' | 'project'
  readonly id: string
  /** Of the process; without one the newest. */
  readonly version?: number
  readonly has_aliases: boolean
  readonly has_variables: boolean
  /** Whether secrets in definitions stay, as they were given. */
  readonly has_secrets: boolean
  mayRead(view: View, conv_id: string): boolean
}

export interface SchemeFiles {
  readonly files: readonly TextFile[]
  /** The definitions, as JSON text. */
  readonly definitions: readonly string[]
}

interface Chosen {
  readonly conv_id: string
  readonly record: ProcessRecord
}

interface Plan {
  readonly chosen: readonly Chosen[]
  readonly stages: readonly StageRecord[]
  readonly aliases: readonly Named<AliasAbout>[]
  readonly variables: readonly Named<VariableAbout>[]
}

const processes_at_once = 8

/** Rejects with `answer_too_large` for more than an import takes. */
export async function schemeFiles(store: Store, choice: SchemeChoice): Promise<SchemeFiles> {
  const { chosen, stages, aliases, variables } = await store.view((view) => planOf(view, choice))
  const by_id = new Map(stages.map((stage) => [stage.id, stage]))
  const folder = choice.kind === 'folder' ? `${choice.id}_${root_title}.folder/` : ''
  const folderOf = (stage_id: string | undefined): string =>
    folder + stageFolder(stage_id === undefined ? undefined : by_id.get(stage_id), choice)
  const files: TextFile[] = []
  const definitions: string[] = []
  let bytes = 0
  const add = (name: string, text: string): void => {
    bytes += Buffer.byteLength(text)
    if (bytes > export_bytes_max) {
      throw fault('answer_too_large', `Answer size is over ${export_bytes_max} bytes`)
    }
    files.push({ name, text })
  }
  for (let at = 0; at < chosen.length; at += processes_at_once) {
    await store.view((view) => {
      for (const one of chosen.slice(at, at + processes_at_once)) {
        const text = definitionText(view, one, choice)
        if (text === undefined) continue
        definitions.push(text)
        const name = `${nameOf(one.conv_id, one.record.title)}.conv.json`
        add(folderOf(one.record.stage_id) + name, text)
      }
    })
    await nextTurn()
  }
  const used = new Set<string | undefined>(chosen.map(({ record }) => record.stage_id))
  for (const { stage_id } of [...aliases, ...variables]) used.add(stage_id)
  for (const stage_id of used) {
    const stage = stage_id === undefined ? undefined : by_id.get(stage_id)
    const put = (name: string, rows: readonly JsonObject[]): void => {
      if (rows.length > 0) add(folderOf(stage_id) + name, stringifyJson([...rows]))
    }
    const of_stage = { project_id: stage?.project_id, stage_id }
    const isHere = (one: Named): boolean => one.stage_id === stage_id
    put(
      '_ALIASES_.json',
      aliases.filter(isHere).map((one) => aliasRow(one, of_stage)),
    )
    put(
      '_ENV_VARS_.json',
      variables.filter(isHere).map((one) => variableRow(one, of_stage)),
    )
    if (stage !== undefined) {
      add(`${folderOf(stage_id)}${nameOf(stage.id, stage.title)}.stage.json`, stageText(stage))
    }
  }
  return { files, definitions }
}

/** Throws a refusal for a stage or project that is not there. */
function planOf(view: View, choice: SchemeChoice): Plan {
  const { kind, id, has_aliases, has_variables, mayRead } = choice
  const known = stagesIn(view)
  const stages = known.filter(
    (stage) =>
      kind === 'folder' ||
      kind === 'conv' ||
      (kind === 'stage' ? stage.id === id : stage.project_id === id),
  )
  if (stages.length === 0 && (kind === 'stage' || kind === 'project')) throw noObject(kind, id)
  const ids = new Set<string | undefined>(stages.map((stage) => stage.id))
  if (kind === 'folder') ids.add(undefined)
  const isWanted = ({ conv_id, record }: Chosen): boolean => {
    if (kind === 'conv') return conv_id === id
    return record.is_draft !== true && ids.has(record.stage_id)
  }
  const chosen = allIn(view, keysOfType('process'))
    .map(({ key, value }): Chosen => {
      return { conv_id: processOfKey(key), record: decodeRecord<ProcessRecord>(value) }
    })
    .filter((one) => isWanted(one) && mayRead(view, one.conv_id))
  const here = new Set(chosen.map(({ conv_id }) => conv_id))
  const isOfStages = ({ stage_id }: Named): boolean => kind === 'conv' || ids.has(stage_id)
  const aliases = has_aliases
    ? namedIn<AliasAbout>(view, 'alias').filter((one) => here.has(one.text) && isOfStages(one))
    : []
  const with_variables = has_variables && kind !== 'conv'
  const variables = with_variables ? namedIn<VariableAbout>(view, 'env_var').filter(isOfStages) : []
  return { chosen, stages: known, aliases, variables }
}

function definitionText(
  view: View,
  { conv_id, record }: Chosen,
  { version = record.version, has_secrets }: SchemeChoice,
): string | undefined {
  const stored = view.get(versionKey(conv_id, version))?.toString('utf8')
  if (stored === undefined) return undefined
  const given = parseStored(stored) as JsonObject
  const shown = has_secrets ? given : (withoutSecrets(given) as JsonObject)
  if (idText(given.obj_id) === conv_id) return has_secrets ? stored : stringifyJson(shown)
  return stringifyJson({ ...shown, obj_id: idValue(conv_id) })
}

function stageFolder(stage: StageRecord | undefined, { kind }: SchemeChoice): string {
  if (stage === undefined) return ''
  const { id, title, project_id, project_title = '' } = stage
  const folder = `${nameOf(id, title)}.stage/`
  if (project_id === undefined || kind === 'stage') return folder
  return `${nameOf(project_id, project_title)}.project/${folder}`
}

const title_chars_max = 80

/** `4711_title`, as a part of a path on every system. */
function nameOf(id: string, title: string): string {
  const cut = [...title].slice(0, title_chars_max).join('')
  return `${id}_${cut}`.replaceAll(/[\\/:*?"<>|\p{Cc}]/gu, '_').replace(/^\./, '_')
}

interface OfStage {
  readonly project_id: string | undefined
  readonly stage_id: string | undefined
}

function placed({ project_id, stage_id }: OfStage): JsonObject {
  return {
    ...(project_id === undefined ? {} : { project_id: idValue(project_id) }),
    ...(stage_id === undefined ? {} : { stage_id: idValue(stage_id) }),
  }
}

function aliasRow({ name, obj_id, text, about }: Named<AliasAbout>, of: OfStage): JsonObject {
  return {
    ...{ obj_id, obj_type: 'alias', short_name: name, title: about.title ?? name },
    ...{ description: about.description ?? '', obj_to_id: idValue(text), obj_to_type: 'conv' },
    ...placed(of),
  }
}

/** A secret without its value, which its administrator gives to each server. */
function variableRow(variable: Named<VariableAbout>, of: OfStage): JsonObject {
  const { name, obj_id, about, text } = variable
  const is_secret = about.secret !== undefined || text === ''
  const value: JsonValue = is_secret ? null : parseStored(text)
  const is_raw = typeof value === 'string' && about.data_type !== 'json'
  return {
    ...{ obj_id, obj_type: 'env_var', short_name: name, title: about.title ?? name },
    ...{ description: about.description ?? '', data_type: is_raw || is_secret ? 'raw' : 'json' },
    env_var_type: is_secret ? 'secret' : 'visible',
    value: is_secret || is_raw ? value : text,
    ...placed(of),
  }
}

const stage_type = 6

function stageText({ id, title, short_name, project_id }: StageRecord): string {
  return stringifyJson({
    ...{ obj_type: stage_type, obj_id: idValue(id), title },
    ...(short_name === undefined ? {} : { short_name }),
    ...(project_id === undefined ? {} : { project_id: idValue(project_id) }),
  })
}
