/**
 * What is due, fired: timers of tasks, tasks that go on in the next transaction, tasks of dropped
 * nodes, and the sweep of ended ones. All of it is data in the store; here is only what comes next.
 *
 * In memory stands one number per process that has due keys: no timer of it rings before that. It
 * is read from the store when opened, lowered by each commit that arms something, and read anew
 * after each firing. One timer of the clock is armed for the smallest. A paused process has no
 * number.
 *
 * Work is done in slices, each a transaction of its own, with the requests of callers in between.
 * Timers fire in due order over all processes, never before their time, overdue ones at once.
 */
import {
  dueOf,
  dueUpTo,
  endedAfter,
  endedOf,
  endedUpTo,
  keysOfType,
  processOfKey,
  taskKey,
  taskOfKey,
  timeOfKey,
} from '../codec/keys.ts'
import { decodeRecord, type ProcessRecord } from '../codec/records.ts'
import type { Clock } from '../core/clock.ts'
import { isStoreGone, isStoreOver } from '../core/faults.ts'
import type { Tx, View } from '../store/store.ts'
import { type Advanced, enterNode } from './advance.ts'
import type { Process } from './catalog.ts'
import { migrateTask } from './migrate.ts'
import { migrateSlice } from './migrate-slice.ts'
import { beginOp, drainRunQueue, resumeReady } from './run-queue.ts'
import { type Draft, loadTask, saveTask } from './task-store.ts'
import type { TransactionContext } from './transaction-context.ts'

export interface TimersOptions {
  readonly clock: Clock
  readonly slice_tasks_max: number
  readonly ended_kept_ms: number
  /** Runs a transaction, with its workspace, and resolves once it is durable and taken over. */
  transact<T>(fn: (context: TransactionContext) => T): Promise<T>
  view<T>(fn: (view: View) => T): Promise<T>
  /** Whether the disk has room for what tasks do; where it has none only ended ones are removed. */
  hasRoom(): boolean
  /** There is a bug. What it stands in the way of is put aside; the others go on. */
  onError(error: unknown): void
}

export interface Timers {
  /** Reads what is due from the store and starts firing. */
  start(): Promise<void>
  /** A commit armed these: conv_id → the earliest due time. */
  noteArmed(armed: ReadonlyMap<string, number>): void
  noteEnded(): void
  /** A process was resumed, or its dropped nodes are to be emptied. */
  noteProcess(conv_id: string): void
  /** Fires no more; resolves when the slice under way is done. */
  stop(): Promise<void>
}

/** So often is looked whether a full disk has room again. */
const full_disk_ms = 1_000

export function newTimers(port: TimersOptions): Timers {
  const due = new Map<string, number>()
  const to_migrate = new Set<string>()
  let sweep_ms = Number.POSITIVE_INFINITY
  let cancel: (() => void) | undefined
  let running: Promise<void> | undefined
  let started = false
  let stopped = false
  /** A full disk has refused something; until then it is left alone. */
  let held_until_ms = 0

  const isHeld = (): boolean => port.clock.now_ms() < held_until_ms || !port.hasRoom()

  const lower = (conv_id: string, due_ms: number): void => {
    if (due_ms < (due.get(conv_id) ?? Number.POSITIVE_INFINITY)) due.set(conv_id, due_ms)
  }

  function arm(): void {
    if (!started || stopped || running !== undefined) return
    cancel?.()
    cancel = undefined
    const moves_ms = to_migrate.size > 0 ? 0 : earliest(due).ms
    const look_ms = port.clock.now_ms() + full_disk_ms
    const first_ms = Math.min(sweep_ms, isHeld() ? Math.max(moves_ms, look_ms) : moves_ms)
    const next_ms = Math.max(first_ms, held_until_ms)
    if (next_ms === Number.POSITIVE_INFINITY) return
    cancel = port.clock.wake_at(next_ms, () => {
      running = runAll()
        .catch((error: unknown) => {
          if (isStoreGone(error) && !isStoreOver(error)) {
            held_until_ms = port.clock.now_ms() + full_disk_ms
            return
          }
          stopped = true
          if (!isStoreOver(error)) port.onError(error)
        })
        .finally(() => {
          running = undefined
          arm()
        })
    })
  }

  async function runAll(): Promise<void> {
    while (!stopped) {
      const [relocating] = to_migrate
      const { conv_id, ms, next_ms } = earliest(due)
      const now_ms = port.clock.now_ms()
      const moves = !isHeld()
      if (moves && relocating !== undefined) await migrateTasks(relocating)
      else if (moves && conv_id !== undefined && ms <= now_ms) await fireSlice(conv_id, next_ms)
      else if (sweep_ms <= now_ms) await sweepSlice()
      else return
    }
  }

  async function fireSlice(conv_id: string, next_ms: number): Promise<void> {
    const due_ms = due.get(conv_id) ?? 0
    due.delete(conv_id)
    const fireUpTo = (tasks_max: number): Promise<number | undefined> =>
      port.transact((context) =>
        fireDue(context, conv_id, Math.min(next_ms, context.now_ms), tasks_max),
      )
    const left_ms = await fireUpTo(port.slice_tasks_max)
      // A task on which the engine itself stumbles is found alone, and put aside as failed.
      .catch((error: unknown) => isolateFault(error, () => fireUpTo(1)))
      .catch((error: unknown) =>
        isolateFault(error, () => port.transact((context) => failFirstDue(context, conv_id))),
      )
      .catch((error: unknown) => {
        lower(conv_id, due_ms)
        throw error
      })
    if (left_ms !== undefined) lower(conv_id, left_ms)
  }

  async function migrateTasks(conv_id: string): Promise<void> {
    const done = await port
      .transact((context) => migrateSlice(context, conv_id, port.slice_tasks_max))
      .catch((error: unknown) => isolateFault(error, async () => true))
    if (done) to_migrate.delete(conv_id)
  }

  /** Goes on another way after a bug, which is told; a store that has failed ends all. */
  function isolateFault<T>(error: unknown, otherwise: () => Promise<T>): Promise<T> {
    if (isStoreGone(error)) throw error
    port.onError(error)
    return otherwise()
  }

  async function sweepSlice(): Promise<void> {
    const swept_ms = sweep_ms
    sweep_ms = Number.POSITIVE_INFINITY
    const oldest_ms = await port
      .transact((context) =>
        sweep(context.tx, context.now_ms - port.ended_kept_ms, port.slice_tasks_max),
      )
      .catch((error: unknown) => {
        sweep_ms = swept_ms
        throw error
      })
    if (oldest_ms !== undefined) sweep_ms = Math.min(sweep_ms, oldest_ms + port.ended_kept_ms)
  }

  return {
    async start() {
      const found = await port.view(readSchedule)
      for (const [conv_id, due_ms] of found.due) lower(conv_id, due_ms)
      for (const conv_id of found.to_relocate) to_migrate.add(conv_id)
      if (found.oldest_ms !== undefined) sweep_ms = found.oldest_ms + port.ended_kept_ms
      started = true
      arm()
    },
    noteArmed(armed) {
      if (armed.size === 0) return
      for (const [conv_id, due_ms] of armed) lower(conv_id, due_ms)
      arm()
    },
    noteEnded() {
      if (sweep_ms !== Number.POSITIVE_INFINITY) return
      sweep_ms = port.clock.now_ms() + port.ended_kept_ms
      arm()
    },
    noteProcess(conv_id) {
      to_migrate.add(conv_id)
      lower(conv_id, 0)
      arm()
    },
    async stop() {
      stopped = true
      cancel?.()
      await running
    },
  }
}

/** The process whose timer is the next, and when the one of any other is. */
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

/** Per active process one look for its first due key; no scan of the file. */
function readSchedule(view: View): {
  due: Map<string, number>
  to_relocate: string[]
  oldest_ms: number | undefined
} {
  const due = new Map<string, number>()
  const to_relocate: string[] = []
  for (const { key, value } of view.scan({ ...keysOfType('process'), limit: Infinity })) {
    const conv_id = processOfKey(key)
    const head = decodeRecord<ProcessRecord>(value)
    if (head.status === 'paused') continue
    const first_ms = firstDue(view, conv_id)
    if (first_ms !== undefined) due.set(conv_id, first_ms)
    if (Object.keys(head.moves).length > 0) to_relocate.push(conv_id)
  }
  return { due, to_relocate, oldest_ms: oldestEnded(view) }
}

function firstDue(view: View, conv_id: string): number | undefined {
  const [first] = view.scan({ ...dueOf(conv_id), limit: 1 })
  return first === undefined ? undefined : timeOfKey(first.key).ms
}

/** Fires what is due up to `until_ms`; answers when the next timer of the process rings. */
export function fireDue(
  context: TransactionContext,
  conv_id: string,
  until_ms: number,
  tasks_max: number,
): number | undefined {
  const process = context.process(conv_id)
  if (process === undefined || process.head.status === 'paused') return undefined
  const overdue = context.tx.scan({ ...dueUpTo(conv_id, until_ms), limit: tasks_max })
  for (const { key } of overdue) {
    // What is left fires in the next slice, so that callers get their turn.
    if (context.moves_made >= context.engine.limits.moves_per_transaction_max) break
    const draft = loadTask(context.tx, taskOfKey(key))
    // A due key without a good task is for `check` to name; it must not ring for ever.
    if (draft === undefined || draft === 'damaged') context.tx.del(key)
    // One before it in this slice may have woken, moved or ended it.
    else if (draft.task.due_ms !== timeOfKey(key).ms) context.tx.del(key)
    else {
      beginOp(context)
      const { keep_ended } = fire(context, process, draft)
      saveTask(context, draft, keep_ended)
      drainRunQueue(context)
    }
  }
  return firstDue(context.tx, conv_id)
}

/** Puts the first due task of a process aside as failed, for retry and cancel. */
function failFirstDue(context: TransactionContext, conv_id: string): number | undefined {
  const [first] = context.tx.scan({ ...dueUpTo(conv_id, context.now_ms), limit: 1 })
  const draft = first && loadTask(context.tx, taskOfKey(first.key))
  if (draft !== undefined && draft !== 'damaged') {
    const { task } = draft
    task.status = 'failed'
    task.details = { tag: 'internal_error', description: 'the engine stumbled on this task' }
    task.wait = 'nothing'
    task.due_ms = 0
    task.at_ms = 0
    saveTask(context, draft)
    drainRunQueue(context)
  }
  return firstDue(context.tx, conv_id)
}

function fire(context: TransactionContext, process: Process, draft: Draft): Advanced {
  const { task } = draft
  if (task.wait === 'ready') return resumeReady(context, process, draft)
  task.due_ms = 0
  const relocated = migrateTask(context, process, draft)
  if (relocated !== undefined) return relocated
  // The semaphor is looked up anew: the definition may have changed since it was armed.
  const { time_semaphors = [] } = process.graph.nodes.get(task.node_id) ?? {}
  const semaphor = time_semaphors[task.semaphor_at] ?? time_semaphors[0]
  if (semaphor === undefined) return { keep_ended: true }
  return enterNode(context, process, draft, semaphor.to_node_id)
}

/**
 * Removes ended tasks that ended at `until_ms` or before, process by process, at most `tasks_max`.
 * Answers when the oldest one left ended.
 */
export function sweep(tx: Tx, until_ms: number, tasks_max: number): number | undefined {
  let left = tasks_max
  for (const conv_id of processesWithEnded(tx)) {
    for (const { key } of tx.scan({ ...endedUpTo(conv_id, until_ms), limit: left })) {
      tx.del(key)
      tx.del(taskKey(taskOfKey(key)))
      left--
    }
    if (left === 0) break
  }
  return oldestEnded(tx)
}

function oldestEnded(view: View): number | undefined {
  let oldest_ms: number | undefined
  for (const conv_id of processesWithEnded(view)) {
    const [first] = view.scan({ ...endedOf(conv_id), limit: 1 })
    if (first === undefined) continue
    const { ms } = timeOfKey(first.key)
    if (oldest_ms === undefined || ms < oldest_ms) oldest_ms = ms
  }
  return oldest_ms
}

/** The processes that have ended tasks, found by leaping from one to the next. */
function processesWithEnded(view: View): string[] {
  const found: string[] = []
  let span = keysOfType('ended')
  for (;;) {
    const [first] = view.scan({ ...span, limit: 1 })
    if (first === undefined) return found
    const { conv } = timeOfKey(first.key)
    found.push(conv)
    span = endedAfter(conv)
  }
}
