/**
 * The part of the public interface that finds, counts and changes many tasks, as types. All of them
 * are plain data that JSON keeps, so servers pass them on as they are; `rawJson(text)` in `where`
 * and `data` keeps numbers that a double would change. Times are milliseconds since 1970 (UTC).
 *
 * A filter that is malformed, contradicts itself or has a member of another name rejects with
 * `bad_filter`, an unknown process with `conv_not_found`, an unknown node with `node_not_found`;
 * the message names what there is. An unknown name is never an empty list.
 */
import type { OpFaultCode } from '../../core/faults.ts'
import type { Doc, Status, Task } from '../../core/model.ts'

/**
 * Which tasks: those that satisfy every member given. `{}` is every live task. At most 65,536
 * characters as JSON.
 */
export interface TaskFilter {
  /** Tasks of this process; without it, of all processes. */
  readonly conv_id?: string | number
  /** Tasks in the node with this id; where no node has this id, in those with this title. */
  readonly node_id?: string
  /**
   * One status, or `live` (processing, delayed or failed), `ended` (processed or canceled) or
   * `any`. Default `live`, or `ended` with a time of the end.
   */
  readonly status?: Status | 'live' | 'ended' | 'any'
  /**
   * Tasks that hold a ref that begins with this. A ref is held by the live task that has it, else
   * by the newest ended one.
   */
  readonly ref_prefix?: string
  /** Created at this time or later. Counts in whole seconds where the clock was set back. */
  readonly created_since_ms?: number
  /** Created before this time. */
  readonly created_until_ms?: number
  /** Changed last at this time or later. */
  readonly changed_since_ms?: number
  /** Changed last before this time. */
  readonly changed_until_ms?: number
  /** Ended at this time or later. */
  readonly ended_since_ms?: number
  /** Ended before this time. */
  readonly ended_until_ms?: number
  /** Live tasks with a timer that fires before this time. */
  readonly due_before_ms?: number
  readonly where?: Where
}

/** The members of a filter that are times. */
export const filter_times = [
  'created_since_ms',
  'created_until_ms',
  'changed_since_ms',
  'changed_until_ms',
  'ended_since_ms',
  'ended_until_ms',
  'due_before_ms',
] as const

/** All its members. */
export const filter_members: readonly (keyof TaskFilter)[] = [
  ...(['conv_id', 'node_id', 'status', 'ref_prefix'] as const),
  ...filter_times,
  'where',
]

/**
 * Conditions on the data, all of which must hold: path → the value that equals, or an object of
 * comparisons: `{ 'order.amount': { gte: 100, lt: 200 }, paid: true, note: { exists: false } }`.
 *
 * Paths are written as keys of `set_param`: `a.b`, `list[0]`, `\.` for a dot in a name; `list[].id`
 * holds where it holds for one element. The comparisons are `eq`, `ne`, `gt`, `gte`, `lt`, `lte`
 * and `exists`. Numbers are compared by their exact value, so 1.10 is 1.1 and no digit of a long
 * number is lost; texts by UTF-16 code units; arrays and objects by `eq` and `ne` only, members in
 * any order. Values of different types are unequal and in no order; `ne` also holds where there is
 * no value. At most 64 paths, each of as many steps as data may be deep (`nesting_max`).
 */
export type Where = Readonly<Record<string, unknown>> | Doc

/** A filter, and which part of its tasks to list. */
export interface TaskQuery extends TaskFilter {
  /** Default false: the oldest first, or the first ref. */
  readonly newest_first?: boolean
  /** The most tasks of a page; default 100. */
  readonly limit?: number
  /** Of the page before, with the same filter and order; another rejects with `bad_cursor`. */
  readonly cursor?: string
}

/** By what a page is sorted. The filter decides, because it decides which index is read. */
export type SortedBy = 'ref' | 'due' | 'ended' | 'failed' | 'created'

export interface TaskPage {
  readonly tasks: readonly Task[]
  /**
   * Goes on where this page ends; undefined at the end. A page may have fewer tasks than its limit,
   * also none, and still a cursor: one call reads at most `search_tasks_max` tasks, and returns
   * what it found up to there.
   */
  readonly cursor?: string
  /** Tasks read for this page. */
  readonly scanned: number
  /**
   * `ref` with `ref_prefix`, else `due` with `due_before_ms`, else `ended` where only ended tasks
   * are wanted, else `failed` (the last change of a failed task) where only those are, else
   * `created`.
   */
  readonly sorted_by: SortedBy
  /** How far the search has come, in the time by which it sorts; absent by `ref` and at the end. */
  readonly reached_ms?: number
  /** The obj_ids of damaged records that were skipped. */
  readonly damaged: readonly string[]
}

/**
 * Counted are the tasks of every status, unless one is given. Nothing else of a filter can be
 * counted without reading tasks: it rejects with `bad_filter`.
 */
export type CountFilter = Pick<TaskFilter, 'conv_id' | 'node_id' | 'status'>

export interface TaskCounts {
  readonly total: number
  /** Each status that is counted. */
  readonly by_status: Readonly<Partial<Record<Status, number>>>
  /**
   * With `conv_id` or `node_id` a row for each node with such tasks, else for each process. Ended
   * tasks count in the node in which they ended, while they are kept.
   */
  readonly rows: readonly CountRow[]
}

export interface CountRow extends Pick<TaskCounts, 'total' | 'by_status'> {
  readonly conv_id: string
  /** Of the process, or of the node; empty for a node that its process has no more. */
  readonly title: string
  readonly node_id?: string
}

/**
 * `cancel` and `retry` are `Tasks.cancel` and `Tasks.retry`; `modify` adds data as `Engine.modify`
 * does, so a task that waits for a callback goes on; `move` is `Tasks.move`. In a paused process
 * only `cancel` works, the others are refused with `conveyor_is_not_active`.
 */
export type BulkAction = 'cancel' | 'retry' | 'modify' | 'move'

export interface BulkInput extends BulkOptions {
  readonly action: BulkAction
  /**
   * Live tasks only: a filter on ended ones rejects with `bad_filter`. A retry takes failed ones,
   * which its filter need not say.
   */
  readonly filter: TaskFilter
  /** With `modify`, and only there: the data to add, a plain JSON object or `rawJson(text)`. */
  readonly data?: unknown
  /**
   * With `move`, and with `retry` if it is not to be the node of each task: the id or the title of
   * a node. Needs `filter.conv_id`.
   */
  readonly to_node_id?: string
  /**
   * Names the job: the same call again goes on where it stopped, or answers its result if it is
   * done. Another job under a name in use rejects with `bulk_id_taken`. 1 to 64 characters;
   * default: a new name.
   */
  readonly id?: string
  /** Changes nothing: counts the tasks that match and shows the first ten. */
  readonly dry_run?: boolean
  /** Of a dry run that was ended: the next goes on there, and counts from 0. */
  readonly cursor?: string
}

export interface BulkOptions {
  /** Called after each step with what is done so far. */
  readonly onProgress?: (progress: BulkJob) => void
  /** Ends the work after the step under way. It resolves with `is_done: false`. */
  readonly signal?: AbortSignal
  /**
   * Ends the work after so many steps, likewise. A step changes at most 64 tasks, and reads at most
   * `search_tasks_max`.
   */
  readonly steps_max?: number
}

/** What a job has done so far, or a dry run has found. */
export interface BulkJob {
  /** Names the job; absent for a dry run. */
  readonly id?: string
  readonly action: BulkAction
  readonly filter: TaskFilter
  readonly is_done: boolean
  readonly started_ms: number
  /** Tasks read. */
  readonly scanned: number
  /** Tasks that the filter found. */
  readonly matched: number
  /** Those on which the action was done. */
  readonly changed: number
  /** Those that had changed, and were no longer meant, when their step came to them. */
  readonly skipped: number
  /** How many the engine refused, by the code of the refusal. */
  readonly refused: Readonly<Partial<Record<OpFaultCode | 'internal_error', number>>>
  /** Of a dry run: the first tasks that match. */
  readonly sample?: readonly Task[]
  /** Of a dry run that is not done. */
  readonly cursor?: string
}
