/**
 * What an overview of an engine holds, as types: plain data, which servers pass on as JSON. Times
 * are milliseconds since 1970 (UTC); nothing here has data of tasks.
 */
import type { Status } from '../../core/model.ts'
import type { ReadyCheck } from '../../engine/api/statistics-api.ts'

export interface Overview {
  readonly at_ms: number
  /** Since when `done` is counted. */
  readonly since_ms: number
  /** All processes, or those whose row differs from the last overview. */
  readonly processes: readonly ProcessRow[]
  /** The conv_ids of processes of earlier overviews that are gone. */
  readonly removed: readonly string[]
  /** Absent where nothing differs from the last overview. */
  readonly failed?: FailedTasks
  readonly health: Health
}

export interface ProcessRow {
  readonly conv_id: string
  readonly title: string
  readonly status: 'active' | 'paused' | 'draft'
  readonly version: number
  readonly by_status: Readonly<Partial<Record<Status, number>>>
  /** Tasks that ended in each of 30 minutes, the last still running; the oldest first. */
  readonly done: readonly number[]
}

/** Of the last whole minute, or of the one still running where that has more already. */
export function doneAMinute({ done }: Pick<ProcessRow, 'done'>): number {
  return Math.max(done.at(-1) ?? 0, done.at(-2) ?? 0)
}

export interface FailedTasks {
  readonly total: number
  /** The tasks that `groups` count: the newest failed ones, at most 1,000. */
  readonly grouped: number
  /** Newest first. */
  readonly groups: readonly FailedGroup[]
}

export interface FailedGroup {
  readonly conv_id: string
  readonly node_id: string
  readonly title: string
  readonly node_title: string
  readonly tag: string
  readonly tasks: number
  readonly newest_ms: number
  readonly newest_obj_id: string
}

export interface Health {
  readonly ok: boolean
  readonly checks: Readonly<Record<string, ReadyCheck>>
  readonly version: string
  readonly uptime_s: number
  /** Of the commits of the last ten seconds; undefined without one. */
  readonly commit_ms?: { readonly p50: number; readonly p99: number }
  readonly ops_per_s: number
  readonly queue: { readonly ops: number; readonly bytes: number }
  readonly due_lag_ms: number
  readonly jobs: { readonly in_flight: number; readonly waiting: number }
  readonly disk_free_bytes?: number
  readonly file_bytes: number
  readonly certificates_until_ms: Readonly<Record<string, number>>
  /** A sentence on the key of the secrets that says what is wrong with it. */
  readonly key_problem?: string
}

/** What happens in a process, node by node. */
export interface ProcessCounts {
  readonly at_ms: number
  readonly conv_id: string
  readonly status: ProcessRow['status']
  readonly version: number
  /** All nodes with tasks, or that had some in the last counts. */
  readonly nodes: readonly NodeCounts[]
  /** The edges that tasks took in the last ten seconds. */
  readonly edges: readonly EdgeRate[]
}

export interface NodeCounts {
  readonly node_id: string
  readonly by_status: Readonly<Partial<Record<Status, number>>>
  /** Tasks whose timer fires within a minute, or is late; counted up to `due_soon_max`. */
  readonly due_soon: number
}

export const due_soon_max = 200

export interface EdgeRate {
  readonly from_node_id: string
  readonly to_node_id: string
  readonly per_s: number
}
