/**
 * The part of the public interface that is about tasks, as types: what ops and the calls for one
 * task take and return. Many tasks: search-api.
 */
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

/** An op without `type` and `obj`. */
export interface CreateInput {
  /** The id of the process; 7 and `'7'` are the same, here and in a ref. */
  readonly conv_id: string | number
  /**
   * The caller's own name of the task, unique among the live tasks of the process. Once its task
   * has ended, a create with the ref makes a new one, also where it repeats one whose answer was
   * lost, unless both have one `request_key`.
   */
  readonly ref?: string | number | null
  /**
   * A plain JSON object, or `rawJson(text)`, which keeps the exact text. At any depth, a Date and
   * any object with `toJSON` is its JSON text, a bigint its digits, and a member that is undefined
   * is left out. What has no JSON is refused with `error` and its path: functions, symbols, NaN,
   * infinities, lone surrogates, undefined in an array, cycles, other objects of a class.
   */
  readonly data: unknown
}

/** A task by its ref or obj_id; with both, the obj_id decides. */
export interface TargetInput {
  readonly conv_id: string | number
  readonly ref?: string | number | null
  readonly obj_id?: string
}

export interface ModifyInput extends TargetInput {
  /** As of `CreateInput`; its members replace those of the task's data, and the others stay. */
  readonly data: unknown
  /** Refuses unless the task waits for a callback. Default false. */
  readonly is_sync?: boolean
  /** Refuses unless it waits for one in this node, so that a late repeat resumes no later wait. */
  readonly node_id?: string
}

/** What a retry, a move or a cancel did. */
export interface ActionResult extends OpResult {
  /** Where it was accepted: what the task was before. */
  readonly was?: { readonly status: Status; readonly node_id: string }
  /** Where it was accepted: the task as it is now. */
  readonly task?: Task
}

export interface Tasks {
  /**
   * A page of the tasks that satisfy a filter, oldest first unless asked otherwise; without one,
   * of all live tasks.
   */
  list(query?: TaskQuery): Promise<TaskPage>
  /** How many tasks there are, by process, node and status, without reading them. */
  count(filter?: CountFilter): Promise<TaskCounts>
  /** Runs a failed task again, from its node or from `node_id`. */
  retry(target: TargetInput, node_id?: string): Promise<ActionResult>
  /** Puts a live task into another node, where it runs on; what it waits for is given up. */
  move(target: TargetInput, node_id: string): Promise<ActionResult>
  /** Ends a live task as `canceled`, frees its ref and disarms its timer. */
  cancel(target: TargetInput): Promise<ActionResult>
  /**
   * Does one action on all tasks of a filter, in steps between those of callers; resolves when it
   * is done. Also rejects with `bulk_id_taken`, and with `not_possible` where the job of this id
   * runs already; with a TypeError for a malformed member. After any rejection the job can go on.
   */
  bulk(input: BulkInput): Promise<BulkJob>
  /** Goes on with a bulk job that was ended or cut off. `not_possible` where there is none. */
  resumeBulk(id: string, options?: BulkOptions): Promise<BulkJob>
  /** The last 100 bulk jobs, the newest first; finished ones are kept for a day. */
  bulkJobs(): Promise<BulkJob[]>
}

export interface ResultOptions {
  /** Milliseconds after which it rejects with `result_timeout`; 0 looks once. Default: no end. */
  readonly timeout_ms?: number | undefined
  /** Once aborted, the wait rejects with its reason. */
  readonly signal?: AbortSignal | undefined
}
