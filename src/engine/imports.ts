/**
 * Stores what an import brings, in one transaction: new versions of definitions and aliases.
 *
 * An import never changes the status of an existing process. A node with tasks can be dropped only
 * if the import names the node to which they migrate; the process record keeps these migrations
 * until the last of the tasks has migrated.
 */
import { nodeCountKey, processKey, versionKey } from '../codec/keys.ts'
import { decodeCount, encodeRecord, type ProcessRecord } from '../codec/records.ts'
import { fault } from '../core/faults.ts'
import type { Tx, View } from '../store/store.ts'
import { convIdOf } from './aliases.ts'
import type { PutResult, WaitsFor } from './api.ts'
import type { Catalog, Process } from './catalog.ts'
import { badDefinition, type NewVersion } from './definitions.ts'
import type { Variables } from './variables.ts'
import { migrationOf } from './waits.ts'
import { firstWebhook } from './webhooks.ts'

/** `moves` of an import, and the nodes of all its definitions. */
export interface Migrations {
  readonly given: Readonly<Record<string, string>>
  isNode(node_id: string): boolean
}

/** `nonce` is a new one, for a webhook that this opens. */
export function putVersion(
  tx: Tx,
  catalog: Catalog,
  next: NewVersion,
  migrations: Migrations,
  nonce: string,
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
    ...(graph.nodes.size === 0 ? { is_draft: true } : {}),
    moves: old === undefined ? {} : pendingMigrations(tx, old, next, migrations),
    webhook: old?.record.webhook ?? firstWebhook(old?.graph, graph, nonce),
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

/** What a definition names and what is not there in this view. */
export function waitsFor(view: View, { graph }: NewVersion, given: Variables): WaitsFor {
  const isThere = (named: string): boolean =>
    view.get(processKey(convIdOf(view, named))) !== undefined
  const missing = graph.target_conv_ids.filter((named) => !isThere(named))
  return {
    aliases: missing.filter((named) => convIdOf(view, named).startsWith('@')),
    processes: missing
      .map((named) => convIdOf(view, named))
      .filter((conv_id) => !conv_id.startsWith('@')),
    variables: graph.variables.filter((name) => given.of(view, name) === undefined),
  }
}

export function waitWarnings({ aliases, processes, variables }: WaitsFor): string[] {
  return [
    ...aliases.map((name) => `alias ${name} is not there: import it or set it`),
    ...processes.map((conv_id) => `process ${conv_id} is not there`),
    ...variables.map((name) => `variable @${name} has no value`),
  ]
}
