/**
 * The queue of listed jobs (key type outbox): which of them may start next. Jobs share concurrency
 * limits: of a handler, the code sandbox, the calls of one logic, the calls to one host. The scan
 * reads each listed job once; a job whose limit is reached is parked in memory until a slot is
 * free, so it delays no other job. A call is parked for a bounded time, then it is due as expired.
 * Parked jobs are hints: each is read again before it starts.
 */
import { after, type Key, keysOfType, outboxKey, outboxOfKey } from '../../codec/keys.ts'
import type { Limits } from '../../core/limits.ts'
import type { Task } from '../../core/model.ts'
import type { TraceContext } from '../../core/tracing.ts'
import { steps_max } from '../../process/definition-limits.ts'
import type { Command, JobOrder } from '../../process/logic.ts'
import { evaluationContextOf } from '../tasks/evaluation-context.ts'
import { loadTask } from '../tasks/task-store.ts'
import { viewTask } from '../tasks/task-view.ts'
import { migrationTarget } from '../tasks/waits.ts'
import type { ReadContext } from '../transactions/transaction.ts'
import { newParkedJobs } from './parked-jobs.ts'

/** A job, and the state of its task when the order was made. */
export interface DueJob {
  readonly obj_id: string
  readonly visit: number
  readonly logic_at: number
  readonly at_ms: number
  readonly attempts: number
  /** `none` where no job is needed: the task makes `command`, or runs its node again. */
  readonly order: JobOrder | { readonly job: 'none'; readonly command: Command | undefined }
  readonly task: Task
  readonly trace: TraceContext | undefined
  /** The type of the logic; a new definition may have another one in its stead. */
  readonly type: string | undefined
  /** Identifies the logic: its conv_id, node_id and number in the node. */
  readonly logic_key: string
  /** A call that has waited too long for a slot: it needs none and is not made. */
  readonly is_expired: boolean
}

export interface QueueScan {
  readonly due: readonly DueJob[]
  /** When the next job may start that may not start yet, or a parked call expires. */
  readonly next_ms: number | undefined
  readonly has_more: boolean
}

export interface JobQueue {
  /** Up to `jobs_max` jobs that may start. Each must then start or be parked. */
  scan(context: ReadContext, jobs_max: number): QueueScan
  /** Parks a job whose limit is reached. Returns whether another job may start in its stead. */
  park(job: DueJob, limit: string): boolean
  release(job: DueJob): void
  onEnded(obj_id: string): void
  onListed(at_ms: number): void
  rescan(): void
  parked(): number
}

export interface JobQueueOptions {
  readonly limits: Limits
  limitsOf(job: DueJob): readonly string[]
  /** Whether a job of this task is in flight or quarantined. */
  isInFlight(obj_id: string): boolean
  /** Called for a bug while a job is read. The job stays listed until the next rescan. */
  onBug(error: unknown): void
}

const slice_keys = 256

const range = keysOfType('outbox')

export function newJobQueue(options: JobQueueOptions): JobQueue {
  const { limits, limitsOf, isInFlight, onBug } = options
  let cursor: Key = range.from
  const parked = newParkedJobs(limits)
  let scanned_ms = 0
  /** Bounds what the orders of one scan compute. */
  let steps_left = 0
  /** Limit → the slots that became free since the last scan. */
  const free_slots = new Map<string, number>()
  /** Listed again while its last job was in flight: obj_id → the time it is listed under. */
  const skipped = new Map<string, number>()

  function onListed(at_ms: number): void {
    const key = outboxKey(at_ms, '')
    if (key < cursor) cursor = key
  }

  function scanExpired(context: ReadContext, jobs_max: number, due: DueJob[]): void {
    while (!isFull(due, jobs_max)) {
      const obj_id = parked.takeExpired(context.now_ms)
      if (obj_id === undefined) return
      const job = readJob(context, obj_id)
      if (job !== undefined) due.push({ ...job, is_expired: true })
    }
  }

  /** Takes as many parked jobs of each limit as it has free slots; true where some are left. */
  function scanParked(context: ReadContext, jobs_max: number, due: DueJob[]): boolean {
    let scanned = 0
    for (const [limit, slots] of free_slots) {
      let left = slots
      for (const obj_id of parked.of(limit) ?? []) {
        if (left === 0) break
        if (isFull(due, jobs_max) || scanned++ >= slice_keys) {
          free_slots.set(limit, left)
          return true
        }
        const at_ms = parked.take(obj_id)
        // The clock was set back: the job is listed for a later time again.
        if (at_ms !== undefined && at_ms > context.now_ms) onListed(at_ms)
        const job = isInFlight(obj_id) ? undefined : readJob(context, obj_id)
        if (job === undefined) continue
        due.push(job)
        if (limitsOf(job).includes(limit)) left--
      }
      const left_ms = left > 0 ? parked.takeLeft(limit) : undefined
      if (left_ms !== undefined) onListed(left_ms)

      free_slots.delete(limit)
    }
    return false
  }

  /** Continues the scan of listed jobs; true where more of them may be due. */
  function scanListed(context: ReadContext, jobs_max: number, due: DueJob[]): boolean {
    const to = outboxKey(context.now_ms + 1, '')
    if (cursor >= to) return false
    const keys = context.view.scan({ from: cursor, to, limit: slice_keys })
    for (const { key } of keys) {
      if (isFull(due, jobs_max)) return true
      cursor = after(key)
      const { obj_id, ms } = outboxOfKey(key)
      // The cursor may have gone back behind a job that was parked until now.
      if (parked.isParked(obj_id, ms) || due.some((job) => job.obj_id === obj_id)) continue
      if (isInFlight(obj_id)) {
        skipped.set(obj_id, ms)
        continue
      }
      const job = readJob(context, obj_id)
      if (job === undefined) continue
      const reached = limitsOf(job).find(parked.isWaitedFor)
      if (reached === undefined) due.push(job)
      else parked.park(job, reached, scanned_ms)
    }
    return keys.length === slice_keys
  }

  function isFull(due: readonly DueJob[], jobs_max: number): boolean {
    return due.length >= jobs_max || steps_left <= 0
  }

  function readJob(context: ReadContext, obj_id: string): DueJob | undefined {
    context.steps.left = steps_max
    try {
      return dueJobOf(context, obj_id)
    } catch (error) {
      onBug(error)
      return undefined
    } finally {
      steps_left -= steps_max - context.steps.left
    }
  }

  /** Gives a slot to the next job parked for the limit; false where there is none. */
  function freeSlot(limit: string): boolean {
    if (!parked.isWaitedFor(limit)) return false
    free_slots.set(limit, (free_slots.get(limit) ?? 0) + 1)
    return true
  }

  return {
    scan(context, jobs_max) {
      const due: DueJob[] = []
      scanned_ms = context.now_ms
      steps_left = steps_max
      scanExpired(context, jobs_max, due)
      const has_parked = scanParked(context, jobs_max, due)
      const has_listed = scanListed(context, jobs_max, due)
      const from = outboxKey(context.now_ms + 1, '')
      const [next] = context.view.scan({ from, to: range.to, limit: 1 })
      const next_ms = Math.min(
        next === undefined ? Number.POSITIVE_INFINITY : outboxOfKey(next.key).ms,
        parked.expiry_ms(),
      )
      const has_more = has_parked || has_listed
      return { due, next_ms: Number.isFinite(next_ms) ? next_ms : undefined, has_more }
    },
    park(job, reached) {
      parked.park(job, reached, scanned_ms)
      // It may have come for a slot of another limit, which goes to the next job parked there.
      const others = limitsOf(job).filter((limit) => limit !== reached)
      return others.filter(freeSlot).length > 0
    },
    release(job) {
      for (const limit of limitsOf(job)) freeSlot(limit)
    },
    onEnded(obj_id) {
      parked.onEnded(obj_id)
      const at_ms = skipped.get(obj_id)
      skipped.delete(obj_id)
      if (at_ms !== undefined) onListed(at_ms)
    },
    onListed,
    parked: parked.count,
    rescan() {
      cursor = range.from
      parked.clear()
      free_slots.clear()
    },
  }
}

/**
 * The job of a task, if it may start now; undefined, and still listed, where the process is paused,
 * the task is damaged or its node is gone.
 */
function dueJobOf(context: ReadContext, obj_id: string): DueJob | undefined {
  const draft = loadTask(context.view, obj_id)
  if (draft === undefined || draft === 'damaged') return undefined
  const { task } = draft
  const { visit, logic_at, at_ms, attempts, conv_id, node_id } = task
  if (task.wait !== 'work' || at_ms > context.now_ms) return undefined
  const process = context.process(conv_id)
  if (process === undefined || process.record.status === 'paused') return undefined
  if (migrationTarget(process, task) !== undefined) return undefined
  const logic = process.graph.nodes.get(node_id)?.logics[logic_at]
  const made = logic?.job?.order(evaluationContextOf(context, process, task))
  const order =
    made !== undefined && 'job' in made
      ? withHandler(context, conv_id, made)
      : { job: 'none' as const, command: made }
  const logic_key = `${conv_id} ${node_id} ${logic_at}`
  const type = logic?.type
  return {
    ...{ obj_id, visit, logic_at, at_ms, attempts, order, task: viewTask(task), logic_key, type },
    trace: task.trace,
    is_expired: false,
  }
}

/** The order with the name of the registered handler, or with the most specific one. */
function withHandler({ engine, view }: ReadContext, conv_id: string, order: JobOrder): JobOrder {
  if (order.job !== 'handler') return order
  const title = order.handler
  return { ...order, handler: engine.handlerName(view, conv_id, title) ?? `${conv_id}/${title}` }
}
