/**
 * Imports: reads, compiles and stores definitions, aliases and variables in one transaction. The
 * status of an existing process never changes. A node with tasks can be dropped only with a target
 * for its tasks; the process record keeps these migrations until the last task has migrated.
 */
import { isObject, stringifyJson } from '../../codec/json.ts'
import { limitNextKey, metaKey, processKey, versionKey } from '../../codec/keys.ts'
import { decodeRecord, encodeRecord, type ProcessRecord } from '../../codec/records.ts'
import { partsOf } from '../../core/alias.ts'
import { nextTurn } from '../../core/clock.ts'
import { defined } from '../../core/defined.ts'
import { fault, isFault, type Mistake } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import { inSlices } from '../../core/slices.ts'
import type { ExportSource } from '../../process/export-file.ts'
import { type ExportItems, exportItems, withId } from '../../process/export-items.ts'
import { callback_url } from '../../process/templates/path.ts'
import { variableOfRef } from '../../process/values.ts'
import type { Store, Tx, View } from '../../store/store.ts'
import type { GivenSecret } from '../access/secrets.ts'
import type {
  ImportResult,
  Processes,
  PutManyOptions,
  PutResult,
  WaitsFor,
} from '../api/process-api.ts'
import { migrationOf } from '../tasks/waits.ts'
import type { Catalog, Process } from '../transactions/catalog.ts'
import { liveTasksAt } from '../transactions/node-counters.ts'
import { convIdFrom, putAlias, putStages } from '../transactions/stages.ts'
import { putVariable, type Variables } from '../transactions/variables.ts'
import { badDefinition, compileAll, type NewVersion, readJson } from './definitions.ts'
import type { ProcessParts } from './processes.ts'
import { firstWebhook, newNonce } from './webhooks.ts'

export function newImporter(
  parts: ProcessParts,
): Pick<Processes, 'put' | 'putMany' | 'importFiles'> {
  const { store, catalog, limits, chance, clock, addresses, handlers, emit, onChanged } = parts
  const { db_call } = parts.engine

  async function importAll(
    read: ExportItems,
    { conv_id, moves = {}, dry_run = false, stage }: PutManyOptions,
    known_mistakes: readonly string[] = [],
  ): Promise<ImportResult> {
    const items = conv_id === undefined ? read : withId(read, String(conv_id))
    const { versions, mistakes, warnings } = await inSlices(
      compileAll(items.definitions, limits, handlers, db_call),
    )
    const refuse = (reason: unknown): never => {
      throw isFault(reason) && warnings.length > 0 ? Object.assign(reason, { warnings }) : reason
    }
    const in_files = [...known_mistakes, ...items.mistakes, ...tooLarge(items, limits)]
    if (mistakes.length + in_files.length > 0) refuse(badDefinition([...mistakes, ...in_files]))
    const isNode = (node_id: string): boolean =>
      versions.some(({ graph }) => graph.nodes.has(node_id))
    if (!dry_run && versions.some(({ text }) => text.includes(callback_url))) {
      await addresses.prepare()
    }
    /** Handlers named for a process but for none of its nodes. */
    let idle: { conv_id: string; handler: string }[] = []
    const nonces = versions.map(() => newNonce(chance))
    const locks = versions.map(({ conv_id, graph, lock_secret }) =>
      addresses.locks.changeOf(conv_id, graph, lock_secret),
    )
    const putAll = (tx: Tx, secrets: readonly (GivenSecret | undefined)[]): ImportResult => {
      const before = versions.map(({ conv_id }) =>
        handlersIn(tx, handlers, catalog.find(tx, conv_id)),
      )
      const puts = versions.map((version, at) =>
        putVersion(tx, catalog, version, {
          ...{ given: moves, isNode },
          stage_id: stage === 'none' ? null : items.definitions[at]?.stage_id,
          ...{ nonce: nonces[at] as string, now_ms: clock.now_ms() },
        }),
      )
      for (const one of secrets) one?.put(tx)
      putStages(tx, stage === 'none' ? [] : items.stages)
      const aliases = items.aliases.map(({ name, conv_id, stage_id }) =>
        putAlias(tx, { name, conv_id, ...defined({ stage_id }) }),
      )
      const stored = items.variables.map((item) => putVariable(tx, item))
      idle = []
      const processes = versions.map((version, at): PutResult => {
        const lock = locks[at] !== undefined && puts[at]?.state === 'unchanged' ? is_updated : {}
        const stored = { ...(puts[at] as Stored), ...lock }
        const made = resultOfPut(tx, parts, version, stored, before[at] ?? new Set())
        for (const handler of made.idle) idle.push({ conv_id: version.conv_id, handler })
        return made.result
      })
      return { processes, aliases, variables: stored, skipped: items.skipped }
    }
    await loadLimits(parts, versions)
    if (dry_run) return undone(store, (tx) => putAll(tx, [])).catch(refuse)
    catalog.expect(versions)
    const result = await addresses.locks
      .change(locks, (secrets) => store.update((tx) => putAll(tx, secrets)))
      .catch(refuse)
    await store.view((view) => {
      for (const { conv_id } of versions) catalog.find(view, conv_id)
    })
    for (const one of idle) emit('handler_unused', { ...one })
    await inSlices(
      (function* () {
        for (const { conv_id } of [...versions, ...items.aliases]) yield onChanged(conv_id)
      })(),
    )
    return result
  }

  return {
    async put(definition, given = {}) {
      const value = await inSlices(readJson(definition, limits))
      if (!isObject(value)) throw badDefinition(['a definition is one JSON object'])
      const none = { aliases: [], variables: [], stages: [], skipped: [], mistakes: [] }
      const items = { ...none, definitions: [{ definition: value, place: '' }] }
      return (await importAll(items, given)).processes[0] as PutResult
    },
    async putMany(definitions, given = {}) {
      const value = await inSlices(readJson(definitions, limits))
      const items = exportItems([{ name: undefined, value }], given)
      return [...(await importAll(items, given)).processes]
    },
    async importFiles(files, given = {}) {
      const mistakes: string[] = []
      const sources: ExportSource[] = []
      for (const { name, text, is_found = false } of files) {
        try {
          sources.push({ name, value: await inSlices(readJson(text, limits)), is_found })
        } catch (error) {
          if (!isFault(error)) throw error
          mistakes.push(`${name}: ${error.message}`)
        }
        await nextTurn()
      }
      if (sources.length === 0 && mistakes.length > 0) throw badDefinition(mistakes)
      return importAll(exportItems(sources, given), given, mistakes)
    },
  }
}

/** The handlers that nodes of a definition wait for. */
export function handlersIn(
  view: View,
  handlers: ProcessParts['handlers'],
  of: Pick<Process, 'conv_id' | 'graph'> | undefined,
): Set<string> {
  const nodes = [...(of?.graph.nodes.values() ?? [])]
  const names = nodes.map((node) => handlers.nameIn(view, of?.conv_id ?? '', node))
  return new Set(names.filter((name) => name !== undefined))
}

/** What a stored version waits for; `idle` are the handlers that no node of it waits for. */
export function resultOfPut(
  tx: View,
  { handlers, engine: { variables } }: Pick<ProcessParts, 'handlers' | 'engine'>,
  version: NewVersion,
  stored: Stored,
  before: ReadonlySet<string>,
): { readonly result: PutResult; readonly idle: readonly string[] } {
  const { conv_id, warnings } = version
  const waits_for = waitsFor(tx, version, variables)
  const used = handlersIn(tx, handlers, version)
  const named = new Set([...handlers.namesOf(tx, conv_id), ...before])
  const idle = [...named].filter((handler) => !used.has(handler))
  const unused = idle.map((handler) => `no node waits for the handler "${handler}"`)
  const all = [...warnings, ...waitWarnings(waits_for), ...unused]
  return { result: { conv_id, ...stored, warnings: all, waits_for }, idle }
}

/** Runs a transaction, rolls it back and returns its result. */
async function undone<T>(store: Store, change: (tx: Tx) => T): Promise<T> {
  const end = new Error('a dry run')
  const values: T[] = []
  await store
    .update((tx) => {
      values.push(change(tx))
      throw end
    })
    .catch((error: unknown) => {
      if (error !== end) throw error
    })
  return values.at(-1) as T
}

/** Another secret of a webhook changes no version. */
const is_updated = { state: 'updated' } as const

export type Stored = Pick<PutResult, 'version' | 'state' | 'webhook_opened'>

function tooLarge({ variables }: ExportItems, { task_bytes_max }: Limits): string[] {
  return variables
    .filter(({ value }) => value !== undefined && stringifyJson(value).length > task_bytes_max)
    .map(({ place, name }) => `${place}variable @${name} is longer than ${task_bytes_max} bytes`)
}

/** `moves` of an import, and the nodes of all its definitions. */
interface Migrations {
  readonly given: Readonly<Record<string, string>>
  isNode(node_id: string): boolean
}

export interface PutHow extends Migrations {
  /** For a webhook that this opens. */
  readonly nonce: string
  readonly now_ms: number
  readonly by?: Pick<ProcessRecord, 'confirmed_by' | 'confirmed_draft'>
  /** The stage of the process from now on, null for none; absent where it stays. */
  readonly stage_id?: string | null | undefined
}

/** Stores the next version of a process, unless nothing has changed. */
export function putVersion(tx: Tx, catalog: Catalog, next: NewVersion, how: PutHow): Stored {
  const { conv_id, hash, graph } = next
  const old = catalog.find(tx, conv_id)
  const stage_id = how.stage_id === undefined ? old?.record.stage_id : how.stage_id
  const in_stage = stage_id ? { stage_id } : {}
  if (old?.record.hash === hash) {
    const { stage_id: before, ...kept } = old.record
    const { version } = kept
    if (before === in_stage.stage_id) return { version, state: 'unchanged' }
    tx.put(processKey(conv_id), encodeRecord({ ...kept, ...in_stage }))
    return { version, state: 'updated' }
  }
  const version = (old?.record.version ?? 0) + 1
  const stubs = [...graph.nodes.values()].filter(({ is_stub }) => is_stub).length
  const record: ProcessRecord = {
    title: graph.title,
    status: old?.record.status ?? graph.status,
    version,
    hash,
    ...(graph.nodes.size === 0 ? { is_draft: true } : {}),
    ...(stubs === 0 ? {} : { stubs }),
    ...(graph.instances.length === 0 ? {} : { instances: graph.instances }),
    moves: old === undefined ? {} : pendingMigrations(tx, old, next, how),
    webhook: old?.record.webhook ?? firstWebhook(old?.graph, graph, how.nonce),
    create_ms: old === undefined ? how.now_ms : (old.record.create_ms ?? how.now_ms),
    change_ms: how.now_ms,
    ...(old?.record.owner === undefined ? {} : { owner: old.record.owner }),
    ...how.by,
    ...in_stage,
  }
  tx.put(versionKey(conv_id, version), Buffer.from(next.text))
  tx.put(processKey(conv_id), encodeRecord(record))
  if (hasLimits(old?.graph)) tx.put(limitNextKey(conv_id), Buffer.alloc(0))
  // Each open loads their code from now on.
  if (hasLimits(graph)) tx.put(metaKey('limits'), Buffer.alloc(0))
  const is_opened = record.webhook !== old?.record.webhook
  return {
    version,
    state: old === undefined ? 'created' : 'updated',
    ...(is_opened ? { webhook_opened: true } : {}),
  }
}

/** The code of limits, before a definition with one is stored: its first tasks need it. */
export async function loadLimits(
  { engine }: Pick<ProcessParts, 'engine'>,
  versions: readonly (Pick<NewVersion, 'graph'> | undefined)[],
): Promise<void> {
  if (versions.some((version) => hasLimits(version?.graph))) await engine.loadSlots()
}

function hasLimits(graph: Process['graph'] | undefined): boolean {
  for (const { limits } of graph?.nodes.values() ?? []) if (limits !== undefined) return true
  return false
}

/** Targets of dropped nodes with tasks. Throws `tasks_in_node` if one is missing. */
function pendingMigrations(
  tx: Tx,
  old: Process,
  { graph, conv_id, place }: NewVersion,
  { given, isNode }: Migrations,
): Record<string, string> {
  const mistakes = Object.values(given)
    .filter((to) => !isNode(to))
    .map((to) => `move to "${to}": no such node`)
  if (mistakes.length > 0) throw badDefinition(mistakes)
  // A migration belongs to the definition that has its target node.
  const own = Object.entries(given).filter(([, to]) => graph.nodes.has(to))
  const wanted = Object.fromEntries(own)
  const pending = Object.create(null) as Record<string, string>
  const without_target: Mistake[] = []
  const dropped = [...old.graph.nodes.keys(), ...Object.keys(old.record.moves)].filter(
    (node_id) => !graph.nodes.has(node_id),
  )
  for (const node_id of new Set(dropped)) {
    const tasks = liveTasksAt(tx, conv_id, node_id)
    if (tasks === 0) continue
    const before = migrationOf(old.record.moves, node_id)
    const to =
      migrationOf(wanted, node_id) ??
      (graph.nodes.has(before ?? '') ? before : migrationOf(wanted, before ?? ''))
    if (to !== undefined) pending[node_id] = to
    else {
      const { title = '' } = old.graph.nodes.get(node_id) ?? {}
      const text = `node "${node_id}" with ${tasks} tasks`
      without_target.push({ text, conv_id, node_id, node_title: title })
    }
  }
  if (without_target.length > 0) {
    throw fault(
      'tasks_in_node',
      `${place}the definition drops ${without_target.map(({ text }) => text).join(', ')}; say ` +
        'where they go (`moves`, or `--move OLD=NEW`)',
      { places: without_target },
    )
  }
  return pending
}

/** References that this view does not resolve. */
function waitsFor(view: View, { graph, conv_id }: NewVersion, given: Variables): WaitsFor {
  const bytes = view.get(processKey(conv_id)) as Buffer
  const { stage_id } = decodeRecord<ProcessRecord>(bytes)
  const missing = new Set(
    graph.target_conv_ids
      .map((named) => convIdFrom(view, named, stage_id))
      .filter((conv_id) => view.get(processKey(conv_id)) === undefined),
  )
  return {
    handlers: graph.missing_handlers,
    variables: graph.variables
      .filter((name) => given.of(view, name, stage_id) === undefined)
      .map(variableOfRef),
    aliases: [...missing].filter((id) => id.startsWith('@')).map((id) => partsOf(id.slice(1)).name),
    processes: [...missing].filter((id) => !id.startsWith('@')),
  }
}

function waitWarnings({ aliases, processes, variables }: WaitsFor): string[] {
  return [
    ...aliases.map((name) => `alias @${name} is not there: import it or set it`),
    ...processes.map((conv_id) => `process ${conv_id} is not there`),
    ...variables.map((name) => `variable ${/^[0-9]+$/.test(name) ? '' : '@'}${name} has no value`),
  ]
}
