/** Public types of ops and of calls for one task; search-api has those for many. */
import type { OpResult, Status, Task } from '../../core/model.ts'
import type {
  BulkInput,
  BulkJob,
  BulkOptions,
  CountFilter,
  TaskCounts,
  TaskPage,
  TaskQuery,
} from './search-api.ts'

export interface CreateInput {
  /** 7 and `'7'` are the same process, and the same ref. */
  readonly conv_id: string | number
  /**
   * The caller's name of the task, unique among the process's live tasks. After its task has ended
   * a create makes a new one, even as a repeat whose answer was lost, unless both have one
   * `request_key`.
   */
  readonly ref?: string | number | null
  /**
   * A plain JSON object, or `rawJson(text)` for exact text. A Date or object with `toJSON` becomes
   * its JSON, a bigint its digits; undefined members are dropped. `error` with its path refuses
   * functions, symbols, NaN, infinities, lone surrogates, undefined in arrays, cycles, and other
   * class instances.
   */
  readonly data: unknown
}

/** By ref or obj_id; the obj_id takes precedence. */
export interface TargetInput {
  readonly conv_id: string | number
  readonly ref?: string | number | null
  readonly obj_id?: string
}

export interface ModifyInput extends TargetInput {
  /** As `CreateInput.data`; replaces members of the task's data, and keeps the others. */
  readonly data: unknown
  /** Refuses unless the task waits for a callback. Default false. */
  readonly is_sync?: boolean
  /** Refuses unless it waits in this node, so that a late repeat resumes no later wait. */
  readonly node_id?: string
}

export interface ActionResult extends OpResult {
  /** If accepted: the state before. */
  readonly was?: { readonly status: Status; readonly node_id: string }
  /** If accepted: the task afterwards. */
  readonly task?: Task
}

export interface Tasks {
  /** A page of matching tasks, oldest first by default; without a filter, all live tasks. */
  list(query?: TaskQuery): Promise<TaskPage>
  /** Counts by process, node and status, without reading tasks. */
  count(filter?: CountFilter): Promise<TaskCounts>
  /** Runs a failed task again, from its node or from `node_id`. */
  retry(target: TargetInput, node_id?: string): Promise<ActionResult>
  /** Moves a live task to a node and runs it there, abandoning its wait. */
  move(target: TargetInput, node_id: string): Promise<ActionResult>
  /** Ends a live task as `canceled`, frees its ref and disarms its timer. */
  cancel(target: TargetInput): Promise<ActionResult>
  /**
   * Applies an action to all tasks of a filter, in steps between those of callers. Rejects with
   * `bulk_id_taken`, with `not_possible` if the job already runs, with a TypeError for a malformed
   * member. The job can continue after any rejection.
   */
  bulk(input: BulkInput): Promise<BulkJob>
  /** Continues an interrupted bulk job. `not_possible` if there is none. */
  resumeBulk(id: string, options?: BulkOptions): Promise<BulkJob>
  /** The last 100 bulk jobs, newest first; finished ones are kept for a day. */
  bulkJobs(): Promise<BulkJob[]>
}

export interface ResultOptions {
  /** Rejects with `result_timeout` after this many milliseconds; 0 looks once. Default: never. */
  readonly timeout_ms?: number | undefined
  /** Rejects the wait with its reason. */
  readonly signal?: AbortSignal | undefined
}
