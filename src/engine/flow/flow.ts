/** What a watcher reads: the flow counters and, with bounded reads, what only the file has. */
import { idHex } from '../../codec/ids.ts'
import {
  countsOf,
  dueUpTo,
  failedOf,
  keysOfType,
  processKey,
  processOfKey,
  taskOfKey,
  timeOfKey,
} from '../../codec/keys.ts'
import {
  decodeCounts,
  decodeRecord,
  noTasks,
  type ProcessRecord,
  type StatusCounts,
} from '../../codec/records.ts'
import { statuses } from '../../codec/task-record.ts'
import { nextTurn } from '../../core/clock.ts'
import type { Store, View } from '../../store/store.ts'
import { requireProcess } from '../definitions/processes.ts'
import { sourceOf } from '../search/search-order.ts'
import { readableTask } from '../tasks/task-store.ts'
import { countsByNode } from '../transactions/node-counters.ts'
import type { Parts } from '../transactions/parts.ts'
import { allIn } from '../transactions/scans.ts'
import type { Transaction } from '../transactions/transaction.ts'
import type { FlowCounters, FlowEdge, FlowNumbers } from './flow-counters.ts'

export interface ProcessHead {
  readonly conv_id: string
  readonly title: string
  readonly status: 'active' | 'paused' | 'draft'
  readonly version: number
}

export interface Flow {
  begin: FlowCounters['begin']
  since_ms: FlowCounters['since_ms']
  mark: FlowCounters['mark']
  failed_mark: FlowCounters['failed_mark']
  /** All processes. An unchanged record gives the same object as the last call. */
  heads(): Promise<readonly ProcessHead[]>
  /** Needs `begin`. */
  numbers(conv_ids: readonly string[]): Promise<readonly FlowNumbers[]>
  nodes(conv_id: string): Promise<{ head: ProcessHead; counts: Map<string, StatusCounts> }>
  edges(conv_id: string): readonly FlowEdge[]
  /** node_id → tasks with a timer before this time, among the first `tasks_max` timers. */
  dueSoon(conv_id: string, until_ms: number, tasks_max: number): Promise<Map<string, number>>
  /** The newest failed tasks first; `known` are those of the last call. */
  failed(
    conv_ids: readonly string[],
    known: readonly FailedTask[],
    tasks_max: number,
  ): Promise<readonly FailedTask[]>
  /** Empty for a dropped node. */
  titles(conv_id: string, node_ids: ReadonlySet<string>): Promise<ReadonlyMap<string, string>>
}

interface Known {
  readonly bytes: Buffer
  readonly head: ProcessHead
}

const slice_nodes = 2_000

export function newFlow({ store, catalog, transactions }: Parts, counters: FlowCounters): Flow {
  let known = new Map<string, Known>()

  /** Reads unknown tasks by status, slice by slice. */
  async function readUnread(conv_ids: readonly string[]): Promise<void> {
    let left = counters.unread(conv_ids)
    while (left.length > 0) {
      const unread = left
      const read = await transactions.run((tx) => readStored(tx, unread))
      if (read === 0) break
      left = unread.slice(read)
    }
  }

  return {
    begin: counters.begin,
    since_ms: counters.since_ms,
    mark: counters.mark,
    failed_mark: counters.failed_mark,
    heads: () =>
      store.view((view) => {
        const entries = allIn(view, keysOfType('process'))
        const now = new Map<string, Known>()
        for (const { key, value } of entries) {
          const conv_id = processOfKey(key)
          const last = known.get(conv_id)
          const is_same = last?.bytes.equals(value) === true
          const read = (): Known => ({ bytes: Buffer.from(value), head: headOf(conv_id, value) })
          now.set(conv_id, is_same ? last : read())
        }
        known = now
        return [...now.values()].map(({ head }) => head)
      }),
    async numbers(conv_ids) {
      await readUnread(conv_ids)
      return conv_ids.map(counters.read)
    },
    nodes: (conv_id) =>
      store.view((view) => {
        requireProcess(view, catalog, conv_id)
        const head = headOf(conv_id, view.get(processKey(conv_id)) as Buffer)
        return { head, counts: countsByNode(view, conv_id) }
      }),
    edges: counters.edges,
    dueSoon: (conv_id, until_ms, tasks_max) =>
      store.view((view) => dueByNode(view, conv_id, until_ms, tasks_max)),
    failed: (conv_ids, known, tasks_max) => newestFailed(store, conv_ids, known, tasks_max),
    async titles(conv_id, node_ids) {
      await nextTurn()
      const nodes = await store.view((view) => catalog.find(view, conv_id)?.graph.nodes)
      return new Map([...node_ids].map((node_id) => [node_id, nodes?.get(node_id)?.title ?? '']))
    },
  }
}

function headOf(conv_id: string, bytes: Buffer): ProcessHead {
  const { title, is_draft, status, version } = decodeRecord<ProcessRecord>(bytes)
  return { conv_id, title, status: is_draft === true ? 'draft' : status, version }
}

/** Returns how many processes it has read. Counters of an open transaction follow later. */
function readStored(tx: Transaction, conv_ids: readonly string[]): number {
  const { flow } = tx
  if (flow === undefined) return 0
  let nodes = 0
  let read = 0
  for (const conv_id of conv_ids) {
    if (nodes > slice_nodes) break
    const sum = noTasks()
    for (const { value } of allIn(tx.view, countsOf(conv_id))) {
      const counts = decodeCounts(value)
      for (const status of statuses) sum[status] += counts[status]
      nodes++
    }
    flow.onStored(flow.placeOf(conv_id), sum)
    read++
  }
  return read
}

function dueByNode(
  view: View,
  conv_id: string,
  until_ms: number,
  tasks_max: number,
): Map<string, number> {
  const by_node = new Map<string, number>()
  for (const { key } of view.scan({ ...dueUpTo(conv_id, until_ms), limit: tasks_max })) {
    const draft = readableTask(view, taskOfKey(key))
    if (draft === undefined || draft.task.wait === 'ready') continue
    const { node_id } = draft.task
    by_node.set(node_id, (by_node.get(node_id) ?? 0) + 1)
  }
  return by_node
}

export interface FailedTask {
  readonly conv_id: string
  readonly obj_id: string
  readonly node_id: string
  readonly tag: string
  readonly change_ms: number
}

const slice_tasks = 100

/** Newest first; `known` are those of the last call. */
export async function newestFailed(
  store: Pick<Store, 'view'>,
  conv_ids: readonly string[],
  known: readonly FailedTask[],
  tasks_max: number,
): Promise<FailedTask[]> {
  const runs = conv_ids.map((conv_id) => {
    const all = failedOf(conv_id)
    return { ...all, prefix: all.from, is_by_ref: false }
  })
  const source = sourceOf(() => runs, true)
  const { entries } = await store.view((view) => source.next(view, undefined, tasks_max))
  const before = new Map(known.map((task) => [task.obj_id, task]))
  const found: FailedTask[] = []
  const newest = entries.slice(0, tasks_max)
  for (let at = 0; at < newest.length; at += slice_tasks) {
    const slice = newest.slice(at, at + slice_tasks)
    const tasks = await store.view((view) =>
      slice.map(({ prefix, place, id }) => {
        const obj_id = idHex(id)
        const last = before.get(obj_id)
        const is_same = last?.change_ms === timeOfKey(prefix + place).ms
        return is_same ? last : failedTask(view, obj_id)
      }),
    )
    found.push(...tasks.filter((task) => task !== undefined))
    await nextTurn()
  }
  return found
}

/** Undefined if retried or canceled meanwhile. */
function failedTask(view: View, obj_id: string): FailedTask | undefined {
  const draft = readableTask(view, obj_id)
  if (draft?.task.status !== 'failed') return undefined
  const { conv_id, node_id, details, change_ms } = draft.task
  return { conv_id, obj_id, node_id, tag: details?.tag ?? '', change_ms }
}
