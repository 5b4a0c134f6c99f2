/**
 * Notes what a transaction does to tasks for the flow counters, which count it after the commit. On
 * the path of each op, so a note only appends to an array.
 */
import type { StatusCounts } from '../../codec/records.ts'
import { statuses, type TaskRecord } from '../../codec/task-record.ts'

export interface FlowNotes {
  /** Weight 0: moves are not noted. A transaction that throws notes nothing. */
  begin(move_weight: number): void
  onMove(task: TaskRecord): void
  onSave(task: TaskRecord): void
  onNode(place: number, before: StatusCounts, after: StatusCounts): void
  /** The tasks of a process before this transaction. */
  onStored(place: number, counts: StatusCounts): void
  /** Never changes. */
  placeOf(conv_id: string): number
  end(): FlowEffects | undefined
}

export interface FlowEffects {
  /** Alternately conv_id, the node left and the node entered. */
  readonly moves: readonly string[]
  /** How many moves each stands for. */
  readonly move_weight: number
  readonly ends: readonly number[]
  /** Alternately a place (`place * statuses.length + status`) and its change. */
  readonly changes: readonly number[]
  readonly stored: readonly { readonly place: number; readonly counts: StatusCounts }[]
  readonly has_failures: boolean
}

const failed_at = statuses.indexOf('failed')

export function newFlowNotes(placeOf: (conv_id: string) => number): FlowNotes {
  let is_empty = true
  let has_failures = false
  let move_weight = 1
  let moves: string[] = []
  let ends: number[] = []
  let changes: number[] = []
  let stored: { place: number; counts: StatusCounts }[] = []

  function clear(): void {
    is_empty = true
    has_failures = false
    moves = []
    ends = []
    changes = []
    stored = []
  }

  return {
    placeOf,
    begin(weight) {
      move_weight = weight
      if (!is_empty) clear()
    },
    onMove({ conv_id, node_prev_id, node_id }) {
      if (move_weight > 0 && node_prev_id !== '') moves.push(conv_id, node_prev_id, node_id)
    },
    onSave({ conv_id, status }) {
      is_empty = false
      if (status === 'failed') has_failures = true
      else if (status === 'processed' || status === 'canceled') ends.push(placeOf(conv_id))
    },
    onNode(place, before, after) {
      is_empty = false
      const first = place * statuses.length
      for (let at = 0; at < statuses.length; at++) {
        const status = statuses[at] as keyof StatusCounts
        const by = after[status] - before[status]
        if (by === 0) continue
        changes.push(first + at, by)
        if (at === failed_at) has_failures = true
      }
    },
    onStored(place, counts) {
      is_empty = false
      stored.push({ place, counts })
    },
    end() {
      if (is_empty) return undefined
      const effects = { moves, move_weight, ends, changes, stored, has_failures }
      clear()
      return effects
    },
  }
}
