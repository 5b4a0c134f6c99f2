/**
 * Stages of projects: their names, and the aliases in them. A name that a definition writes is
 * looked up in the stage that its logic names, else in the definition's own, then among those of no
 * stage, never in another stage.
 */
import { aboutOf, describedText, encodeDescribed } from '../../codec/described.ts'
import { aliasKey, aliasOfKey, keysOfType, metaKey } from '../../codec/keys.ts'
import {
  decodeRecord,
  encodeRecord,
  type StageRecord,
  type StagesRecord,
} from '../../codec/records.ts'
import { inStage, partsOf } from '../../core/alias.ts'
import { defined } from '../../core/defined.ts'
import type { Tx, View } from '../../store/store.ts'
import type { Alias, AliasResult } from '../api/process-api.ts'
import { allIn } from './scans.ts'

/** Absent in a file that never had a stage. */
const stages_key = metaKey('stages')

export function stagesIn(view: View): readonly StageRecord[] {
  const bytes = view.get(stages_key)
  return bytes === undefined ? [] : decodeRecord<StagesRecord>(bytes).stages
}

/** Adds stages, and what is now known of those there. */
export function putStages(tx: Tx, stages: readonly StageRecord[]): void {
  if (stages.length === 0) return
  const known = new Map(stagesIn(tx).map((stage) => [stage.id, stage]))
  for (const stage of stages) {
    const { title = '' } = known.get(stage.id) ?? {}
    const merged = { ...known.get(stage.id), ...stage, title: stage.title || title }
    known.set(stage.id, merged)
  }
  setStages(tx, [...known.values()])
}

export function setStages(tx: Tx, stages: readonly StageRecord[]): void {
  const bytes = encodeRecord({ stages })
  if (tx.get(stages_key)?.equals(bytes) !== true) tx.put(stages_key, bytes)
}

/** The id of a stage that an op names by its id or as `project/stage`. */
function stageId(view: View, given: string): string {
  if (!given.includes('/')) return given
  const is_it = ({ short_name, project_id, project_title }: StageRecord): boolean =>
    [project_id, project_title].some((project) => `${project}/${short_name}` === given)
  return stagesIn(view).find(is_it)?.id ?? given
}

/** Resolves `@name` of an op or an embedder. Other ids, and unknown aliases, stay as they are. */
export function convIdOf(view: View, conv_id: string): string {
  if (!conv_id.startsWith('@')) return conv_id
  const { name, stage } = partsOf(conv_id.slice(1))
  return convAt(view, name, stage && stageId(view, stage)) ?? conv_id
}

/** Resolves `@name` as a definition of this stage does. */
export function convIdFrom(view: View, conv_id: string, home: string | undefined): string {
  if (!conv_id.startsWith('@')) return conv_id
  const { name, stage = home } = partsOf(conv_id.slice(1))
  const there = stage === undefined ? undefined : convAt(view, name, stage)
  return there ?? convAt(view, name, undefined) ?? conv_id
}

function convAt(view: View, name: string, stage: string | undefined): string | undefined {
  const value = view.get(aliasKey(inStage(name, stage)))
  // One that tools have unlinked names nothing.
  return value === undefined ? undefined : describedText(value) || undefined
}

export function listAliases(view: View): Alias[] {
  return allIn(view, keysOfType('alias')).flatMap(({ key, value }) => {
    const { name, stage: stage_id } = partsOf(aliasOfKey(key))
    const conv_id = describedText(value)
    return conv_id === '' ? [] : [{ name, conv_id, ...defined({ stage_id }) }]
  })
}

/** What was said of it stays. */
export function putAlias(tx: Tx, { name, conv_id, stage_id }: Alias): AliasResult {
  const key = aliasKey(inStage(name, stage_id))
  const old = tx.get(key)
  const alias = { name, conv_id, ...defined({ stage_id }) }
  const before = old && describedText(old)
  if (before === conv_id) return { ...alias, state: 'unchanged' }
  const about = old === undefined ? undefined : aboutOf(old)
  tx.put(key, encodeDescribed(conv_id, about))
  return { ...alias, state: before === undefined ? 'created' : 'updated' }
}
