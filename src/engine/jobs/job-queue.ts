/**
 * The queue of listed jobs (key type outbox). Jobs share concurrency limits: of a handler, the code
 * sandbox, one logic's calls, one host's calls. The scan reads each listed job once; a job whose
 * limit is reached is parked in memory, so it delays no other. A parked call expires after a
 * bounded time. Parked jobs are hints: each is read again before it starts.
 */
import { after, type Key, keysOfType, outboxKey, outboxOfKey } from '../../codec/keys.ts'
import type { TaskRecord } from '../../codec/task-record.ts'
import type { Limits } from '../../core/limits.ts'
import type { Task } from '../../core/model.ts'
import type { TraceContext } from '../../core/tracing.ts'
import { steps_max } from '../../process/definition-limits.ts'
import type { Command, JobOrder, Logic } from '../../process/logic.ts'
import { evaluationContextOf } from '../tasks/evaluation-context.ts'
import { readableTask } from '../tasks/task-store.ts'
import { viewTask } from '../tasks/task-view.ts'
import { migrationTarget } from '../tasks/waits.ts'
import type { Process } from '../transactions/catalog.ts'
import type { ReadContext } from '../transactions/transaction.ts'
import { newParkedJobs } from './parked-jobs.ts'

/** A job, and its task's state when the order was made. */
export interface DueJob {
  readonly obj_id: string
  readonly visit: number
  readonly logic_at: number
  readonly at_ms: number
  readonly attempts: number
  /** `none` without a job: the task makes `command`, or runs its node again. */
  readonly order: JobOrder | { readonly job: 'none'; readonly command: Command | undefined }
  readonly task: Task
  readonly trace: TraceContext | undefined
  /** Type of the logic; a new definition may have replaced it. */
  readonly type: string | undefined
  /** Identifies the logic: conv_id, node_id and number in the node. */
  readonly logic_key: string
  /** A call that waited too long for a slot: it is not made. */
  readonly is_expired: boolean
}

export interface QueueScan {
  readonly due: readonly DueJob[]
  /** When the next job may start, or a parked call expires. */
  readonly next_ms: number | undefined
  readonly has_more: boolean
}

export interface JobQueue {
  /** Up to `jobs_max` startable jobs. Each must then start or be parked. */
  scan(context: ReadContext, jobs_max: number): QueueScan
  /** Parks a job whose limit is full. Returns whether another job may start instead. */
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
  /** In flight or quarantined. */
  isInFlight(obj_id: string): boolean
  /** For a bug while reading a job, which stays listed until the next rescan. */
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
  /** Slots freed since the last scan, by limit. */
  const free_slots = new Map<string, number>()
  /** Relisted while in flight: obj_id → its listed time. */
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

  /** Takes as many parked jobs per limit as it has free slots; true if some are left. */
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
        // The clock was set back: the job is listed for later again.
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

  /** Continues the scan; true if more jobs may be due. */
  function scanListed(context: ReadContext, jobs_max: number, due: DueJob[]): boolean {
    const to = outboxKey(context.now_ms + 1, '')
    if (cursor >= to) return false
    const keys = context.view.scan({ from: cursor, to, limit: slice_keys })
    for (const { key } of keys) {
      if (isFull(due, jobs_max)) return true
      cursor = after(key)
      const { obj_id, ms } = outboxOfKey(key)
      // The cursor may have moved back behind a job parked until now.
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

  /** Gives a slot to the next parked job; false if none. */
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
      // It may have got a slot of another limit, which goes to the next job parked there.
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
 * The job of a task, if it may start now; undefined, and still listed, if the process is paused,
 * the task damaged or its node gone.
 */
function dueJobOf(context: ReadContext, obj_id: string): DueJob | undefined {
  const draft = readableTask(context.view, obj_id)
  if (draft === undefined) return undefined
  const { task } = draft
  const { visit, logic_at, at_ms, attempts, conv_id, node_id } = task
  if (task.wait !== 'work' || at_ms > context.now_ms) return undefined
  const process = context.process(conv_id)
  if (process === undefined || process.record.status === 'paused') return undefined
  if (migrationTarget(process, task) !== undefined) return undefined
  const logic = process.graph.nodes.get(node_id)?.logics[logic_at]
  const made = orderOf(context, process, task, logic)
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

/** A handler is called in place of a query, where one is registered. */
function orderOf(
  context: ReadContext,
  process: Process,
  task: TaskRecord,
  logic: Logic | undefined,
): JobOrder | Command | undefined {
  if (logic?.job?.instance !== undefined) {
    const handler = context.engine.handlerName(context.view, process.conv_id, logic.type)
    if (handler !== undefined) return { job: 'handler', handler, is_awaited: true, doc: task.doc }
  }
  return logic?.job?.order(evaluationContextOf(context, process, task))
}

/** The order with its registered handler, or the most specific one. */
function withHandler({ engine, view }: ReadContext, conv_id: string, order: JobOrder): JobOrder {
  if (order.job !== 'handler') return order
  const title = order.handler
  return { ...order, handler: engine.handlerName(view, conv_id, title) ?? `${conv_id}/${title}` }
}
