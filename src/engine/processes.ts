/**
 * Administration of processes: import, list, show, share, pause, resume, remove.
 *
 * A definition with a mistake is refused as a whole. What an import stores is told in imports.ts.
 */
import { isObject } from '../codec/json.ts'
import {
  aliasKey,
  countsOf,
  grantKey,
  grantOfKey,
  keysOfType,
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
import type { Chance } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import { type ExportFile, readExport } from '../process/export-file.ts'
import { callback_url } from '../process/templates/path.ts'
import type { Store, View } from '../store/store.ts'
import type { Addresses } from './addresses.ts'
import { aliasName, listAliases, putAlias } from './aliases.ts'
import type {
  ProcessDetails,
  Processes,
  ProcessInfo,
  PutManyOptions,
  PutOptions,
  PutResult,
} from './api.ts'
import type { Catalog, Process } from './catalog.ts'
import { badDefinition, compileAll, readJson } from './definitions.ts'
import { edgesOf } from './graph-edges.ts'
import { putVersion, waitsFor, waitWarnings } from './imports.ts'
import { noProcess } from './task-rules.ts'
import { requireUser, rightsOf, userId } from './users.ts'
import type { Variables } from './variables.ts'
import { changedWebhook, newNonce, webhookInfo } from './webhooks.ts'

export interface ProcessesOptions {
  readonly store: Store
  readonly catalog: Catalog
  readonly limits: Limits
  readonly variables: Variables
  readonly chance: Chance
  readonly addresses: Addresses
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
  const { store, catalog, limits, variables, chance, addresses, isHandled, onChanged } = options
  const convId = (given: string | number): string => {
    const conv_id = String(given)
    if (isName(conv_id, limits.conv_id_chars_max)) return conv_id
    throw fault('bad_definition', `a conv_id is 1 to ${limits.conv_id_chars_max} characters`)
  }

  /** Stores all definitions in one transaction, or none. */
  async function putAll(
    { definitions, aliases, mistakes: known_mistakes }: ExportFile,
    { conv_id, moves = {} }: PutOptions,
  ): Promise<PutResult[]> {
    const compiled = compileAll(definitions, conv_id, limits, isHandled)
    const { versions } = compiled
    const mistakes = [...compiled.mistakes, ...known_mistakes]
    if (mistakes.length > 0) throw badDefinition(mistakes)
    for (const version of versions) convId(version.conv_id)
    const isNode = (node_id: string): boolean =>
      versions.some(({ graph }) => graph.nodes.has(node_id))
    if (versions.some(({ text }) => text.includes(callback_url))) await addresses.prepare()
    const nonces = versions.map(() => newNonce(chance))
    const puts = await store.update((tx) => {
      const stored = versions.map((version, at) => ({
        version,
        put: putVersion(tx, catalog, version, { given: moves, isNode }, nonces[at] as string),
      }))
      for (const alias of aliases) putAlias(tx, alias)
      return stored.map(({ version, put }): PutResult => {
        const waits_for = waitsFor(tx, version, variables)
        const warnings = [...version.warnings, ...waitWarnings(waits_for)]
        return { conv_id: version.conv_id, ...put, warnings, waits_for }
      })
    })
    for (const version of versions) onChanged(version.conv_id)
    return puts
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
      const file = { definitions: [{ definition: value, at: 1 }], aliases: [], mistakes: [] }
      const [put] = await putAll(file, options)
      return put as PutResult
    },
    async putMany(definitions, { map, ...options } = {}) {
      return putAll(readExport(readJson(definitions, limits), map), options)
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
    async webhook(given, change = {}) {
      const conv_id = convId(given)
      const nonce = newNonce(chance)
      await addresses.prepare()
      const process = await store.update((tx) => {
        const found = requireProcess(tx, catalog, conv_id)
        const webhook = changedWebhook(found.record.webhook, change, nonce)
        if (change.user !== undefined) requireUser(tx, userId(change.user))
        const record = { ...found.record, webhook }
        if (webhook !== found.record.webhook) tx.put(processKey(conv_id), encodeRecord(record))
        return { ...found, record }
      })
      return webhookInfo(addresses, process)
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
    aliases: () => store.view(listAliases),
    async setAlias(given, to) {
      const alias = { name: aliasName(given), conv_id: convId(to) }
      return store.update((tx) => {
        requireProcess(tx, catalog, alias.conv_id)
        return putAlias(tx, alias)
      })
    },
    async removeAlias(given) {
      const name = aliasName(given)
      await store.update((tx) => tx.del(aliasKey(name)))
    },
  }
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
  const { title, version, hash } = record
  const status = record.is_draft === true ? 'draft' : record.status
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
