/**
 * Public types for finding, counting and changing many tasks: plain JSON data that servers pass on;
 * `rawJson(text)` in `where` and `data` keeps exact numbers. Times are Unix milliseconds.
 *
 * A malformed or contradictory filter, or an unknown member, rejects with `bad_filter`, an unknown
 * process with `conv_not_found`, an unknown node with `node_not_found`; the message lists known
 * names. An unknown name is never an empty list.
 */
import type { OpFaultCode } from '../../core/faults.ts'
import type { Doc, Status, Task } from '../../core/model.ts'

/**
 * All given members must match. `{}` is every live task. `…since_ms` includes its time, `…until_ms`
 * excludes it. At most 65,536 characters of JSON.
 */
export interface TaskFilter {
  /** Default: all processes. */
  readonly conv_id?: string | number
  /** The node with this id, else nodes with this title. */
  readonly node_id?: string
  /**
   * One status, or `live` (processing, delayed or failed), `ended` (processed or canceled) or
   * `any`. Default `live`, or `ended` with a time of the end.
   */
  readonly status?: Status | 'live' | 'ended' | 'any'
  /**
   * Tasks that hold a ref with this prefix. A ref is held by its live task, else by the newest
   * ended one.
   */
  readonly ref_prefix?: string
  /** Created at this time or later; in whole seconds where the clock was set back. */
  readonly created_since_ms?: number
  readonly created_until_ms?: number
  /** Last change. */
  readonly changed_since_ms?: number
  readonly changed_until_ms?: number
  readonly ended_since_ms?: number
  readonly ended_until_ms?: number
  /** Live tasks with a timer that fires before this time. */
  readonly due_before_ms?: number
  readonly where?: Where
}

export const filter_times = [
  'created_since_ms',
  'created_until_ms',
  'changed_since_ms',
  'changed_until_ms',
  'ended_since_ms',
  'ended_until_ms',
  'due_before_ms',
] as const

export const filter_members: readonly (keyof TaskFilter)[] = [
  ...(['conv_id', 'node_id', 'status', 'ref_prefix'] as const),
  ...filter_times,
  'where',
]

/**
 * Conditions on the data, all of which must hold: path → the equal value, or comparisons: `{
 * 'order.amount': { gte: 100, lt: 200 }, paid: true, note: { exists: false } }`.
 *
 * Paths are written like keys of `set_param`: `a.b`, `list[0]`, `\.` for a dot in a name;
 * `list[].id` holds if one element matches. Comparisons: `eq`, `ne`, `gt`, `gte`, `lt`, `lte`,
 * `exists`. Numbers compare by exact value (1.10 equals 1.1), texts by UTF-16 code units, arrays
 * and objects by `eq` and `ne` only, with members in any order. Values of different types are
 * unequal and unordered; `ne` also holds for a missing value. At most 64 paths of `nesting_max`
 * steps.
 */
export type Where = Readonly<Record<string, unknown>> | Doc

export interface TaskQuery extends TaskFilter {
  /** Default false: oldest, or first ref, first. */
  readonly newest_first?: boolean
  /** Tasks of a page; default 100. */
  readonly limit?: number
  /** Of the previous page, with the same filter and order, else `bad_cursor`. */
  readonly cursor?: string
}

/** The order of a page, decided by the index that the filter uses. */
export type SortedBy = 'ref' | 'due' | 'ended' | 'failed' | 'created'

export interface TaskPage {
  readonly tasks: readonly Task[]
  /**
   * Of the next page; undefined at the end. A page may have few or no tasks and still a cursor: one
   * call reads at most `search_tasks_max` tasks.
   */
  readonly cursor?: string
  readonly scanned: number
  /**
   * `ref` with `ref_prefix`, else `due` with `due_before_ms`, else `ended` for ended tasks only,
   * else `failed` (last change) for failed tasks only, else `created`.
   */
  readonly sorted_by: SortedBy
  /** How far the search got, as a time of its order; absent by `ref` and at the end. */
  readonly reached_ms?: number
  /** The obj_ids of skipped, damaged records. */
  readonly damaged: readonly string[]
}

/**
 * Counts every status by default. Other members of a filter would need reads of tasks and reject
 * with `bad_filter`.
 */
export type CountFilter = Pick<TaskFilter, 'conv_id' | 'node_id' | 'status'>

export interface TaskCounts {
  readonly total: number
  readonly by_status: Readonly<Partial<Record<Status, number>>>
  /**
   * A row per node with `conv_id` or `node_id`, else per process. Ended tasks count in their last
   * node, while kept.
   */
  readonly rows: readonly CountRow[]
}

export interface CountRow extends Pick<TaskCounts, 'total' | 'by_status'> {
  readonly conv_id: string
  /** Of the process or node; empty for a node that was dropped. */
  readonly title: string
  readonly node_id?: string
}

/**
 * `cancel`, `retry` and `move` as in `Tasks`; `modify` adds data as `Engine.modify` does, and
 * resumes a task that waits for a callback. In a paused process only `cancel` works; others are
 * refused with `conveyor_is_not_active`.
 */
export type BulkAction = 'cancel' | 'retry' | 'modify' | 'move'

export interface BulkInput extends BulkOptions {
  readonly action: BulkAction
  /** Live tasks only, else `bad_filter`. A retry implies failed ones. */
  readonly filter: TaskFilter
  /** For `modify` only: a plain JSON object or `rawJson(text)`. */
  readonly data?: unknown
  /** For `move`, and for `retry` into another node: a node id or title. Needs `filter.conv_id`. */
  readonly to_node_id?: string
  /**
   * Names the job, 1 to 64 characters; default a new name. The same call again continues it, or
   * returns its result. Another job under this name rejects with `bulk_id_taken`.
   */
  readonly id?: string
  /** Only counts the matching tasks and shows the first ten. */
  readonly dry_run?: boolean
  /** Of an interrupted dry run, which continues there and counts from 0. */
  readonly cursor?: string
}

export interface BulkOptions {
  /** Called after each step, with the ids of the tasks that it changed. */
  readonly onProgress?: (progress: BulkJob, changed_ids: readonly string[]) => void
  /** Ends the work after the current step, with `is_done: false`. */
  readonly signal?: AbortSignal
  /** Ends the work after this many steps, of 64 changed and `search_tasks_max` read tasks each. */
  readonly steps_max?: number
}

/** Progress of a job or dry run. */
export interface BulkJob {
  /** Absent for a dry run. */
  readonly id?: string
  readonly action: BulkAction
  readonly filter: TaskFilter
  readonly is_done: boolean
  readonly started_ms: number
  readonly scanned: number
  readonly matched: number
  readonly changed: number
  /** Changed meanwhile, so that they no longer match. */
  readonly skipped: number
  /** Refused by the engine, by code. */
  readonly refused: Readonly<Partial<Record<OpFaultCode | 'internal_error', number>>>
  /** Of a dry run: the first matches. */
  readonly sample?: readonly Task[]
  /** Of an unfinished dry run. */
  readonly cursor?: string
}
