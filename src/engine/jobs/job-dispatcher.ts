/**
 * Dispatches jobs (code, calls, queries, handlers) to their executors, each at least once, after
 * the commit that listed it. The outbox lists open jobs with their start times, job-queue picks the
 * next one, and this file tracks those in flight.
 *
 * The order is made when the job starts; the outcome is applied in a transaction if the task still
 * waits for this job. A temporary failure is listed again while attempts are left; a crash restarts
 * the job under the same key. A call that waits too long for a slot fails unmade. The outcome for a
 * paused process waits in memory. A job whose outcome makes the engine throw is quarantined until
 * the next open. A drain starts no job, waits for those in flight, aborts them and waits shortly
 * again; an aborted job that fails stays listed.
 */
import { keepAlive, newAlarm, nextTurn, within } from '../../core/clock.ts'
import type { JobResult } from '../../core/counters.ts'
import type { EventFields } from '../../core/event-table.ts'
import { isStoreClosed, isStoreUnavailable } from '../../core/faults.ts'
import type { StatusDetails, Task } from '../../core/model.ts'
import type { Span, TraceContext } from '../../core/tracing.ts'
import type { JobOrder, JobOutcome, JobRetry } from '../../process/logic.ts'
import type { Traces } from '../requests/traces.ts'
import { full_disk_ms } from '../transactions/admission.ts'
import type { Parts } from '../transactions/parts.ts'
import { newReadContext, type TaskFailure, type Transaction } from '../transactions/transaction.ts'
import { type DueJob, newJobQueue } from './job-queue.ts'
import {
  applyOutcome,
  detailsOf,
  failure_events,
  failureFields,
  jobFields,
  listAgain,
} from './job-transactions.ts'

/** They never reject. */
export interface Executors {
  code(order: Extract<JobOrder, { job: 'code' }>, job: Job): Promise<JobOutcome>
  call(order: Extract<JobOrder, { job: 'call' }>, job: Job): Promise<JobOutcome>
  db(order: Extract<JobOrder, { job: 'db' }>, job: Job): Promise<JobOutcome>
  handler(order: Extract<JobOrder, { job: 'handler' }>, job: Job): Promise<JobOutcome>
  retryOf(order: JobOrder): JobRetry
  /** Calls may reach URLs with this prefix, although their address is not public. */
  allowCalls(url_start: string): void
  /** The concurrency limits that an order counts against. */
  limitKeys(order: JobOrder, logic_key: string): readonly string[]
  /** Takes a slot of each limit, or names one that is full. */
  acquire(order: JobOrder, logic_key: string): { release(): void } | { readonly full: string }
  close(): Promise<void>
}

export interface Job {
  readonly task: Task
  /** The same for each attempt of one job only. */
  readonly key: string
  readonly signal: AbortSignal
  /** Identifies the logic: conv_id, node_id and number in the node. */
  readonly logic_key: string
  readonly trace?: TraceContext | undefined
}

export interface JobDispatcher {
  start(): void
  onListed(at_ms: number): void
  onProcessChanged(): void
  /** Fields of the failed job for the task's failure event; taken once, after the commit. */
  failureOf(task: TaskFailure): EventFields | undefined
  /** `waiting`: due jobs that lack a slot or have a paused process. */
  counts(): { readonly in_flight: number; readonly waiting: number }
  /** Whether a job is sought or runs, except for paused processes. */
  isBusy(): boolean
  /**
   * Starts no more jobs; resolves once those in flight are done, or shortly after `drain_ms_max`.
   * The rest restarts at the next open.
   */
  drain(): Promise<void>
}

const backoff_ms_max = 300_000
const aborted_ms_max = 1_000

const expired_call = expired(
  'api_expire_query',
  'Expire task to API, please check your api for correct answer, ' +
    'or increase max_threads for connections',
)
const expired_query = expired(
  'db_call_expire_query',
  'it has waited too long for a connection of its database; raise `max` of the instance',
)

function expired(tag: string, description: string): JobOutcome {
  return { outcome: 'failed', error_type: 'hardware', tag, description }
}

/** A job in flight, and its failure until logged. */
interface Flight {
  readonly due: DueJob
  abort(): void
  failure: EventFields | undefined
}

export function newJobDispatcher(
  parts: Parts,
  executors: Executors,
  traces: Traces | undefined,
): JobDispatcher {
  const { clock, limits, store, engine, transactions, admission, emit, counters } = parts
  const onThrown = (error: unknown): void => {
    if (!isStoreUnavailable(error)) parts.onBug(error)
  }
  const in_flight = new Map<string, Flight>()
  const quarantined = new Set<string>()
  const queue = newJobQueue({
    limits,
    isInFlight: (obj_id) => in_flight.has(obj_id) || quarantined.has(obj_id),
    limitsOf: ({ order, logic_key }) =>
      order.job === 'none' ? [] : executors.limitKeys(order, logic_key),
    onBug: onThrown,
  })
  /** Their outcome waits for a paused process; they hold no slot. */
  const paused_jobs = new Set<() => void>()
  let resumes = 0
  const running_jobs = new Set<Promise<void>>()
  const alarm = newAlarm(clock, dispatch)
  let dispatching: Promise<void> | undefined
  let is_due_again = false
  let is_started = false
  let is_draining = false
  let is_stopped = false

  function dispatch(): void {
    if (!is_started || is_draining || is_stopped) return
    is_due_again = true
    dispatching ??= startDue()
      .catch(onThrown)
      .finally(() => {
        dispatching = undefined
        if (is_due_again) dispatch()
      })
  }

  async function startDue(): Promise<void> {
    is_due_again = false
    const jobs_max = limits.jobs_max - (in_flight.size - paused_jobs.size)
    if (jobs_max <= 0) return
    const now_ms = clock.now_ms()
    if (!admission.hasRoom()) {
      return alarm.ringBy(now_ms + full_disk_ms)
    }
    const { due, next_ms, has_more } = await store.view((view) =>
      queue.scan(newReadContext(view, engine, now_ms), jobs_max),
    )
    if (next_ms !== undefined) alarm.ringBy(next_ms)
    if (is_draining || is_stopped) return
    for (const job of due) start(job)
    if (!has_more) return
    is_due_again = true
    await nextTurn()
  }

  function start(due: DueJob): void {
    const { order, obj_id, visit, logic_at, task, logic_key, is_expired } = due
    const acquired =
      order.job === 'none' || is_expired
        ? { release: () => {} }
        : executors.acquire(order, logic_key)
    if ('full' in acquired) {
      if (queue.park(due, acquired.full)) is_due_again = true
      return
    }
    let is_released = is_expired
    const release = (): void => {
      if (is_released) return
      is_released = true
      acquired.release()
      queue.release(due)
    }
    const abort = new AbortController()
    const job = { task, key: `${obj_id}-${visit}-${logic_at}`, signal: abort.signal, logic_key }
    const flight: Flight = { due, abort: () => abort.abort(), failure: undefined }
    in_flight.set(obj_id, flight)
    const running_job = run(flight, job, release)
      .catch((error: unknown) => {
        // A failed store takes no more outcomes; a bug would repeat at once.
        if (isStoreClosed(error)) is_stopped = true
        else quarantined.add(obj_id)
        onThrown(error)
      })
      .finally(() => {
        release()
        in_flight.delete(obj_id)
        running_jobs.delete(running_job)
        queue.onEnded(obj_id)
        dispatch()
      })
    running_jobs.add(running_job)
  }

  async function run(flight: Flight, job: Job, release: () => void): Promise<void> {
    const { due } = flight
    const { order } = due
    if (order.job === 'none') return finish(due, undefined, release)
    const span = due.is_expired ? undefined : traces?.beginJob(due)
    const traced = span === undefined ? job : { ...job, trace: span.context }
    const expired_outcome = order.job === 'db' ? expired_query : expired_call
    const outcome = due.is_expired ? expired_outcome : await execute(order, traced, span)
    if (span !== undefined) traces?.endJob(span, outcome)
    if (is_stopped || (job.signal.aborted && outcome.outcome === 'failed')) {
      counters.countJob(order.job, 'aborted')
      return
    }
    const { attempts_max, backoff_ms } = executors.retryOf(order)
    const is_final = outcome.may_pass !== true || due.attempts + 1 >= attempts_max
    counters.countJob(order.job, due.is_expired ? 'expired' : resultOf(outcome, is_final))
    const failure = failureFields(due, order, outcome, attempts_max, engine.variables)
    const { failed, repeats } = failure_events[order.job]
    if (!is_final) {
      if (failure !== undefined) emit(repeats, failure)
      return postpone(due, backoff_ms, failure && detailsOf(failure))
    }
    flight.failure = failure
    await finish(due, outcome, release, span)
    if (flight.failure !== undefined) emit(failed, flight.failure)
  }

  function execute(order: JobOrder, job: Job, span: Span | undefined): Promise<JobOutcome> {
    if (order.job === 'code') return executors.code(order, job)
    if (order.job === 'call') return executors.call(order, job)
    if (order.job === 'db') return executors.db(order, job)
    if (traces === undefined) return executors.handler(order, job)
    return traces.under(span, () => executors.handler(order, job))
  }

  async function finish(
    due: DueJob,
    outcome: JobOutcome | undefined,
    release: () => void,
    span?: Span,
  ): Promise<void> {
    for (;;) {
      const resumes_before = resumes
      const state = await transact((tx) => {
        tx.cause = span?.context
        return applyOutcome(tx, due, outcome)
      })
      if (state === 'applied') return
      if (is_draining) {
        emit('job_postponed', jobFields(due))
        return
      }
      release()
      // The process may have been resumed since the transaction.
      if (resumes !== resumes_before) continue
      await new Promise<void>((resolve) => {
        paused_jobs.add(resolve)
        dispatch()
      })
    }
  }

  function resumePaused(): void {
    resumes++
    for (const resume of paused_jobs) resume()
    paused_jobs.clear()
  }

  /** Retries while the disk is full, so that no outcome is lost. */
  async function transact<T>(change: (tx: Transaction) => T): Promise<T> {
    for (;;) {
      try {
        return await transactions.run(change)
      } catch (error) {
        if (is_stopped || isStoreClosed(error) || !isStoreUnavailable(error)) throw error
      }
      const at_ms = clock.now_ms() + full_disk_ms
      await new Promise<void>((resolve) => void clock.wake_at(at_ms, resolve))
    }
  }

  /** Lists the job again, after exponential backoff with jitter. */
  async function postpone(
    due: DueJob,
    backoff_ms: number,
    failure: StatusDetails | undefined,
  ): Promise<void> {
    const wait_ms = Math.min(backoff_ms * 2 ** due.attempts, backoff_ms_max)
    const at_ms = clock.now_ms() + Math.ceil(wait_ms * (0.5 + engine.fraction() / 2))
    await transact((tx) => listAgain(tx, due, at_ms, failure))
  }

  return {
    start() {
      is_started = true
      dispatch()
    },
    onListed(at_ms) {
      queue.onListed(at_ms)
      if (at_ms <= clock.now_ms()) dispatch()
      else if (!is_draining) alarm.ringBy(at_ms)
    },
    onProcessChanged() {
      resumePaused()
      queue.rescan()
      dispatch()
    },
    failureOf({ obj_id, node_id }) {
      const flight = in_flight.get(obj_id)
      if (flight?.due.task.node_id !== node_id) return undefined
      const { failure } = flight
      flight.failure = undefined
      return failure
    },
    counts: () => ({
      in_flight: in_flight.size - paused_jobs.size,
      waiting: queue.parked() + paused_jobs.size,
    }),
    isBusy: () => dispatching !== undefined || in_flight.size > paused_jobs.size,
    async drain() {
      is_draining = true
      alarm.clear()
      resumePaused()
      await dispatching
      const ended = Promise.all(running_jobs)
      const release = keepAlive()
      if ((await within(clock, limits.drain_ms_max, ended)) === 'late') {
        for (const { due, abort } of in_flight.values()) {
          emit('job_aborted', jobFields(due))
          abort()
        }
        if (limits.drain_ms_max > 0) await within(clock, aborted_ms_max, ended)
      }
      is_stopped = true
      await executors.close()
      release()
    },
  }
}

function resultOf({ outcome, may_pass }: JobOutcome, is_final: boolean): JobResult {
  if (outcome !== 'failed') return 'done'
  if (!is_final) return 'repeated'
  return may_pass === true ? 'gave_up' : 'failed'
}
