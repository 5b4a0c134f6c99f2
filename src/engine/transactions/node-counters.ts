/**
 * Counts the tasks in a node by status (key type node_count) over one transaction: a counter is
 * read when first needed and written once at the end; running sums (key type sum) are written at
 * once. Counter objects outlive the transaction, but each one reads the numbers again.
 *
 * A process takes new tasks while it has fewer live ones than `tasks_max`. They are added up when
 * room may be short, at most once in a transaction. From then on arrivals use up the room;
 * departures make room only in that transaction, because it may be undone.
 */
import { countsOf, type Key, nodeCountKey, nodeCountOfKey, sumKey } from '../../codec/keys.ts'
import {
  decodeCounts,
  decodeSum,
  encodeCounts,
  encodeSum,
  liveOf,
  noTasks,
  type StatusCounts,
} from '../../codec/records.ts'
import { is_live, statuses, type TaskRecord } from '../../codec/task-record.ts'
import type { Status } from '../../core/model.ts'
import type { Tx, View } from '../../store/store.ts'
import type { Process } from './catalog.ts'
import type { FlowNotes } from './flow-notes.ts'
import { allIn } from './scans.ts'

export interface NodeCounters {
  begin(tx: Tx): void
  add(conv_id: string, node_id: string, status: Status, by: 1 | -1): void
  of(conv_id: string, node_id: string): number
  hasRoom(conv_id: string): boolean
  /** Nodes with count semaphors whose live tasks changed since the last call. */
  takeChanges(): readonly CountChange[]
  end(flow: FlowNotes | undefined): void
}

export interface CountChange {
  readonly conv_id: string
  readonly node_id: string
  readonly before: number
  readonly now: number
}

interface Counter {
  readonly key: Key
  readonly conv_id: string
  readonly node_id: string
  readonly stored: StatusCounts
  readonly now: StatusCounts
  reported: number
  transaction: number
  /** In the flow counters; -1 until needed. */
  place: number
}

interface ProcessCounters {
  readonly nodes: Map<string, Counter>
  /** At least this many more live tasks fit. */
  room: number
  added_up: number
}

const no_changes: readonly CountChange[] = []
const counters_max = 1_000

/** The listeners get the key of each record that a transaction has changed, before its commit. */
export function newNodeCounters(
  no_tx: Tx,
  processOf: (conv_id: string) => Process | undefined,
  listeners: ReadonlySet<(key: Key) => void>,
  tasks_max: number,
): NodeCounters {
  let tx = no_tx
  let transaction = 0
  const by_process = new Map<string, ProcessCounters>()
  let counters = 0
  const in_use: Counter[] = []
  const with_semaphors: Counter[] = []

  function processCounters(conv_id: string): ProcessCounters {
    let process = by_process.get(conv_id)
    if (process === undefined) {
      process = { nodes: new Map(), room: 0, added_up: 0 }
      by_process.set(conv_id, process)
    }
    return process
  }

  function addUp(conv_id: string): number {
    let tasks = liveTasksOf(tx, conv_id)
    for (const counter of in_use) {
      if (counter.conv_id === conv_id) tasks += liveOf(counter.now) - liveOf(counter.stored)
    }
    return tasks
  }

  function counterOf({ nodes }: ProcessCounters, conv_id: string, node_id: string): Counter {
    let counter = nodes.get(node_id)
    if (counter === undefined) {
      const key = nodeCountKey(conv_id, node_id)
      const numbers = { stored: noTasks(), now: noTasks(), reported: 0, transaction: 0, place: -1 }
      counter = { key, conv_id, node_id, ...numbers }
      nodes.set(node_id, counter)
      counters++
    }
    return counter
  }

  function read(counter: Counter): void {
    const { key, conv_id, node_id, stored, now } = counter
    decodeCounts(tx.get(key), stored)
    for (const status of statuses) now[status] = stored[status]
    counter.reported = liveOf(now)
    counter.transaction = transaction
    in_use.push(counter)
    const semaphors = processOf(conv_id)?.graph.nodes.get(node_id)?.count_semaphors
    if (semaphors !== undefined && semaphors.length > 0) with_semaphors.push(counter)
  }

  return {
    begin(next_tx) {
      tx = next_tx
      transaction++
      in_use.length = 0
      with_semaphors.length = 0
      if (counters <= counters_max) return
      for (const { nodes } of by_process.values()) nodes.clear()
      counters = 0
    },
    add(conv_id, node_id, status, by) {
      const process = processCounters(conv_id)
      const counter = counterOf(process, conv_id, node_id)
      if (counter.transaction !== transaction) read(counter)
      counter.now[status] += by
      if (is_live[status] && (by > 0 || process.added_up === transaction)) process.room -= by
    },
    hasRoom(conv_id) {
      const process = processCounters(conv_id)
      if (process.room > 0) return true
      if (process.added_up !== transaction) {
        process.added_up = transaction
        process.room = tasks_max - addUp(conv_id)
      }
      return process.room > 0
    },
    of(conv_id, node_id) {
      const counter = by_process.get(conv_id)?.nodes.get(node_id)
      if (counter?.transaction === transaction) return liveOf(counter.now)
      return liveTasksAt(tx, conv_id, node_id)
    },
    takeChanges() {
      if (with_semaphors.length === 0) return no_changes
      const changes: CountChange[] = []
      for (const counter of with_semaphors) {
        const { conv_id, node_id, reported } = counter
        const now = liveOf(counter.now)
        if (now === reported) continue
        counter.reported = now
        changes.push({ conv_id, node_id, before: reported, now })
      }
      return changes
    },
    end(flow) {
      for (const counter of in_use) {
        const { key, stored, now } = counter
        for (const listener of listeners) listener(key)
        if (isSame(stored, now)) continue
        if (flow !== undefined) {
          if (counter.place === -1) counter.place = flow.placeOf(counter.conv_id)
          flow.onNode(counter.place, stored, now)
        }
        const value = encodeCounts(now)
        if (value.length === 0) tx.del(key)
        else tx.put(key, value)
      }
    },
  }
}

function isSame(one: StatusCounts, other: StatusCounts): boolean {
  for (const status of statuses) if (one[status] !== other[status]) return false
  return true
}

export function liveTasksAt(view: View, conv_id: string, node_id: string): number {
  return liveOf(decodeCounts(view.get(nodeCountKey(conv_id, node_id))))
}

/** By node and status; without empty nodes. */
export function countsByNode(view: View, conv_id: string): Map<string, StatusCounts> {
  const nodes = new Map<string, StatusCounts>()
  for (const { key, value } of allIn(view, countsOf(conv_id))) {
    nodes.set(nodeCountOfKey(key).node, decodeCounts(value))
  }
  return nodes
}

export function liveTasksOf(view: View, conv_id: string): number {
  let tasks = 0
  for (const counts of countsByNode(view, conv_id).values()) tasks += liveOf(counts)
  return tasks
}

export function addSums(
  tx: Tx,
  { conv_id, node_id }: TaskRecord,
  terms: readonly { readonly name: string; readonly value: number }[],
): void {
  for (const { name, value } of terms) {
    const key = sumKey(conv_id, node_id, name)
    const sum = decodeSum(tx.get(key)) + value
    // An infinite sum is not a JSON number.
    const bounded = Math.max(-Number.MAX_VALUE, Math.min(sum, Number.MAX_VALUE))
    tx.put(key, encodeSum(bounded))
  }
}
