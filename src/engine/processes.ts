/**
 * Administration of processes: import, list, show, share, pause, resume, remove.
 *
 * A definition with a mistake is refused as a whole. An import never changes the status of an
 * existing process. A node with tasks can be dropped only if the import names the node to which
 * they migrate; the process record keeps these migrations until the last of the tasks has migrated.
 */
import { isObject } from '../codec/json.ts'
import {
  countsOf,
  grantKey,
  grantOfKey,
  keysOfType,
  nodeCountKey,
  nodeCountOfKey,
  processKey,
  processOfKey,
  sumsOf,
  versionKey,
  versionsOf,
} from '../codec/keys.ts'
import { isName } from '../codec/op.ts'
import {
  decodeCount,
  decodeRecord,
  encodeRecord,
  grant_bits,
  type ProcessRecord,
} from '../codec/records.ts'
import { fault } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import { readExport } from '../process/export-file.ts'
import type { Store, Tx, View } from '../store/store.ts'
import type {
  ProcessDetails,
  Processes,
  ProcessInfo,
  PutManyOptions,
  PutOptions,
  PutResult,
} from './api.ts'
import type { Catalog, Process } from './catalog.ts'
import {
  aliasWarnings,
  badDefinition,
  compileAll,
  type NewVersion,
  type NumberedDefinition,
  readJson,
} from './definitions.ts'
import { edgesOf } from './graph-edges.ts'
import { noProcess } from './task-rules.ts'
import { requireUser, rightsOf, userId } from './users.ts'
import { migrationOf } from './waits.ts'

export interface ProcessesOptions {
  readonly store: Store
  readonly catalog: Catalog
  readonly limits: Limits
  /** Whether a handler is registered for a logic type. */
  isHandled(type: string): boolean
  /** Called after a process was imported or resumed. */
  onChanged(conv_id: string): void
}

export interface ProcessAdmin extends Processes {
  put(definition: unknown, options?: PutOptions): Promise<PutResult>
  putMany(definitions: unknown, options?: PutManyOptions): Promise<PutResult[]>
}

export function newProcesses(options: ProcessesOptions): ProcessAdmin {
  const { store, catalog, limits, isHandled, onChanged } = options
  const convId = (given: string | number): string => {
    const conv_id = String(given)
    if (isName(conv_id, limits.conv_id_chars_max)) return conv_id
    throw fault('bad_definition', `a conv_id is 1 to ${limits.conv_id_chars_max} characters`)
  }

  /** Stores all definitions in one transaction, or none. */
  async function putAll(
    given: readonly NumberedDefinition[],
    known_mistakes: readonly string[],
    { conv_id, moves = {} }: PutOptions,
  ): Promise<PutResult[]> {
    const compiled = compileAll(given, conv_id, limits, isHandled)
    const { versions } = compiled
    const mistakes = [...compiled.mistakes, ...known_mistakes]
    if (mistakes.length > 0) throw badDefinition(mistakes)
    for (const version of versions) convId(version.conv_id)
    const isNode = (node_id: string): boolean =>
      versions.some(({ graph }) => graph.nodes.has(node_id))
    const puts = await store.update((tx) =>
      versions.map((version) => putVersion(tx, catalog, version, { given: moves, isNode })),
    )
    for (const version of versions) onChanged(version.conv_id)
    return puts.map((put, at) => {
      const { conv_id, warnings } = versions[at] as NewVersion
      return { conv_id, ...put, warnings }
    })
  }

  async function setStatus(given: string | number, status: 'active' | 'paused'): Promise<void> {
    const conv_id = convId(given)
    await store.update((tx) => {
      const { record } = requireProcess(tx, catalog, conv_id)
      if (record.status !== status) tx.put(processKey(conv_id), encodeRecord({ ...record, status }))
    })
    if (status === 'active') onChanged(conv_id)
  }

  return {
    async put(definition, options = {}) {
      const value = readJson(definition, limits)
      if (!isObject(value)) throw badDefinition(['a definition is one JSON object'])
      const [put] = await putAll([{ definition: value, at: 1 }], [], options)
      return put as PutResult
    },
    async putMany(definitions, { map, ...options } = {}) {
      const file = readExport(readJson(definitions, limits), map)
      const puts = await putAll(file.definitions, file.mistakes, options)
      return puts.map((put, at) => ({
        ...put,
        warnings: [...put.warnings, ...aliasWarnings(file.definitions[at]?.unknown_aliases)],
      }))
    },
    list: () => store.view((view) => listProcesses(view)),
    show: (given) =>
      store.view((view) => showProcess(view, requireProcess(view, catalog, convId(given)))),
    async share(given, user, can = ['create', 'modify', 'show']) {
      const conv_id = convId(given)
      const id = userId(user)
      const bits = can.reduce((sum, name) => sum | grant_bits[name], 0)
      await store.update((tx) => {
        requireProcess(tx, catalog, conv_id)
        requireUser(tx, id)
        tx.put(grantKey(id, conv_id), Buffer.from([bits]))
      })
    },
    async unshare(given, user) {
      const conv_id = convId(given)
      const id = userId(user)
      await store.update((tx) => {
        requireProcess(tx, catalog, conv_id)
        requireUser(tx, id)
        tx.del(grantKey(id, conv_id))
      })
    },
    pause: (given) => setStatus(given, 'paused'),
    resume: (given) => setStatus(given, 'active'),
    async remove(given) {
      const conv_id = convId(given)
      await store.update((tx) => {
        requireProcess(tx, catalog, conv_id)
        const tasks = liveTasks(tx, conv_id)
        if (tasks > 0) {
          throw fault(
            'process_has_tasks',
            `process ${conv_id} has ${tasks} live tasks; cancel them`,
          )
        }
        for (const { user } of grantsFor(tx, conv_id)) tx.del(grantKey(user, conv_id))
        for (const range of [versionsOf(conv_id), sumsOf(conv_id)]) {
          for (const { key } of tx.scan({ ...range, limit: Infinity })) tx.del(key)
        }
        tx.del(processKey(conv_id))
      })
    },
  }
}

/** `moves` of an import, and the nodes of all its definitions. */
interface Migrations {
  readonly given: Readonly<Record<string, string>>
  isNode(node_id: string): boolean
}

function putVersion(
  tx: Tx,
  catalog: Catalog,
  next: NewVersion,
  migrations: Migrations,
): Pick<PutResult, 'version' | 'state'> {
  const { conv_id, hash, graph } = next
  const old = catalog.find(tx, conv_id)
  if (old?.record.hash === hash) return { version: old.record.version, state: 'unchanged' }
  const version = (old?.record.version ?? 0) + 1
  const record: ProcessRecord = {
    title: graph.title,
    status: old?.record.status ?? graph.status,
    version,
    hash,
    moves: old === undefined ? {} : pendingMigrations(tx, old, next, migrations),
  }
  tx.put(versionKey(conv_id, version), Buffer.from(next.text))
  tx.put(processKey(conv_id), encodeRecord(record))
  return { version, state: old === undefined ? 'created' : 'updated' }
}

/** The target for each dropped node with tasks. Throws `tasks_in_node` where one is missing. */
function pendingMigrations(
  tx: Tx,
  old: Process,
  { graph, conv_id }: NewVersion,
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
  const without_target: string[] = []
  for (const node_id of new Set([...old.graph.nodes.keys(), ...Object.keys(old.record.moves)])) {
    const tasks = decodeCount(tx.get(nodeCountKey(conv_id, node_id)))
    if (tasks === 0 || graph.nodes.has(node_id)) continue
    const before = migrationOf(old.record.moves, node_id)
    const to =
      migrationOf(wanted, node_id) ??
      (graph.nodes.has(before ?? '') ? before : migrationOf(wanted, before ?? ''))
    if (to === undefined) without_target.push(`node "${node_id}" with ${tasks} tasks`)
    else pending[node_id] = to
  }
  if (without_target.length > 0) {
    throw fault(
      'tasks_in_node',
      `the definition drops ${without_target.join(', ')}; say where they go`,
    )
  }
  return pending
}

/** Throws `conv_not_found`. */
export function requireProcess(view: View, catalog: Catalog, conv_id: string): Process {
  const process = catalog.find(view, conv_id)
  if (process !== undefined) return process
  const { code, description } = noProcess(conv_id)
  throw fault(code, description)
}

function liveTasks(view: View, conv_id: string): number {
  let tasks = 0
  for (const { value } of view.scan({ ...countsOf(conv_id), limit: Infinity })) {
    tasks += decodeCount(value)
  }
  return tasks
}

function listProcesses(view: View): ProcessInfo[] {
  return view.scan({ ...keysOfType('process'), limit: Infinity }).map(({ key, value }) => {
    const record = decodeRecord<ProcessRecord>(value)
    return infoOf(view, processOfKey(key), record)
  })
}

function infoOf(view: View, conv_id: string, record: ProcessRecord): ProcessInfo {
  const { title, status, version, hash } = record
  return { conv_id, title, status, version, hash, tasks: liveTasks(view, conv_id) }
}

function showProcess(view: View, { conv_id, record, graph }: Process): ProcessDetails {
  const definition_text = view.get(versionKey(conv_id, record.version))?.toString('utf8') ?? ''
  const counts = new Map<string, number>()
  for (const { key, value } of view.scan({ ...countsOf(conv_id), limit: Infinity })) {
    counts.set(nodeCountOfKey(key).node, decodeCount(value))
  }
  const edges = edgesOf(definition_text)
  return {
    ...infoOf(view, conv_id, record),
    definition_text,
    nodes: [...graph.nodes.values()].map(({ id, title, kind }) => ({
      id,
      title,
      kind,
      tasks: counts.get(id) ?? 0,
      to: edges.get(id) ?? [],
    })),
    shared_with: grantsFor(view, conv_id).map(({ user, bits }) => ({ user, can: rightsOf(bits) })),
  }
}

/** Grants are keyed by user, so this reads all of them; only administration needs it. */
function grantsFor(view: View, conv_id: string): { user: string; bits: number }[] {
  return view
    .scan({ ...keysOfType('grant'), limit: Infinity })
    .map(({ key, value }) => ({ ...grantOfKey(key), bits: value[0] ?? 0 }))
    .filter((grant) => grant.conv === conv_id)
}
