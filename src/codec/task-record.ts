/**
 * A task as the engine works on it. Its stored form is in codec/task-bytes; a record has all that
 * is known of a task, and its index keys (codec/keys) are made of it.
 */
import type { Doc, Ref, Status, StatusDetails } from '../core/model.ts'
import type { TraceContext } from '../core/tracing.ts'

/**
 * What a task waits for. `callback`: a modify, which resumes it after the logic `logic_at`.
 * `ready`: the next turn, which resumes it at `logic_at`. `reply`: the end of the task `called_id`.
 * `queue`: a task that takes it from the queue. `work`: a job outside the transaction. `slot`: its
 * turn at a limit of its node. `nothing`: its timer, if it has one.
 */
export type Wait = 'nothing' | 'callback' | 'ready' | 'reply' | 'queue' | 'work' | 'slot'

export interface TaskRecord {
  readonly obj_id: string
  readonly conv_id: string
  readonly ref: Ref | undefined
  readonly user_id: string | undefined
  readonly create_ms: number
  change_ms: number
  status: Status
  details: StatusDetails | undefined
  node_id: string
  node_prev_id: string
  /** The nodes that its bytes name, each once; only ever appended to, or replaced. */
  nodes: string[]
  wait: Wait
  logic_at: number
  /** When the timer of the semaphor `semaphor_at` fires; 0 without a timer. */
  due_ms: number
  semaphor_at: number
  /** Counts the nodes entered and the jobs waited for, so each wait has a number of its own. */
  visit: number
  /** Nodes entered since the task last waited. */
  moves: number
  /**
   * In a queue: when it entered. With a job: when the job may begin. Ready: when the timer of its
   * node fires, 0 without one. Otherwise 0.
   */
  at_ms: number
  /** Whether it holds or waits for slots of limits, which the key type task_slot lists. */
  has_slots: boolean
  /** Failed attempts of the job it waits for. */
  attempts: number
  /** The task that waits for the reply of this one; undefined once the reply is given. */
  caller_id: string | undefined
  /** The task whose reply this one waits for. */
  called_id: string | undefined
  /** The newest ended task with the same ref when this one took it, if one was kept. */
  readonly former_id: string | undefined
  /** The digest of the data at creation; undefined while `doc` is still that data. */
  digest: Buffer | undefined
  doc: Doc
  /** See codec/task-history, which names nodes by their places in `nodes`. */
  history: string
  history_count: number
  /** The time of the last entry, where the present transaction has made it; else -1. */
  history_ms: number
  /** The trace that the task belongs to, for as long as it lives. */
  trace: TraceContext | undefined
}

export const is_live: Readonly<Record<Status, boolean>> = {
  processing: true,
  delayed: true,
  failed: true,
  processed: false,
  canceled: false,
}
/** Goes no further by itself: it has ended, or it has failed and may be retried. */
export const is_over: Readonly<Record<Status, boolean>> = {
  processing: false,
  delayed: false,
  failed: true,
  processed: true,
  canceled: true,
}

/** In the order in which records number and count them. */
export const statuses: readonly Status[] = [
  'processing',
  'delayed',
  'failed',
  'processed',
  'canceled',
]
/** In that order too. */
export const waits: readonly Wait[] = [
  'nothing',
  'callback',
  'ready',
  'reply',
  'queue',
  'work',
  'slot',
]

/** Adds a node that the list lacks. */
export function placeOf(nodes: string[], node_id: string): number {
  const place = nodes.indexOf(node_id)
  return place === -1 ? nodes.push(node_id) - 1 : place
}
