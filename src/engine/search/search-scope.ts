/**
 * The processes and nodes that a filter names. Unknown names are refused with the closest known
 * ones, so that a typo never looks like an empty list.
 */
import { keysOfType, nodeCountKey, processOfKey } from '../../codec/keys.ts'
import { decodeRecord, type ProcessRecord } from '../../codec/records.ts'
import type { TaskRecord } from '../../codec/task-record.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { Caller } from '../../core/model.ts'
import { quoted, truncated } from '../../process/report.ts'
import type { Store, View } from '../../store/store.ts'
import { maySee } from '../access/users.ts'
import { accessDenied, faultOf, noProcess } from '../tasks/task-rules.ts'
import type { Catalog, Process } from '../transactions/catalog.ts'
import { eachEntry } from '../transactions/scans.ts'
import type { CheckedFilter } from './task-filter.ts'

export interface Scope {
  /** One process, or all that existed when the search began. */
  readonly conv_ids: ReadonlySet<string>
  /** Nodes by process; undefined for all. */
  readonly nodes: ReadonlyMap<string, readonly string[]> | undefined
}

export function isInScope(
  { conv_ids, nodes }: Scope,
  { conv_id, node_id }: Pick<TaskRecord, 'conv_id' | 'node_id'>,
): boolean {
  return (
    conv_ids.has(conv_id) && (nodes === undefined || nodes.get(conv_id)?.includes(node_id) === true)
  )
}

/** Rejects with `conv_not_found` or `node_not_found`; for a user also with `access_denied`. */
export async function scopeOf(
  store: Store,
  catalog: Catalog,
  { conv_id, node }: CheckedFilter,
  caller: Caller = {},
): Promise<Scope> {
  if (conv_id === undefined) return scopeOfAll(store, catalog, node, caller)
  const nodes = await store.view((view) => {
    if (!maySee(view, caller, conv_id)) {
      throw faultOf(accessDenied(caller.user, conv_id))
    }
    const process = catalog.find(view, conv_id)
    if (process === undefined) throw unknownProcess(view, conv_id)
    if (node === undefined) return undefined
    const found = nodesNamed(view, process, node)
    if (found.length > 0) return new Map([[conv_id, found]])
    throw unknownNode(node, [process])
  })
  return { conv_ids: new Set([conv_id]), nodes }
}

const slice_processes = 1_000

/** With a node name one process a turn, because its definition may need compiling. */
async function scopeOfAll(
  store: Store,
  catalog: Catalog,
  node: string | undefined,
  caller: Caller,
): Promise<Scope> {
  const conv_ids = new Set<string>()
  const nodes = new Map<string, readonly string[]>()
  const limit = node === undefined ? slice_processes : 1
  const known: Process[] = []
  await eachEntry(store, 'process', limit, (view, { key }) => {
    const conv_id = processOfKey(key)
    if (!maySee(view, caller, conv_id)) return
    conv_ids.add(conv_id)
    const process = node === undefined ? undefined : catalog.find(view, conv_id)
    if (process === undefined || node === undefined) return
    const found = nodesNamed(view, process, node)
    if (found.length > 0) nodes.set(conv_id, found)
    if (known.length < named_max) known.push(process)
  })
  if (node === undefined) return { conv_ids, nodes: undefined }
  if (nodes.size === 0) throw unknownNode(node, known)
  return { conv_ids, nodes }
}

/** By id, also of a dropped node with tasks; else by title. */
export function nodesNamed(view: View, { conv_id, graph }: Process, node: string): string[] {
  if (graph.nodes.has(node)) return [node]
  if (view.get(nodeCountKey(conv_id, node)) !== undefined) return [node]
  return [...graph.nodes.values()].filter(({ title }) => title === node).map(({ id }) => id)
}

const named_max = 20
const scanned_max = 1_000

function unknownProcess(view: View, conv_id: string): Fault {
  const { code, description } = noProcess(conv_id)
  const known = view.scan({ ...keysOfType('process'), limit: scanned_max })
  const names = known.map(({ key, value }) => ({
    id: processOfKey(key),
    title: decodeRecord<ProcessRecord>(value).title,
  }))
  return fault(code, `${description}; ${choices(conv_id, names, 'process')}`)
}

export function unknownNode(node: string, processes: readonly Process[]): Fault {
  const names = processes.flatMap(({ graph }) => [...graph.nodes.values()])
  const where = processes.length === 1 ? `process ${processes[0]?.conv_id}` : 'any process'
  return fault(
    'node_not_found',
    `no node ${quoted(node)} in ${where}; ${choices(node, names, 'node')}`,
  )
}

interface Named {
  readonly id: string
  readonly title: string
}

function choices(wanted: string, names: readonly Named[], what: string): string {
  if (names.length === 0) return `there is no ${what} yet`
  const cut = truncated(wanted)
  const closest = names
    .map((name) => ({
      ...name,
      near: Math.max(nearness(cut, name.id), nearness(cut, name.title)),
    }))
    .sort((a, b) => b.near - a.near)
    .slice(0, named_max)
  const more = names.length - closest.length
  const list = closest.map(({ id, title }) => `${id} "${title}"`).join(', ')
  return `there ${names.length === 1 ? 'is' : 'are'} ${list}${more > 0 ? ` and ${more} more` : ''}`
}

/** 1 if one name contains the other, else the common prefix. */
function nearness(wanted: string, name: string): number {
  const [one, other] = [wanted.toLowerCase(), name.toLowerCase()]
  if (name !== '' && (one.includes(other) || other.includes(one))) return 1
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  return at / Math.max(one.length, other.length)
}
