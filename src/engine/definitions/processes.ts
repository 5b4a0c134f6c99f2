/** Administration of processes: list, show, share, webhooks, pause, resume, remove, and aliases. */
import { isObject, parseStored } from '../../codec/json.ts'
import {
  aliasKey,
  draftNodesOf,
  draftsOf,
  grantKey,
  grantOfKey,
  type Key,
  keysOfType,
  processKey,
  processOfKey,
  sumsOf,
  tasksAtNodes,
  versionKey,
  versionOfKey,
  versionsOf,
} from '../../codec/keys.ts'
import { isName } from '../../codec/op.ts'
import {
  decodeRecord,
  encodeRecord,
  grant_bits,
  liveOf,
  noTasks,
  type ProcessRecord,
} from '../../codec/records.ts'
import { inStage } from '../../core/alias.ts'
import { defined } from '../../core/defined.ts'
import { fault } from '../../core/faults.ts'
import type { JsonValue } from '../../core/model.ts'
import type { Graph } from '../../process/graph.ts'
import type { Tx, View } from '../../store/store.ts'
import type { Addresses } from '../access/addresses.ts'
import { requireUser, rightsOf, userId } from '../access/users.ts'
import type { ProcessDetails, Processes, ProcessInfo } from '../api/process-api.ts'
import type { Handlers } from '../jobs/handlers.ts'
import { faultOf, noProcess } from '../tasks/task-rules.ts'
import { nodeWaits } from '../tasks/waits.ts'
import { aliasName, type Catalog, compileStored, type Process } from '../transactions/catalog.ts'
import { countsByNode, liveTasksOf } from '../transactions/node-counters.ts'
import type { Parts } from '../transactions/parts.ts'
import { allIn, removeAll } from '../transactions/scans.ts'
import { convIdOf, listAliases, putAlias } from '../transactions/stages.ts'
import { hashOf } from './definitions.ts'
import { changedWebhook, newNonce, webhookInfo } from './webhooks.ts'

/** `onChanged` follows an import, a resume, or a change of an alias. */
export interface ProcessParts extends Parts {
  readonly addresses: Addresses
  readonly handlers: Handlers
  onChanged(conv_id: string): void
}

export function newProcesses(
  parts: ProcessParts,
): Omit<Processes, 'put' | 'putMany' | 'importFiles'> {
  const { store, catalog, limits, chance, addresses, handlers, onChanged, emit } = parts
  const convId = (given: string | number): string => {
    const conv_id = String(given)
    if (isName(conv_id, limits.conv_id_chars_max)) return conv_id
    throw fault('bad_definition', `a conv_id is 1 to ${limits.conv_id_chars_max} characters`)
  }

  async function setStatus(given: string | number, status: 'active' | 'paused'): Promise<void> {
    const conv_id = convId(given)
    const is_changed = await store.update((tx) =>
      putStatus(tx, requireProcess(tx, catalog, conv_id), status),
    )
    if (is_changed) emit(status === 'paused' ? 'process_paused' : 'process_resumed', { conv_id })
    if (status === 'active') onChanged(conv_id)
  }

  async function changeGrant(
    given: string | number,
    user: string | number,
    change: (tx: Tx, key: Key) => void,
  ): Promise<void> {
    const conv_id = convId(given)
    const id = userId(user)
    await store.update((tx) => {
      requireProcess(tx, catalog, conv_id)
      requireUser(tx, id)
      change(tx, grantKey(id, conv_id))
    })
  }

  return {
    list: () => store.view(listProcesses),
    show: (given, version) =>
      store.view((view) => {
        const process = requireProcess(view, catalog, convId(given))
        return showProcess(view, atVersion(view, process, version), handlers)
      }),
    versions: (given) =>
      store.view((view) => {
        const { conv_id } = requireProcess(view, catalog, convId(given))
        const kept = view.scan({ ...versionsOf(conv_id), limit: versions_max, reverse: true })
        return kept.map(({ key }) => versionOfKey(key).n)
      }),
    async share(given, user, can = ['create', 'modify', 'show']) {
      const bits = can.reduce((sum, name) => sum | grant_bits[name], 0)
      await changeGrant(given, user, (tx, key) => tx.put(key, Buffer.from([bits])))
    },
    unshare: (given, user) => changeGrant(given, user, (tx, key) => tx.del(key)),
    async webhook(given, change = {}) {
      const conv_id = convId(given)
      const nonce = newNonce(chance)
      await addresses.prepare()
      const process = await store.update((tx) => {
        const found = requireProcess(tx, catalog, conv_id)
        const webhook = changedWebhook(found.record.webhook, found.graph, change, nonce)
        if (change.user !== undefined) requireUser(tx, userId(change.user))
        const record = { ...found.record, webhook }
        if (webhook !== found.record.webhook) tx.put(processKey(conv_id), encodeRecord(record))
        return { ...found, record }
      })
      addresses.onProcessChanged(conv_id)
      return webhookInfo(addresses, process)
    },
    pause: (given) => setStatus(given, 'paused'),
    resume: (given) => setStatus(given, 'active'),
    async remove(given) {
      const conv_id = convId(given)
      await store.update((tx) => {
        requireProcess(tx, catalog, conv_id)
        removeProcess(tx, addresses, conv_id)
      })
      addresses.locks.onRemoved(conv_id)
      addresses.onProcessChanged(conv_id)
    },
    aliases: () => store.view(listAliases),
    async setAlias(given, to, { stage_id } = {}) {
      const alias = { name: aliasName(given), conv_id: convId(to), ...defined({ stage_id }) }
      const result = await store.update((tx) => {
        requireProcess(tx, catalog, alias.conv_id)
        return putAlias(tx, alias)
      })
      onChanged(alias.conv_id)
      return result
    },
    async removeAlias(given, { stage_id } = {}) {
      const name = inStage(aliasName(given), stage_id)
      const conv_id = await store.update((tx) => {
        const named = convIdOf(tx, `@${name}`)
        tx.del(aliasKey(name))
        return named
      })
      onChanged(conv_id)
    },
  }
}

/** Returns whether this changes it. */
export function putStatus(
  tx: Tx,
  { conv_id, record }: Process,
  status: ProcessRecord['status'],
): boolean {
  if (record.status === status) return false
  tx.put(processKey(conv_id), encodeRecord({ ...record, status }))
  return true
}

/** Throws `process_has_tasks`. After the commit, call `onRemoved` and `onProcessChanged`. */
export function removeProcess(tx: Tx, addresses: Addresses, conv_id: string): void {
  // Counters do not have what this transaction did; the keys do.
  if (tx.scan({ ...tasksAtNodes(conv_id), limit: 1 }).length > 0) {
    const tasks = Math.max(1, liveTasksOf(tx, conv_id))
    throw fault('process_has_tasks', `process ${conv_id} has ${tasks} live tasks; cancel them`)
  }
  for (const { user } of grantsFor(tx, conv_id)) tx.del(grantKey(user, conv_id))
  removeAll(tx, versionsOf(conv_id))
  removeAll(tx, sumsOf(conv_id))
  removeAll(tx, draftsOf(conv_id))
  removeAll(tx, draftNodesOf(conv_id))
  addresses.locks.remove(tx, conv_id)
  tx.del(processKey(conv_id))
}

export function requireProcess(view: View, catalog: Catalog, conv_id: string): Process {
  const process = catalog.find(view, conv_id)
  if (process !== undefined) return process
  throw faultOf(noProcess(conv_id))
}

const versions_max = 1_000

/** Throws `not_possible` for an unknown version. */
function atVersion(view: View, process: Process, version: number | undefined): Process {
  const { conv_id, record } = process
  if (version === undefined || version === record.version) return process
  const is_kept = Number.isSafeInteger(version) && version > 0 && version < record.version
  if (!is_kept) {
    throw fault('not_possible', `process ${conv_id} has the versions 1 to ${record.version}`)
  }
  const { graph, definition } = compileStored(view, conv_id, version)
  const { title } = graph
  return { conv_id, record: { ...record, version, title, hash: hashOf(definition) }, graph }
}

function listProcesses(view: View): ProcessInfo[] {
  return allIn(view, keysOfType('process')).map(({ key, value }) => {
    const record = decodeRecord<ProcessRecord>(value)
    return infoOf(view, processOfKey(key), record)
  })
}

function infoOf(view: View, conv_id: string, record: ProcessRecord): ProcessInfo {
  const { title, version, hash } = record
  const status = record.is_draft === true ? 'draft' : record.status
  return { conv_id, title, status, version, hash, tasks: liveTasksOf(view, conv_id) }
}

/** Cached: a definition may be long and is shown often. */
const edges_known = new WeakMap<Graph, ReturnType<typeof edgesOf>>()

function showProcess(
  view: View,
  { conv_id, record, graph }: Process,
  handlers: Pick<Handlers, 'nameIn'>,
): ProcessDetails {
  const definition_text = view.get(versionKey(conv_id, record.version))?.toString('utf8') ?? ''
  const edges = edges_known.get(graph) ?? edgesOf(definition_text)
  edges_known.set(graph, edges)
  const counts = countsByNode(view, conv_id)
  return {
    ...infoOf(view, conv_id, record),
    definition_text,
    nodes: [...graph.nodes.values()].map((node) => {
      const { id, title, kind } = node
      const handler = handlers.nameIn(view, conv_id, node)
      const by_status = counts.get(id) ?? noTasks()
      return {
        ...{ id, title, kind, tasks: liveOf(by_status), by_status, to: edges.get(id) ?? [] },
        waits_for: nodeWaits(node),
        ...(node.is_stub ? { is_stub: true } : {}),
        ...defined({ handler }),
      }
    }),
    shared_with: grantsFor(view, conv_id).map(({ user, bits }) => ({ user, can: rightsOf(bits) })),
  }
}

/** Grants are keyed by user, so this reads all; only administration needs it. */
export function grantsFor(view: View, conv_id: string): { user: string; bits: number }[] {
  return allIn(view, keysOfType('grant'))
    .map(({ key, value }) => ({ ...grantOfKey(key), bits: value[0] ?? 0 }))
    .filter((grant) => grant.conv === conv_id)
}

const target_members = ['to_node_id', 'err_node_id', 'esc_node_id']

/** Node id → target node ids, each once, in definition order. */
export function edgesOf(definition_text: string): Map<string, string[]> {
  const edges = new Map<string, string[]>()
  const scheme = memberOf(parseStored(definition_text), 'scheme')
  for (const node of listOf(memberOf(scheme, 'nodes'))) {
    const condition = memberOf(node, 'condition')
    const parts = [
      ...listOf(memberOf(condition, 'logics')),
      ...listOf(memberOf(condition, 'semaphors')),
    ]
    const targets = parts.flatMap((part) => target_members.map((name) => memberOf(part, name)))
    const named = targets.filter((one): one is string => typeof one === 'string' && one !== '')
    edges.set(String(memberOf(node, 'id')), [...new Set(named)])
  }
  return edges
}

function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : []
}
