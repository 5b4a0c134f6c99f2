/**
 * Counts what happens to the tasks of each process while a caller watches: moves between nodes,
 * ends, and tasks by status. Transactions make notes (flow-notes), which are counted after the
 * commit, in commit order; so a transaction may run again.
 *
 * Tasks by status start from the node counters in some transaction and follow later notes, so they
 * are read once. All numbers of a process are in arrays at its fixed place, so counting touches
 * little memory.
 */

import { isDeepStrictEqual } from 'node:util'
import type { StatusCounts } from '../../codec/records.ts'
import { statuses } from '../../codec/task-record.ts'
import type { Status } from '../../core/model.ts'
import {
  countAt,
  countsUpTo,
  newRollingCount,
  type RollingCount,
} from '../../core/rolling-count.ts'
import { type FlowEffects, type FlowNotes, newFlowNotes } from '../transactions/flow-notes.ts'

export interface FlowCounters {
  /** For the next transaction; undefined without a watcher. */
  notes(now_ms: number): FlowNotes | undefined
  /** Starts or continues to count; the returned function stops. */
  begin(): () => void
  onCommitted(effects: FlowEffects): void
  since_ms(): number
  /** Changes with every commit that has changed a task, while watched. */
  mark(): number
  /** Changes with every commit that has changed a failed task. */
  failed_mark(): number
  /** Processes whose tasks by status are unknown yet. */
  unread(conv_ids: Iterable<string>): string[]
  /** Tasks by status, and ends by minute; the same object as the last call while unchanged. */
  read(conv_id: string): FlowNumbers
  /** Edges that tasks took in the last ten seconds. */
  edges(conv_id: string): FlowEdge[]
}

export interface FlowNumbers {
  readonly by_status: Readonly<Partial<StatusCounts>>
  /** The last 30 minutes, oldest first; the last one is incomplete. */
  readonly done: readonly number[]
}

const flow_minutes = 30
const minute_ms = 60_000
const second_ms = 1_000
/** Moves of a second that are counted one by one; beyond, transactions are sampled. */
const exact_moves_max = 2_000
const sampled_of = 8

interface LastRead {
  readonly numbers: FlowNumbers
  readonly minute: number
}

export function newFlowCounters(now_ms: () => number, fraction: () => number): FlowCounters {
  const places = new Map<string, number>()
  let counts: Float64Array = new Float64Array(statuses.length * 64)
  let ended: Float64Array = new Float64Array(64)
  let last_read: (LastRead | undefined)[] = []
  let is_read: boolean[] = []
  /** `ended` at the beginning of each recent minute, oldest first. */
  let ended_before: Float64Array[] = []
  let minute = 0
  let second = 0
  let moves_of_second = 0
  let watching = 0
  let since_ms = 0
  let mark = 0
  let failed_mark = 0
  const edges = newEdgeCounters()
  const notes = newFlowNotes(placeOf)

  function placeOf(conv_id: string): number {
    const known = places.get(conv_id)
    if (known !== undefined) return known
    const place = places.size
    places.set(conv_id, place)
    if (place === ended.length) {
      counts = grown(counts)
      ended = grown(ended)
    }
    return place
  }

  function rollTo(at_ms: number): void {
    const now = Math.floor(at_ms / minute_ms)
    if (now === minute) return
    const passed = now - minute
    minute = now
    const begins = new Array<Float64Array>(flow_minutes).fill(ended.slice())
    // A clock that was set back restarts the minutes.
    ended_before = passed < 0 ? begins : [...ended_before, ...begins.slice(-passed)]
    ended_before = ended_before.slice(-flow_minutes)
  }

  // Plain loops: read for hundreds of processes a second, at a tenth of the cost of iterators.
  function statusesOf(place: number): Partial<StatusCounts> {
    const found: Partial<StatusCounts> = {}
    for (let at = 0; at < statuses.length; at++) {
      const count = counts[place * statuses.length + at] as number
      if (count !== 0) found[statuses[at] as Status] = count
    }
    return found
  }

  function doneOf(place: number): number[] {
    const done: number[] = []
    for (let at = 0; at < flow_minutes; at++) {
      const end = (ended_before[at + 1] ?? ended)[place] ?? 0
      done.push(end - (ended_before[at]?.[place] ?? 0))
    }
    return done
  }

  function isSame(place: number, { numbers, minute: of }: LastRead): boolean {
    if (of !== minute) return false
    const before = ended_before[flow_minutes - 1]?.[place] ?? 0
    if ((ended[place] as number) - before !== numbers.done[flow_minutes - 1]) return false
    for (let at = 0; at < statuses.length; at++) {
      const count = numbers.by_status[statuses[at] as Status] ?? 0
      if (counts[place * statuses.length + at] !== count) return false
    }
    return true
  }

  return {
    notes(now_ms) {
      if (watching === 0) return undefined
      const now_s = Math.floor(now_ms / second_ms)
      if (now_s !== second) moves_of_second = 0
      second = now_s
      const is_exact = moves_of_second < exact_moves_max
      notes.begin(is_exact ? 1 : fraction() * sampled_of < 1 ? sampled_of : 0)
      return notes
    },
    begin() {
      if (watching === 0) {
        since_ms = now_ms()
        edges.clear()
        last_read = []
        is_read = []
        minute = -1
        rollTo(since_ms)
      }
      watching++
      let is_over = false
      return () => {
        if (!is_over) watching--
        is_over = true
      }
    },
    onCommitted({ moves, move_weight, ends, changes, stored, has_failures }) {
      mark++
      if (has_failures) failed_mark++
      const at_ms = now_ms()
      rollTo(at_ms)
      moves_of_second += moves.length / 3
      edges.count(moves, move_weight, at_ms)
      for (const place of ends) ended[place] = (ended[place] as number) + 1
      for (const { place, counts: now } of stored) {
        for (const [at, status] of statuses.entries()) {
          counts[place * statuses.length + at] = now[status]
        }
        is_read[place] = true
      }
      for (let at = 0; at < changes.length; at += 2) {
        const count_at = changes[at] as number
        counts[count_at] = (counts[count_at] as number) + (changes[at + 1] as number)
      }
    },
    since_ms: () => since_ms,
    mark: () => mark,
    failed_mark: () => failed_mark,
    unread: (conv_ids) => [...conv_ids].filter((conv_id) => is_read[placeOf(conv_id)] !== true),
    read(conv_id) {
      rollTo(now_ms())
      const place = placeOf(conv_id)
      const last = last_read[place]
      if (last !== undefined && isSame(place, last)) return last.numbers
      const now = { by_status: statusesOf(place), done: doneOf(place) }
      const is_idle =
        last !== undefined && last.minute !== minute && isDeepStrictEqual(last.numbers, now)
      const numbers = is_idle ? last.numbers : now
      last_read[place] = { numbers, minute }
      return numbers
    },
    edges: (conv_id) => edges.read(conv_id, now_ms(), since_ms),
  }
}

function grown(numbers: Float64Array): Float64Array {
  const larger = new Float64Array(2 * numbers.length)
  larger.set(numbers)
  return larger
}

export interface FlowEdge {
  readonly from_node_id: string
  readonly to_node_id: string
  readonly per_s: number
}

export interface EdgeCounters {
  /** `moves` alternate conv_id, from and to; each stands for `weight` moves. */
  count(moves: readonly string[], weight: number, at_ms: number): void
  /** Of the last ten seconds; counting began at `since_ms`. */
  read(conv_id: string, at_ms: number, since_ms: number): FlowEdge[]
  clear(): void
}

const rate_s = 10
/** The seconds of a rate, and the current one. */
const slots = rate_s + 1
const edges_max = 50_000

type EdgesFrom = Map<string, Map<string, RollingCount>>

export function newEdgeCounters(): EdgeCounters {
  const by_process = new Map<string, EdgesFrom>()
  let edges_count = 0
  let swept_s = 0

  function edgeOf(conv_id: string, from: string, to: string, now_s: number) {
    const known = by_process.get(conv_id)?.get(from)?.get(to)
    if (known !== undefined) return known
    if (edges_count >= edges_max) sweep(now_s)
    if (edges_count >= edges_max) return undefined
    const edge = newRollingCount(slots)
    const edges = by_process.get(conv_id) ?? new Map<string, Map<string, RollingCount>>()
    by_process.set(conv_id, edges.set(from, (edges.get(from) ?? new Map()).set(to, edge)))
    edges_count++
    return edge
  }

  function sweep(now_s: number): void {
    if (now_s === swept_s) return
    swept_s = now_s
    for (const [conv_id, edges] of by_process) {
      for (const [from, to] of edges) {
        for (const [node_id, { slot }] of to) {
          if (Math.abs(now_s - slot) >= slots) edges_count -= Number(to.delete(node_id))
        }
        if (to.size === 0) edges.delete(from)
      }
      if (edges.size === 0) by_process.delete(conv_id)
    }
  }

  return {
    count(moves, weight, at_ms) {
      const now_s = Math.floor(at_ms / second_ms)
      for (let at = 0; at < moves.length; at += 3) {
        const edge = edgeOf(moves[at] ?? '', moves[at + 1] ?? '', moves[at + 2] ?? '', now_s)
        if (edge !== undefined) countAt(edge, now_s, weight)
      }
    },
    read(conv_id, at_ms, since_ms) {
      const now_s = Math.floor(at_ms / second_ms)
      const passed_s = (at_ms % second_ms) / second_ms + rate_s
      const window_s = Math.max(1, Math.min(passed_s, (at_ms - since_ms) / second_ms))
      const found: FlowEdge[] = []
      for (const [from_node_id, to] of by_process.get(conv_id) ?? []) {
        for (const [to_node_id, edge] of to) {
          const count = countsUpTo(edge, now_s).reduce((sum, one) => sum + one, 0)
          if (count > 0) found.push({ from_node_id, to_node_id, per_s: count / window_s })
        }
      }
      return found
    },
    clear() {
      by_process.clear()
      edges_count = 0
    },
  }
}
