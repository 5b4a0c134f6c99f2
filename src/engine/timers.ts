/**
 * The scheduler of timers, of ready tasks left by earlier transactions, of migrations after an
 * import, of the removal of ended tasks, and of schedules. All of that is data in the store
 * (timer-transactions, schedules); this file decides what runs next, and when.
 *
 * In memory each active process with due keys has one number: no timer of it is due earlier. The
 * number is read when the file is opened, lowered by each commit that sets a timer, and read again
 * after each slice. One timer of the clock is set for the smallest number.
 *
 * Each slice is a transaction of its own, between those of callers. Timers fire in due order over
 * all processes, never early; overdue ones fire at once. A task on which the engine throws is
 * quarantined, and the others go on.
 */
import type { Clock } from '../core/clock.ts'
import { isStoreClosed, isStoreUnavailable } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Store } from '../store/store.ts'
import { type Admission, full_disk_ms } from './admission.ts'
import type { DueSchedules } from './schedules.ts'
import {
  fireDue,
  migrateSlice,
  quarantineFirstDue,
  readTimers,
  sweepEnded,
} from './timer-transactions.ts'
import type { TransactionQueue } from './transaction-queue.ts'

export interface TimersOptions {
  readonly clock: Clock
  readonly limits: Limits
  readonly store: Store
  readonly transactions: TransactionQueue
  /** On a full disk only ended tasks are removed. */
  readonly admission: Admission
  readonly schedules: DueSchedules
  /** Called for a bug: an exception that is no Fault. */
  onError(error: unknown): void
}

export interface Timers {
  /** Reads what is due from the store and starts to fire. */
  start(): Promise<void>
  /** After a commit that set timers: conv_id → the earliest due time. */
  onSet(timers: ReadonlyMap<string, number>): void
  /** After a commit that kept an ended task. */
  onEnded(): void
  /** After a process was imported or resumed. */
  onProcessChanged(conv_id: string): void
  /** After a change that may have made a schedule due earlier. */
  onScheduled(): void
  /** Resolves once the slice in flight is done; nothing fires after that. */
  stop(): Promise<void>
}

export function newTimers(options: TimersOptions): Timers {
  const { clock, limits, store, transactions, admission, schedules } = options
  const { slice_tasks_max, ended_kept_ms } = limits
  const due = new Map<string, number>()
  const to_migrate = new Set<string>()
  let sweep_ms = Number.POSITIVE_INFINITY
  let cancel: (() => void) | undefined
  let running: Promise<void> | undefined
  let is_started = false
  let is_stopped = false
  /** A full disk has refused a commit: nothing is tried before this time. */
  let held_until_ms = 0

  const isHeld = (): boolean => clock.now_ms() < held_until_ms || !admission.hasRoom()

  const lower = (conv_id: string, due_ms: number): void => {
    if (due_ms < (due.get(conv_id) ?? Number.POSITIVE_INFINITY)) due.set(conv_id, due_ms)
  }

  function arm(): void {
    if (!is_started || is_stopped || running !== undefined) return
    cancel?.()
    cancel = undefined
    const step_ms = to_migrate.size > 0 ? 0 : Math.min(earliest(due).ms, schedules.earliest_ms())
    const retry_ms = clock.now_ms() + full_disk_ms
    const first_ms = Math.min(sweep_ms, isHeld() ? Math.max(step_ms, retry_ms) : step_ms)
    const next_ms = Math.max(first_ms, held_until_ms)
    if (next_ms === Number.POSITIVE_INFINITY) return
    cancel = clock.wake_at(next_ms, () => {
      running = runAll()
        .catch((error: unknown) => {
          if (isStoreUnavailable(error) && !isStoreClosed(error)) {
            held_until_ms = clock.now_ms() + full_disk_ms
            return
          }
          is_stopped = true
          if (!isStoreClosed(error)) options.onError(error)
        })
        .finally(() => {
          running = undefined
          arm()
        })
    })
  }

  async function runAll(): Promise<void> {
    while (!is_stopped) {
      const [migrating] = to_migrate
      const { conv_id, ms, next_ms } = earliest(due)
      const now_ms = clock.now_ms()
      const may_write = !isHeld()
      const scheduled_ms = schedules.earliest_ms()
      if (may_write && migrating !== undefined) await migrate(migrating)
      else if (may_write && scheduled_ms <= Math.min(ms, now_ms)) await schedules.fire()
      else if (may_write && conv_id !== undefined && ms <= now_ms) await fire(conv_id, next_ms)
      else if (sweep_ms <= now_ms) await sweep()
      else return
    }
  }

  /** Fires timers of a process, up to the first one of any other process. */
  async function fire(conv_id: string, next_ms: number): Promise<void> {
    const due_ms = due.get(conv_id) ?? 0
    due.delete(conv_id)
    const fireUpTo = (tasks_max: number): Promise<number | undefined> =>
      transactions.run((tx) => fireDue(tx, conv_id, Math.min(next_ms, tx.now_ms), tasks_max))
    const left_ms = await fireUpTo(slice_tasks_max)
      // A bug of the engine: the slice is tried again task by task, which finds the task at fault.
      .catch((error: unknown) => isolateFault(error, () => fireUpTo(1)))
      .catch((error: unknown) =>
        isolateFault(error, () => transactions.run((tx) => quarantineFirstDue(tx, conv_id))),
      )
      .catch((error: unknown) => {
        lower(conv_id, due_ms)
        throw error
      })
    if (left_ms !== undefined) lower(conv_id, left_ms)
  }

  async function migrate(conv_id: string): Promise<void> {
    const is_done = await transactions
      .run((tx) => migrateSlice(tx, conv_id, slice_tasks_max))
      .catch((error: unknown) => isolateFault(error, async () => true))
    if (is_done) to_migrate.delete(conv_id)
  }

  /** Reports a bug and continues in another way; a fault of the store is thrown on. */
  function isolateFault<T>(error: unknown, otherwise: () => Promise<T>): Promise<T> {
    if (isStoreUnavailable(error)) throw error
    options.onError(error)
    return otherwise()
  }

  async function sweep(): Promise<void> {
    const swept_ms = sweep_ms
    sweep_ms = Number.POSITIVE_INFINITY
    const oldest_ms = await transactions
      .run((tx) => sweepEnded(tx, tx.now_ms - ended_kept_ms, slice_tasks_max))
      .catch((error: unknown) => {
        sweep_ms = swept_ms
        throw error
      })
    if (oldest_ms !== undefined) sweep_ms = Math.min(sweep_ms, oldest_ms + ended_kept_ms)
  }

  return {
    async start() {
      await schedules.start()
      const found = await store.view(readTimers)
      for (const [conv_id, due_ms] of found.due) lower(conv_id, due_ms)
      for (const conv_id of found.to_migrate) to_migrate.add(conv_id)
      if (found.oldest_ended_ms !== undefined) sweep_ms = found.oldest_ended_ms + ended_kept_ms
      is_started = true
      arm()
    },
    onSet(timers) {
      for (const [conv_id, due_ms] of timers) lower(conv_id, due_ms)
      arm()
    },
    onEnded() {
      if (sweep_ms !== Number.POSITIVE_INFINITY) return
      sweep_ms = clock.now_ms() + ended_kept_ms
      arm()
    },
    onProcessChanged(conv_id) {
      to_migrate.add(conv_id)
      lower(conv_id, 0)
      schedules.onProcessChanged(conv_id)
      arm()
    },
    onScheduled: arm,
    async stop() {
      is_stopped = true
      cancel?.()
      await running
    },
  }
}

/** The process whose timer is due first, and when the first timer of any other is due. */
function earliest(due: ReadonlyMap<string, number>): {
  conv_id: string | undefined
  ms: number
  next_ms: number
} {
  let conv_id: string | undefined
  let ms = Number.POSITIVE_INFINITY
  let next_ms = Number.POSITIVE_INFINITY
  for (const [one, due_ms] of due) {
    if (due_ms < ms) {
      next_ms = ms
      ms = due_ms
      conv_id = one
    } else if (due_ms < next_ms) next_ms = due_ms
  }
  return { conv_id, ms, next_ms }
}
