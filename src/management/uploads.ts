/**
 * Uploads of a scheme: new processes from an export, as JSON text or as a zip in base64, all or
 * none. A process keeps its id where that was never used, else it gets the next free one, and what
 * refers to it among the uploaded ones follows. It is read and compiled before the transaction.
 */
import { bytesOf, isObject, parseStored, stringifyJson } from '../codec/json.ts'
import { grantKey, processKey } from '../codec/keys.ts'
import { encodeRecord } from '../codec/records.ts'
import { defined } from '../core/defined.ts'
import { type Fault, isFault, type Mistake } from '../core/faults.ts'
import type { Caller, JsonObject } from '../core/model.ts'
import { inSlices } from '../core/slices.ts'
import { mayAdminister } from '../engine/access/users.ts'
import { compileAll, type NewVersion, readJson } from '../engine/definitions/definitions.ts'
import { loadLimits, putVersion } from '../engine/definitions/imports.ts'
import { newNonce } from '../engine/definitions/webhooks.ts'
import { mistakesOf } from '../engine/drafts/draft-confirm.ts'
import { hidden, secret_names } from '../engine/drafts/draft-secrets.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import type { Process } from '../engine/transactions/catalog.ts'
import { listAliases, putAlias, putStages } from '../engine/transactions/stages.ts'
import { putVariable } from '../engine/transactions/variables.ts'
import { readExport } from '../files/read-export.ts'
import type { AliasItem, DefinitionItem, ExportSource } from '../process/export-file.ts'
import { type ExportItems, exportItems } from '../process/export-items.ts'
import { idText } from '../process/values.ts'
import {
  type Act,
  acted,
  all_rights,
  idValue,
  invalid,
  refusal,
  requireAdministrator,
  required,
} from './act.ts'
import type { Answer } from './answers.ts'
import { nextConvId, noteConvId } from './changing.ts'
import { byNode } from './mistakes.ts'
import { noteUpload } from './upload-statistics.ts'

type Alias = Pick<AliasItem, 'name' | 'stage_id'>

interface Upload {
  readonly items: ExportItems
  readonly versions: readonly NewVersion[]
  /** The id in the scheme, by the id here. */
  readonly old_ids: ReadonlyMap<string, string | undefined>
  readonly warnings: readonly Mistake[]
}

/** What the ops of a request upload, until it is answered. */
const prepared = new WeakMap<JsonObject, Upload | Fault>()

/** Of the answer, which is kept for a repeat in 64 KiB. */
const answer_bytes_max = 24_000

export async function prepareUpload(
  engine: ServedEngine,
  op: JsonObject,
  caller: Caller,
): Promise<void> {
  const { store } = engine.process_parts
  if (!(await store.view((view) => mayAdminister(view, caller)))) return
  try {
    prepared.set(op, await uploadOf(engine, op))
  } catch (thrown) {
    if (!isFault(thrown)) throw thrown
    prepared.set(op, thrown)
  }
}

async function uploadOf(engine: ServedEngine, { scheme }: JsonObject): Promise<Upload> {
  if (scheme === undefined) throw required('scheme')
  const { limits, handlers, store, engine: parts } = engine.process_parts
  const sources = await sourcesOf(engine, scheme)
  const read = exportItems(sources)
  const map: Record<string, string> = {}
  const old_ids = new Map<string, string | undefined>()
  await store.view((view) => {
    let next = nextConvId(view)
    const isFree = (id: string): boolean =>
      view.get(processKey(id)) === undefined && !old_ids.has(id)
    for (const { definition } of read.definitions) {
      const old = idText(definition.obj_id)
      const is_number = old !== undefined && /^[1-9][0-9]{0,14}$/.test(old)
      const is_new = old !== undefined && isFree(old) && (!is_number || Number(old) >= next)
      while (!is_new && !isFree(String(next))) next++
      const id = is_new ? (old as string) : String(next)
      if (old !== undefined && old !== id) map[old] = id
      if (old === undefined) definition.obj_id = idValue(id)
      old_ids.set(id, old)
    }
  })
  const items = exportItems(sources, { map })
  const compiled = await inSlices(compileAll(items.definitions, limits, handlers, parts.db_call))
  const in_files = items.mistakes.map((text): Mistake => ({ text }))
  const mistakes = [...compiled.mistakes, ...in_files]
  if (mistakes.length > 0) throw refusedBy(mistakes)
  await loadLimits(engine.process_parts, compiled.versions)
  return { items, versions: compiled.versions, old_ids, warnings: compiled.warnings }
}

function refusedBy(mistakes: readonly Mistake[]): Fault {
  return refusal(String(mistakes.length), { errors: byNode('scheme', mistakes) })
}

async function sourcesOf(
  { limits }: ServedEngine,
  scheme: JsonObject[string],
): Promise<ExportSource[]> {
  if (isObject(scheme) || Array.isArray(scheme)) return [{ name: undefined, value: scheme }]
  if (typeof scheme !== 'string') throw invalid('scheme', 'an export as JSON, or a zip in base64')
  const is_zip = /^UEs[DF]/.test(scheme)
  const bytes = Buffer.from(scheme, is_zip ? 'base64' : 'utf8')
  try {
    const files = await readExport([{ name: 'scheme', chunks: [bytes] }])
    const sources: ExportSource[] = []
    for (const { name, text, is_found = false } of files) {
      sources.push({
        name: is_zip ? name : undefined,
        value: await inSlices(readJson(text, limits)),
        is_found,
      })
    }
    return sources
  } catch (thrown) {
    const places = mistakesOf(thrown)
    if (places !== undefined) throw refusedBy(places)
    throw isFault(thrown) && thrown.code === 'format_error' ? refusal(thrown.message) : thrown
  }
}

export function uploadScheme(act: Act): Answer {
  requireAdministrator(act)
  const { tx, op, engine, caller } = act
  const upload = prepared.get(op)
  if (upload === undefined) throw refusal('the rights have changed meanwhile: upload again')
  if (isFault(upload)) throw upload
  const { items, versions, old_ids } = upload
  const { process_parts: parts, chance } = engine
  const aliases = isOff(op.with_alias) ? [] : items.aliases
  const taken = versions.find(({ conv_id }) => tx.process(conv_id) !== undefined)
  if (taken !== undefined)
    throw refusal(`process ${taken.conv_id} was made meanwhile: upload again`)
  const known = new Map(listAliases(tx.store).map((alias) => [nameOf(alias), alias.conv_id]))
  for (const alias of isOn(op.rewrite_alias) ? [] : aliases) {
    const is_free = [undefined, alias.conv_id].includes(known.get(nameOf(alias)))
    if (!is_free) throw refusal(`alias @${alias.name} exists`)
  }
  const scheme = versions.map((version) => rowOf(version, old_ids.get(version.conv_id)))
  if (bytesOf(stringifyJson(scheme)) > answer_bytes_max) {
    throw refusal('too many processes for one upload: conveyor process import takes them')
  }
  const warnings = [...upload.warnings, ...versions.flatMap(secretWarnings)]
  const more = warnings.length === 0 ? {} : { warnings: byNode('scheme', warnings) }
  if (op.type === 'validate') return { scheme, ...more }
  parts.catalog.expect(versions)
  putStages(tx.store, items.stages)
  for (const [at, version] of versions.entries()) {
    const { conv_id, graph } = version
    const isNode = (id: string): boolean => graph.nodes.has(id)
    const { stage_id } = items.definitions[at] as DefinitionItem
    const how = { given: {}, isNode, nonce: newNonce(chance), now_ms: tx.now_ms, stage_id }
    putVersion(tx.store, parts.catalog, version, how)
    const record = (tx.process(conv_id) as Process).record
    if (caller.user !== undefined) {
      tx.store.put(processKey(conv_id), encodeRecord({ ...record, owner: caller.user }))
      tx.store.put(grantKey(caller.user, conv_id), Buffer.from([all_rights]))
    }
    if (/^[0-9]{1,15}$/.test(conv_id)) noteConvId(tx.store, Number(conv_id))
    acted(act, conv_id, 1)
  }
  for (const { name, conv_id, stage_id } of aliases) {
    putAlias(tx.store, { name, conv_id, ...defined({ stage_id }) })
  }
  for (const one of items.variables) putVariable(tx.store, one)
  return { hash: noteUpload(act, newNonce(chance), scheme), scheme, ...more }
}

const nameOf = ({ name, stage_id = '' }: Alias): string => JSON.stringify([name, stage_id])
const isOn = (flag: unknown): boolean => flag === true || flag === 'true'
const isOff = (flag: unknown): boolean => flag === false || flag === 'false'

function rowOf({ conv_id, graph, text }: NewVersion, old: string | undefined): JsonObject {
  const { description = '' } = parseStored(text) as JsonObject
  return {
    ...{ obj_id: idValue(conv_id), obj_type: 'conv', title: graph.title.slice(0, title_chars_max) },
    ...{ description: String(description).slice(0, title_chars_max), hash: null },
    ...{ old_obj_id: old === undefined ? null : idValue(old), old_parent_id: 0 },
  }
}

const title_chars_max = 255

/** Exports show secrets as `***`, and that of a webhook is stored by an import alone. */
function secretWarnings({ conv_id, text, lock_secret }: NewVersion): Mistake[] {
  const is_hidden = [...secret_names].some((name) => text.includes(`"${name}":"${hidden}"`))
  if (!is_hidden && lock_secret === undefined) return []
  return [{ conv_id, text: 'a secret is not in what was uploaded: send it in a definition' }]
}
