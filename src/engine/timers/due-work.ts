/**
 * Decides which work is due next: timers, ready tasks of earlier transactions, schedules,
 * migrations after an import, and removal of ended tasks. All of it is data in the store;
 * background takes the steps.
 *
 * Memory holds one lower bound for each active process with due keys, read at the open, lowered by
 * commits that set a timer, and read again after each step. Timers and schedules fire in due order
 * over all processes, never early, overdue ones at once. A task on which the engine throws is
 * quarantined.
 */
import { isStoreUnavailable } from '../../core/faults.ts'
import type { DueSchedules } from '../schedules/schedules.ts'
import type { Work } from '../transactions/background.ts'
import type { Parts } from '../transactions/parts.ts'
import {
  fireDue,
  migrateSlice,
  quarantineFirstDue,
  readTimers,
  sweepEnded,
} from './timer-transactions.ts'

export interface Timers {
  readonly works: readonly Work[]
  /** Reads all due times from the store. */
  read(): Promise<void>
  /** The earliest due timer or schedule, including those firing. */
  overdue_ms(): number | undefined
  /** After a commit that set timers: conv_id → the earliest due time. */
  onSet(timers: ReadonlyMap<string, number>): void
  onEnded(): void
  onProcessChanged(conv_id: string): void
}

export function newTimers(parts: Parts, schedules: DueSchedules): Timers {
  const { clock, limits, store, transactions, wake } = parts
  const { slice_tasks_max, ended_kept_ms } = limits
  const due = new Map<string, number>()
  const to_migrate = new Set<string>()
  let sweep_ms = Number.POSITIVE_INFINITY
  let firing_ms = 0

  const lower = (conv_id: string, due_ms: number): void => {
    if (due_ms < (due.get(conv_id) ?? Number.POSITIVE_INFINITY)) due.set(conv_id, due_ms)
  }

  async function fireEarliest(): Promise<void> {
    const { conv_id, ms, next_ms } = earliest(due)
    if (conv_id === undefined || schedules.earliest_ms() <= ms) return schedules.fire()
    return fire(conv_id, next_ms)
  }

  /** Fires timers of a process, up to the first one of any other process. */
  async function fire(conv_id: string, next_ms: number): Promise<void> {
    const due_ms = due.get(conv_id) ?? 0
    due.delete(conv_id)
    firing_ms = due_ms
    const fireUpTo = (tasks_max: number): Promise<number | undefined> =>
      transactions.run((tx) => fireDue(tx, conv_id, Math.min(next_ms, tx.now_ms), tasks_max))
    const left_ms = await fireUpTo(slice_tasks_max)
      // A bug: the slice is retried task by task, to find the task at fault.
      .catch((error: unknown) => isolateFault(error, () => fireUpTo(1)))
      .catch((error: unknown) =>
        isolateFault(error, () => transactions.run((tx) => quarantineFirstDue(tx, conv_id))),
      )
      .catch((error: unknown) => {
        lower(conv_id, due_ms)
        throw error
      })
      .finally(() => {
        firing_ms = 0
      })
    if (left_ms !== undefined) lower(conv_id, left_ms)
  }

  async function migrate(): Promise<void> {
    const [conv_id = ''] = to_migrate
    // Before the step: a concurrent import adds it again.
    to_migrate.delete(conv_id)
    const is_done = await transactions
      .run((tx) => migrateSlice(tx, conv_id, slice_tasks_max))
      .catch((error: unknown) => isolateFault(error, async () => true))
      .catch((error: unknown) => {
        to_migrate.add(conv_id)
        throw error
      })
    if (!is_done) to_migrate.add(conv_id)
  }

  /** Reports a bug and continues with `otherwise`; rethrows a fault of the store. */
  function isolateFault<T>(error: unknown, otherwise: () => Promise<T>): Promise<T> {
    if (isStoreUnavailable(error)) throw error
    parts.onBug(error)
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
    works: [
      { due_ms: () => (to_migrate.size > 0 ? 0 : Number.POSITIVE_INFINITY), step: migrate },
      { due_ms: () => Math.min(earliest(due).ms, schedules.earliest_ms()), step: fireEarliest },
      { due_ms: () => sweep_ms, step: sweep, frees_room: true },
    ],
    async read() {
      await schedules.read()
      const found = await store.view(readTimers)
      for (const [conv_id, due_ms] of found.due) lower(conv_id, due_ms)
      for (const conv_id of found.to_migrate) to_migrate.add(conv_id)
      if (found.oldest_ended_ms !== undefined) sweep_ms = found.oldest_ended_ms + ended_kept_ms
    },
    overdue_ms() {
      const now_ms = clock.now_ms()
      // 0: not known yet when the first one is due.
      const all = [firing_ms, schedules.earliest_ms(), ...due.values()]
      const overdue = all.filter((ms) => ms > 0 && ms < now_ms)
      return overdue.length === 0 ? undefined : overdue.reduce((one, other) => Math.min(one, other))
    },
    onSet(timers) {
      for (const [conv_id, due_ms] of timers) lower(conv_id, due_ms)
      wake()
    },
    onEnded() {
      if (sweep_ms !== Number.POSITIVE_INFINITY) return
      sweep_ms = clock.now_ms() + ended_kept_ms
      wake()
    },
    onProcessChanged(conv_id) {
      to_migrate.add(conv_id)
      lower(conv_id, 0)
      schedules.onProcessChanged(conv_id)
      wake()
    },
  }
}

/** The process whose timer is due first, and when any other's is. */
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
