/**
 * Public types of bulk jobs. A job goes through the tasks of a filter in the order of their
 * obj_ids, in steps that are separate transactions. Each step writes its progress with its changes,
 * so a job continues where it stopped, also after a crash. A job takes tasks created before it
 * began, each at most once; the filter judges a task when the job reaches it.
 */
import type { OpFaultCode } from '../../core/faults.ts'
import type { Task } from '../../core/model.ts'
import type { TaskFilter } from './search-api.ts'

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
