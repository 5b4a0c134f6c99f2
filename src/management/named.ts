/**
 * Aliases and variables as tools know them: by a number, and by a name that is one in its stage.
 * One without a number of its own has that which its name gives, so that none is written to be
 * read.
 */
import { hash } from 'node:crypto'
import { aboutOf, describedText, encodeDescribed } from '../codec/described.ts'
import { aliasKey, aliasOfKey, keysOfType, variableKey, variableOfKey } from '../codec/keys.ts'
import type { Described, StageRecord } from '../codec/records.ts'
import { inStage, partsOf } from '../core/alias.ts'
import { defined } from '../core/defined.ts'
import type { JsonObject } from '../core/model.ts'
import { allIn } from '../engine/transactions/scans.ts'
import { stagesIn } from '../engine/transactions/stages.ts'
import { alias_chars_max } from '../process/definition-limits.ts'
import type { View } from '../store/store.ts'
import { type Act, idOf, idText, idValue, invalid, noObject, required, textIn } from './act.ts'

export type NamedKind = 'alias' | 'env_var'

export interface Named<About extends Described = Described> {
  readonly kind: NamedKind
  readonly name: string
  readonly stage_id: string | undefined
  readonly obj_id: number
  /** What the alias names, or the value of the variable as JSON. */
  readonly text: string
  readonly about: About
}

const kinds = {
  alias: { type: 'alias', keyOf: aliasKey, nameOf: aliasOfKey },
  env_var: { type: 'variable', keyOf: variableKey, nameOf: variableOfKey },
} as const

/** In the order of their stages and names. */
export function namedIn<About extends Described>(view: View, kind: NamedKind): Named<About>[] {
  const { type, nameOf } = kinds[kind]
  return allIn(view, keysOfType(type)).flatMap(({ key, value }) => {
    const staged = nameOf(key)
    // A number of a variable leads to its name.
    if (staged.startsWith('\0')) return []
    const { name, stage } = partsOf(staged)
    const about = aboutOf<About>(value)
    const { obj_id = numberOf(staged) } = about
    return [{ kind, name, stage_id: stage, obj_id, text: describedText(value), about }]
  })
}

/** By the number in `obj_id`. Throws where there is none, for callers who may know. */
export function namedBy<About extends Described>(act: Act, kind: NamedKind): Named<About> {
  const id = idOf(act, 'obj_id')
  const found = namedIn<About>(act.tx.store, kind).find(({ obj_id }) => String(obj_id) === id)
  if (found === undefined) throw noObject(kind, id)
  return found
}

export function namedAt<About extends Described>(
  { tx }: Act,
  kind: NamedKind,
  { name, stage_id }: Pick<Named, 'name' | 'stage_id'>,
): Named<About> | undefined {
  const is_it = (one: Named): boolean => one.name === name && one.stage_id === stage_id
  return namedIn<About>(tx.store, kind).find(is_it)
}

/** What a new one is known by: its name gives the number, unless that is taken. */
export function freeNumber({ tx }: Act, kind: NamedKind, of: Pick<Named, 'name' | 'stage_id'>) {
  const taken = new Set(namedIn(tx.store, kind).map(({ obj_id }) => obj_id))
  let number = numberOf(inStage(of.name, of.stage_id))
  while (taken.has(number)) number++
  return number
}

const number_digits = 11

function numberOf(staged: string): number {
  return Number.parseInt(hash('sha256', staged).slice(0, number_digits), 16)
}

/** Writes it with its number, under its name; one that was under another name there is gone. */
export function putNamed(act: Act, next: Named, before?: Named): void {
  const { keyOf } = kinds[next.kind]
  const { store, now_ms } = act.tx
  if (before !== undefined) store.del(keyOf(inStage(before.name, before.stage_id)))
  const about = { create_ms: now_ms, ...next.about, change_ms: now_ms, obj_id: next.obj_id }
  store.put(keyOf(inStage(next.name, next.stage_id)), encodeDescribed(next.text, about))
}

export function removeNamed({ tx }: Act, { kind, name, stage_id }: Named): void {
  tx.store.del(kinds[kind].keyOf(inStage(name, stage_id)))
}

/** What an op says of an alias or a variable beside its name. */
export function saidIn(act: Act): Pick<Described, 'title' | 'description'> {
  const title = textIn(act, 'title', title_chars_max)
  return defined({ title, description: textIn(act, 'description', description_chars_max) })
}

const title_chars_max = 255
const description_chars_max = 10_000

/** A name as the service takes it. */
export function shortNameIn(act: Act): string {
  const given = textIn(act, 'short_name', 255)
  if (given === undefined) throw required('short_name')
  const name = given.replace(/^@/, '')
  if (/^[a-z0-9-]+$/.test(name) && name.length <= alias_chars_max) return name
  throw invalid('short_name', `1 to ${alias_chars_max} of a-z, 0-9 and -`)
}

/** The stage that an op names; undefined for 0 and for none. Throws where it is not known. */
export function stageIn(act: Act): StageRecord | undefined {
  const id = idText(act.op.stage_id)
  if (id === undefined || id === '0') return undefined
  const found = stagesIn(act.tx.store).find((stage) => stage.id === id)
  const project = idText(act.op.project_id)
  const is_of = project === undefined || project === '0' || found?.project_id === project
  if (found === undefined || !is_of) throw noObject('stage', id)
  return found
}

/** The project and the stage of an object, in answers; 0 for none. */
export function placeOf({ tx }: Pick<Act, 'tx'>, stage_id: string | undefined): JsonObject {
  const stage = stagesIn(tx.store).find(({ id }) => id === stage_id)
  return { project_id: idValue(stage?.project_id ?? '0'), stage_id: idValue(stage_id ?? '0') }
}

/** Whether a list that is asked for the stage of the op has one of this stage. */
export function isAskedFor({ op }: Act, stage_id: string | undefined): boolean {
  const asked = idText(op.stage_id)
  return asked === undefined || asked === (stage_id ?? '0')
}

/** Whether its name or title has the `pattern` of a list. */
export function hasPattern(act: Act, { name, about: { title = '' } }: Named): boolean {
  const pattern = textIn(act, 'pattern', 255) ?? ''
  return name.includes(pattern) || title.includes(pattern)
}
