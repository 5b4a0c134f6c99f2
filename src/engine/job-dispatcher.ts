/**
 * Work outside the transaction: code, calls and handlers, each begun after the commit that asked
 * for it, at least once. The store lists what is to be done and not before when (family outbox);
 * here is only what is under way, and in engine/job-queue what comes next.
 *
 * The life of a piece of work: a task comes to rest with wait `work` and is listed. When its time
 * has come and there is room, its order is made from the data as it then is, done, and its outcome
 * applied in a transaction, if the task still rests for it in the same node and visit. A failure of
 * the hardware kind is listed again, later; the last one goes the way of the software kind. A crash
 * in between begins the work anew, under the same key.
 *
 * The outcome for a paused process waits here until it is resumed, or is done again if the process
 * ends before.
 */

import type { Clock } from '../core/clock.ts'
import { isStoreGone, isStoreOver } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Task } from '../core/model.ts'
import type { JobOrder, JobOutcome } from '../process/logic.ts'
import { type Advanced, advance } from './advance.ts'
import type { Process } from './catalog.ts'
import { evaluationContextOf } from './evaluation-context.ts'
import { type DueJob, newJobQueue } from './job-queue.ts'
import { migrateTask } from './migrate.ts'
import { beginOp, drainRunQueue } from './run-queue.ts'
import { type Draft, loadTask, saveTask } from './task-store.ts'
import type { ReadContext, TransactionContext } from './transaction-context.ts'

/** What can be ordered, each done by a file of its own. None of them rejects. */
export interface Executors {
  code(order: Extract<JobOrder, { job: 'code' }>): Promise<JobOutcome>
  call(order: Extract<JobOrder, { job: 'call' }>, job: Job): Promise<JobOutcome>
  handler(order: Extract<JobOrder, { job: 'handler' }>, job: Job): Promise<JobOutcome>
  /** How often an order is tried before a failure is final. */
  attemptsMax(order: JobOrder): number
  /** What the order's room is shared with: orders of one lane wait for each other. */
  limitKeys(order: JobOrder, place: string): readonly string[]
  /** Takes a place in each lane of the order, or tells one that is full. */
  acquire(order: JobOrder, place: string): { leave(): void } | { readonly full: string }
  close(): Promise<void>
}

export interface Job {
  readonly task: Task
  /** The same for each try of one piece of work, and for no other. */
  readonly key: string
  readonly signal: AbortSignal
  /** Place of the logic: conv_id, node_id and the logic's number. */
  readonly place: string
}

export interface JobDispatcherOptions {
  readonly clock: Clock
  readonly limits: Limits
  fraction(): number
  transact<T>(fn: (context: TransactionContext) => T): Promise<T>
  /** Whether the disk has room for what comes of more work. */
  hasRoom(): boolean
  /** Reads durable state. */
  read<T>(fn: (context: ReadContext) => T): Promise<T>
  readonly executors: Executors
  onError(error: unknown): void
}

export interface JobDispatcher {
  start(): void
  /** A commit listed work that may begin at this time. */
  note(at_ms: number): void
  /** A process was resumed, or a handler registered: what waited for it is looked at again. */
  noteProcess(): void
  /** Begins nothing more and ends what is under way; it will be begun again when opened next. */
  stop(): Promise<void>
}

const backoff_ms_min = 1_000
/** So often is looked whether a full disk has room again. */
const full_disk_ms = 1_000
const backoff_ms_max = 300_000

export function newJobDispatcher(port: JobDispatcherOptions): JobDispatcher {
  const under_way = new Map<string, AbortController>()
  /** Those whose outcome has met a bug: not done again before the file is opened again. */
  const quarantined = new Set<string>()
  const list = newJobQueue({
    isUnderWay: (obj_id) => under_way.has(obj_id) || quarantined.has(obj_id),
    lanesOf: ({ order, place }) =>
      order.job === 'none' ? [] : port.executors.limitKeys(order, place),
    onError: port.onError,
  })
  /** Outcomes for paused processes, which take up no room. */
  const waiting = new Set<() => void>()
  let resumes = 0
  const running_jobs = new Set<Promise<void>>()
  let cancel: (() => void) | undefined
  let running: Promise<void> | undefined
  let again = false
  let started = false
  let stopped = false

  function pump(): void {
    if (!started || stopped) return
    again = true
    running ??= look()
      .catch((error: unknown) => port.onError(error))
      .finally(() => {
        running = undefined
        if (again) pump()
      })
  }

  /** Begins what may begin now, and sets the clock for what may begin later. */
  async function look(): Promise<void> {
    again = false
    const room = port.limits.jobs_max - (under_way.size - waiting.size)
    if (room <= 0) return
    const now_ms = port.clock.now_ms()
    if (!port.hasRoom()) {
      cancel?.()
      cancel = port.clock.wake_at(now_ms + full_disk_ms, pump)
      return
    }
    const { due, next_ms, more } = await port.read((context) => list.look(context, now_ms, room))
    cancel?.()
    if (next_ms !== undefined) cancel = port.clock.wake_at(next_ms, pump)
    if (stopped) return
    for (const taken of due) begin(taken)
    if (more) again = true
  }

  function begin(taken: DueJob): void {
    const { order, obj_id, visit, logic_at, task, place } = taken
    const entered =
      order.job === 'none' ? { leave: () => {} } : port.executors.acquire(order, place)
    if ('full' in entered) {
      if (list.putBy(taken, entered.full)) again = true
      return
    }
    let left = false
    const leave = (): void => {
      if (left) return
      left = true
      entered.leave()
      list.free(taken)
    }
    const abort = new AbortController()
    const job = { task, key: `${obj_id}-${visit}-${logic_at}`, signal: abort.signal, place }
    under_way.set(obj_id, abort)
    const running_job = run(taken, job, leave)
      .catch((error: unknown) => {
        // A store that failed takes no outcome any more, and a bug would come again at once.
        if (isStoreOver(error)) stopped = true
        else quarantined.add(obj_id)
        port.onError(error)
      })
      .finally(() => {
        leave()
        under_way.delete(obj_id)
        running_jobs.delete(running_job)
        list.end(obj_id)
        pump()
      })
    running_jobs.add(running_job)
  }

  async function run(taken: DueJob, job: Job, leave: () => void): Promise<void> {
    const { order } = taken
    if (order.job === 'none') return finish(taken, undefined, leave)
    const outcome = await doOrder(order, job)
    if (stopped) return
    const is_final =
      outcome.outcome === 'done' ||
      outcome.error_type === 'software' ||
      taken.attempts + 1 >= port.executors.attemptsMax(order)
    return is_final ? finish(taken, outcome, leave) : postpone(taken)
  }

  function doOrder(order: JobOrder, job: Job): Promise<JobOutcome> {
    if (order.job === 'code') return port.executors.code(order)
    return order.job === 'call'
      ? port.executors.call(order, job)
      : port.executors.handler(order, job)
  }

  async function finish(
    taken: DueJob,
    outcome: JobOutcome | undefined,
    leave: () => void,
  ): Promise<void> {
    for (;;) {
      const resumes_before = resumes
      const state = await transact((context) => applyOutcome(context, taken, outcome))
      if (state === 'applied' || stopped) return
      leave()
      // It may have been resumed behind the transaction and before these words.
      if (resumes !== resumes_before) continue
      await new Promise<void>((resolve) => {
        waiting.add(resolve)
        pump()
      })
    }
  }

  function applyWaiting(): void {
    resumes++
    for (const resume of waiting) resume()
    waiting.clear()
  }

  /** What has been done is kept, however long the disk is full. */
  async function transact<T>(fn: (context: TransactionContext) => T): Promise<T> {
    for (;;) {
      try {
        return await port.transact(fn)
      } catch (error) {
        if (stopped || isStoreOver(error) || !isStoreGone(error)) throw error
      }
      const at_ms = port.clock.now_ms() + full_disk_ms
      await new Promise<void>((resolve) => void port.clock.wake_at(at_ms, resolve))
    }
  }

  async function postpone(taken: DueJob): Promise<void> {
    const wait_ms = Math.min(backoff_ms_min * 2 ** taken.attempts, backoff_ms_max)
    const at_ms = port.clock.now_ms() + Math.ceil(wait_ms * (0.5 + port.fraction() / 2))
    await transact((context) => {
      const draft = findWaiting(context, taken)
      if (draft === undefined) return
      draft.task.at_ms = at_ms
      draft.task.attempts++
      saveTask(context, draft)
    })
  }

  return {
    start() {
      started = true
      pump()
    },
    note(at_ms) {
      list.note(at_ms)
      if (at_ms <= port.clock.now_ms()) pump()
      else cancel = rearm(port.clock, cancel, at_ms, pump)
    },
    noteProcess() {
      applyWaiting()
      list.reset()
      pump()
    },
    async stop() {
      stopped = true
      cancel?.()
      for (const abort of under_way.values()) abort.abort()
      applyWaiting()
      await running
      await port.executors.close()
      await Promise.all(running_jobs)
    },
  }
}

/** A second alarm does no harm: a look that finds nothing sets the clock anew. */
function rearm(
  clock: Clock,
  cancel: (() => void) | undefined,
  at_ms: number,
  fn: () => void,
): () => void {
  const cancelThis = clock.wake_at(at_ms, fn)
  return () => {
    cancel?.()
    cancelThis()
  }
}

/** The task, if it still rests for this very piece of work. */
function findWaiting(context: TransactionContext, taken: DueJob): ReturnType<typeof asDraft> {
  const draft = asDraft(loadTask(context.view, taken.obj_id))
  if (draft === undefined) return undefined
  const { task } = draft
  const same = (name: 'visit' | 'logic_at' | 'at_ms'): boolean => task[name] === taken[name]
  return task.wait === 'work' && same('visit') && same('logic_at') && same('at_ms')
    ? draft
    : undefined
}

function asDraft(loaded: ReturnType<typeof loadTask>) {
  return loaded === 'damaged' ? undefined : loaded
}

function applyOutcome(
  context: TransactionContext,
  taken: DueJob,
  outcome: JobOutcome | undefined,
): 'applied' | 'paused' {
  const draft = findWaiting(context, taken)
  const process = draft === undefined ? undefined : context.process(draft.task.conv_id)
  if (draft === undefined || process === undefined) return 'applied'
  if (process.head.status === 'paused') return 'paused'
  beginOp(context)
  const { keep_ended } =
    migrateTask(context, process, draft) ?? goOnWith(context, process, draft, taken, outcome)
  saveTask(context, draft, keep_ended)
  drainRunQueue(context)
  return 'applied'
}

/** A logic that a new definition took away has no command: the task begins its node anew. */
function goOnWith(
  context: TransactionContext,
  process: Process,
  draft: Draft,
  { order, type }: DueJob,
  outcome: JobOutcome | undefined,
): Advanced {
  const { task } = draft
  const found = process.graph.nodes.get(task.node_id)?.logics[task.logic_at]
  const logic = found?.type === type ? found : undefined
  const command =
    order.job === 'none'
      ? order.command
      : outcome &&
        logic?.job?.finish(evaluationContextOf(context, process, task), order.doc, outcome)
  return advance(context, process, draft, command === undefined ? 0 : task.logic_at, command)
}
