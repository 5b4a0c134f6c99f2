/**
 * Counts what happens to the tasks of each process while somebody watches: moves from node to node,
 * ends, and the tasks by status. A transaction notes what it does (`FlowNotes`), and its notes are
 * counted after its commit, in the order of the commits; so a transaction may run again.
 *
 * The tasks by status begin with what the counters of the nodes say in some transaction and are
 * kept from there by what later ones note, so that they are never read again. Memory is bounded: a
 * process has a few numbers, and of all ways between nodes the newest `ways_max` are counted.
 */

import type { StatusCounts } from '../../codec/records.ts'
import { statuses, type TaskRecord } from '../../codec/task-record.ts'
import type { Status } from '../../core/model.ts'
import {
  countAt,
  countsUpTo,
  newRollingCount,
  type RollingCount,
} from '../../core/rolling-count.ts'

/** What an open transaction notes. One that throws notes nothing. */
export interface FlowNotes {
  begin(): void
  /** The task has entered its present node. */
  onMove(task: TaskRecord): void
  onCount(conv_id: string, status: Status, by: 1 | -1): void
  onSave(task: TaskRecord): void
  /** What the counters of the nodes say before this transaction. */
  onStored(conv_id: string, counts: StatusCounts): void
  /** Undefined where no task was saved, moved or counted. */
  end(): FlowEffects | undefined
}

/** What a transaction has noted, for `onCommitted`. */
export interface FlowEffects {
  readonly moves: readonly RollingCount[]
  readonly ends: readonly RollingCount[]
  readonly more: readonly StatusCount[]
  readonly fewer: readonly StatusCount[]
  readonly stored: readonly Stored[]
  /** Whether a task has failed, or one that had is no longer. */
  readonly has_failures: boolean
}

interface StatusCount {
  count: number
}

interface Stored {
  readonly conv_id: string
  readonly counts: StatusCounts
}

interface ProcessFlow {
  /** Whether `held` are those of the file. */
  is_read: boolean
  readonly held: Readonly<Record<Status, StatusCount>>
  readonly done: RollingCount
  /** What was read last, and the number of ends then. */
  told: FlowNumbers
  told_ends: number
  /** By the node that tasks leave and the one that they enter. */
  readonly ways: Map<string, Map<string, RollingCount>>
}

export interface FlowCounters {
  readonly notes: FlowNotes
  isOn(): boolean
  /** Begins to count, or goes on; the returned function ends it once. */
  begin(): () => void
  onCommitted(effects: FlowEffects): void
  /** Since when ends are counted. */
  since_ms(): number
  /** Another number after every commit that has changed a task, while somebody watches. */
  mark(): number
  /** Another number after every commit that has changed a failed task. */
  failed_mark(): number
  /** The processes whose tasks by status are not known yet. */
  unread(conv_ids: Iterable<string>): string[]
  /**
   * The tasks of a process by status, and its ends minute by minute; the object of the last call
   * where they are the same.
   */
  read(conv_id: string): FlowNumbers
  /** The ways that tasks of a process took in the last ten seconds. */
  ways(conv_id: string): FlowWay[]
  /** Forgets all other processes. */
  keep(conv_ids: ReadonlySet<string>): void
}

export interface FlowNumbers {
  /** Without zeros. */
  readonly by_status: Readonly<Partial<StatusCounts>>
  /** The last 30 minutes, the oldest first; the last of them still runs. */
  readonly done: readonly number[]
}

export interface FlowWay {
  readonly from_node_id: string
  readonly to_node_id: string
  readonly per_s: number
}

export const flow_minutes = 30
const no_ends: readonly number[] = new Array<number>(flow_minutes).fill(0)
const minute_ms = 60_000
const second_ms = 1_000
const rate_s = 10
/** The seconds of a rate and the one that still runs. */
const way_slots = rate_s + 1
const ways_max = 50_000

export function newFlowCounters(now_ms: () => number): FlowCounters {
  const flows = new Map<string, ProcessFlow>()
  const uncounted = newRollingCount(way_slots)
  let ways_count = 0
  let swept_s = 0
  let watching = 0
  let since_ms = 0
  let mark = 0
  let failed_mark = 0
  let last_conv_id = ''
  let last_flow = newProcessFlow()

  function flowOf(conv_id: string): ProcessFlow {
    if (conv_id === last_conv_id) return last_flow
    let flow = flows.get(conv_id)
    if (flow === undefined) {
      flow = newProcessFlow()
      flows.set(conv_id, flow)
    }
    last_conv_id = conv_id
    last_flow = flow
    return flow
  }

  function wayOf({ conv_id, node_prev_id, node_id }: TaskRecord): RollingCount {
    const { ways } = flowOf(conv_id)
    const from = ways.get(node_prev_id)
    const known = from?.get(node_id)
    if (known !== undefined) return known
    if (ways_count >= ways_max) sweepWays()
    if (ways_count >= ways_max) return uncounted
    const way = newRollingCount(way_slots)
    if (from !== undefined) from.set(node_id, way)
    else ways.set(node_prev_id, new Map([[node_id, way]]))
    ways_count++
    return way
  }

  /** Forgets the ways that no task has taken lately; at most once a second. */
  function sweepWays(): void {
    const now_s = slotOf(now_ms(), second_ms)
    if (now_s === swept_s) return
    swept_s = now_s
    for (const { ways } of flows.values()) {
      for (const [from, to] of ways) {
        for (const [node_id, { slot }] of to) {
          if (now_s - slot >= way_slots) ways_count -= Number(to.delete(node_id))
        }
        if (to.size === 0) ways.delete(from)
      }
    }
  }

  function forget(): void {
    flows.clear()
    ways_count = 0
    last_conv_id = ''
    last_flow = newProcessFlow()
  }

  return {
    notes: newFlowNotes(flowOf, wayOf),
    isOn: () => watching > 0,
    begin() {
      if (watching === 0) {
        forget()
        since_ms = now_ms()
      }
      watching++
      let is_over = false
      return () => {
        if (!is_over) watching--
        is_over = true
      }
    },
    onCommitted({ moves, ends, more, fewer, stored, has_failures }) {
      mark++
      if (has_failures) failed_mark++
      const at_ms = now_ms()
      const [second, minute] = [slotOf(at_ms, second_ms), slotOf(at_ms, minute_ms)]
      for (const way of moves) countAt(way, second)
      for (const done of ends) countAt(done, minute)
      for (const { conv_id, counts } of stored) {
        const flow = flowOf(conv_id)
        for (const status of statuses) flow.held[status].count = counts[status]
        flow.is_read = true
      }
      for (const one of more) one.count++
      for (const one of fewer) one.count--
    },
    since_ms: () => since_ms,
    mark: () => mark,
    failed_mark: () => failed_mark,
    unread: (conv_ids) => [...conv_ids].filter((conv_id) => !flowOf(conv_id).is_read),
    read(conv_id) {
      const flow = flowOf(conv_id)
      const { held, done, told } = flow
      const minute = slotOf(now_ms(), minute_ms)
      let is_same = done.total === flow.told_ends && (done.slot === minute || done.total === 0)
      for (const status of statuses) {
        is_same &&= (told.by_status[status] ?? 0) === held[status].count
      }
      if (!is_same) {
        flow.told = { by_status: countsOf(held), done: countsUpTo(done, minute) }
        flow.told_ends = done.total
      }
      return flow.told
    },
    ways(conv_id) {
      const at_ms = now_ms()
      const second = slotOf(at_ms, second_ms)
      const passed_s = (at_ms % second_ms) / second_ms + rate_s
      const window_s = Math.max(1, Math.min(passed_s, (at_ms - since_ms) / second_ms))
      const found: FlowWay[] = []
      for (const [from_node_id, to] of flows.get(conv_id)?.ways ?? []) {
        for (const [to_node_id, way] of to) {
          const count = countsUpTo(way, second).reduce((sum, one) => sum + one, 0)
          if (count > 0) found.push({ from_node_id, to_node_id, per_s: count / window_s })
        }
      }
      return found
    },
    keep(conv_ids) {
      for (const [conv_id, { ways }] of flows) {
        if (conv_ids.has(conv_id)) continue
        for (const to of ways.values()) ways_count -= to.size
        flows.delete(conv_id)
      }
      last_conv_id = ''
    },
  }
}

/** Without zeros. */
function countsOf(held: ProcessFlow['held']): FlowNumbers['by_status'] {
  const counts: Partial<StatusCounts> = {}
  for (const status of statuses) {
    const { count } = held[status]
    if (count !== 0) counts[status] = count
  }
  return counts
}

function newProcessFlow(): ProcessFlow {
  const one = (): StatusCount => ({ count: 0 })
  return {
    is_read: false,
    held: {
      ...{ processing: one(), delayed: one(), failed: one() },
      ...{ processed: one(), canceled: one() },
    },
    done: newRollingCount(flow_minutes),
    told: { by_status: {}, done: no_ends },
    told_ends: 0,
    ways: new Map(),
  }
}

const slotOf = (at_ms: number, unit_ms: number): number => Math.floor(at_ms / unit_ms)

function newFlowNotes(
  flowOf: (conv_id: string) => ProcessFlow,
  wayOf: (task: TaskRecord) => RollingCount,
): FlowNotes {
  let is_empty = true
  let moves: RollingCount[] = []
  let ends: RollingCount[] = []
  let more: StatusCount[] = []
  let fewer: StatusCount[] = []
  let stored: Stored[] = []
  let has_failures = false

  const notes: FlowNotes = {
    begin() {
      if (is_empty) return
      is_empty = true
      moves = []
      ends = []
      more = []
      fewer = []
      stored = []
      has_failures = false
    },
    onMove(task) {
      is_empty = false
      // A new task comes from no node.
      if (task.node_prev_id !== '') moves.push(wayOf(task))
    },
    onCount(conv_id, status, by) {
      is_empty = false
      if (status === 'failed') has_failures = true
      const one = flowOf(conv_id).held[status]
      if (by === 1) more.push(one)
      else fewer.push(one)
    },
    onSave({ conv_id, status }) {
      is_empty = false
      if (status === 'failed') has_failures = true
      if (status === 'processed' || status === 'canceled') ends.push(flowOf(conv_id).done)
    },
    onStored(conv_id, counts) {
      is_empty = false
      stored.push({ conv_id, counts })
    },
    end() {
      const effects = is_empty ? undefined : { moves, ends, more, fewer, stored, has_failures }
      notes.begin()
      return effects
    },
  }
  return notes
}
