/**
 * The transactions of the timers, each one bounded slice: fire due timers, run ready tasks, migrate
 * tasks from dropped nodes, remove ended tasks. Also the reads of the next due times.
 */
import {
  dueOf,
  dueUpTo,
  endedOf,
  endedUpTo,
  keysOfType,
  processKey,
  processOfKey,
  taskOfKey,
  tasksAtNode,
  timeOfKey,
} from '../../codec/keys.ts'
import { decodeRecord, encodeRecord, type ProcessRecord } from '../../codec/records.ts'
import type { View } from '../../store/store.ts'
import { enterNode, migrateTask } from '../tasks/advance.ts'
import { advanceReady, saveAndDrain } from '../tasks/run-queue.ts'
import { readableTask, removeEnded, type TaskDraft } from '../tasks/task-store.ts'
import { fail } from '../tasks/transitions.ts'
import type { Process } from '../transactions/catalog.ts'
import { allIn, processesWith } from '../transactions/scans.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { beginOp } from '../transactions/transaction-queue.ts'

export interface DueTimers {
  /** conv_id → its first due time. */
  readonly due: ReadonlyMap<string, number>
  readonly to_migrate: readonly string[]
  readonly oldest_ended_ms: number | undefined
}

/** Reads one due key per active process. */
export function readTimers(view: View): DueTimers {
  const due = new Map<string, number>()
  const to_migrate: string[] = []
  for (const { key, value } of allIn(view, keysOfType('process'))) {
    const conv_id = processOfKey(key)
    const record = decodeRecord<ProcessRecord>(value)
    if (record.status === 'paused') continue
    const first_ms = firstDue(view, conv_id)
    if (first_ms !== undefined) due.set(conv_id, first_ms)
    if (Object.keys(record.moves).length > 0) to_migrate.push(conv_id)
  }
  return { due, to_migrate, oldest_ended_ms: oldestEnded(view) }
}

function firstDue(view: View, conv_id: string): number | undefined {
  const [first] = view.scan({ ...dueOf(conv_id), limit: 1 })
  return first === undefined ? undefined : timeOfKey(first.key).ms
}

/** Fires up to `tasks_max` timers due at `until_ms`; returns the next due time. */
export function fireDue(
  tx: Transaction,
  conv_id: string,
  until_ms: number,
  tasks_max: number,
): number | undefined {
  const process = tx.process(conv_id)
  if (process === undefined || process.record.status === 'paused') return undefined
  const overdue = tx.store.scan({ ...dueUpTo(conv_id, until_ms), limit: tasks_max })
  for (const { key } of overdue) {
    // The rest fires in the next slice.
    if (tx.moves_made >= tx.engine.limits.moves_per_transaction_max) break
    const draft = readableTask(tx.store, taskOfKey(key))
    // Removes a due key without a readable task, so that it does not fire for ever; `check` names
    // the task. An earlier task of this slice may also have changed the key.
    if (draft?.task.due_ms !== timeOfKey(key).ms) {
      tx.store.del(key)
      continue
    }
    beginOp(tx)
    fire(tx, process, draft)
    saveAndDrain(tx, draft)
  }
  return firstDue(tx.store, conv_id)
}

function fire(tx: Transaction, process: Process, draft: TaskDraft): void {
  const { task } = draft
  if (task.wait === 'ready') {
    advanceReady(tx, process, draft)
    return
  }
  task.due_ms = 0
  if (migrateTask(tx, process, draft)) return
  tx.recordCount('timers_fired')
  // The present definition counts.
  const { time_semaphors = [] } = process.graph.nodes.get(task.node_id) ?? {}
  const semaphor = time_semaphors[task.semaphor_at] ?? time_semaphors[0]
  if (semaphor !== undefined) enterNode(tx, process, draft, semaphor.to_node_id, 'timer')
}

/** Fails the first due task of a process with the tag `internal_error`. */
export function quarantineFirstDue(tx: Transaction, conv_id: string): number | undefined {
  const [first] = tx.store.scan({ ...dueUpTo(conv_id, tx.now_ms), limit: 1 })
  const draft = first && readableTask(tx.store, taskOfKey(first.key))
  if (draft !== undefined) {
    fail(tx, draft.task, 'internal_error', 'the engine stumbled on this task')
    saveAndDrain(tx, draft)
  }
  return firstDue(tx.store, conv_id)
}

/** Migrates up to `tasks_max` tasks; true once only damaged ones are left. */
export function migrateSlice(tx: Transaction, conv_id: string, tasks_max: number): boolean {
  const process = tx.process(conv_id)
  if (process === undefined || process.record.status === 'paused') return true
  const dropped = Object.keys(process.record.moves)
  if (dropped.length === 0) return true
  let left = tasks_max
  let moved = 0
  for (const node_id of dropped) {
    for (const { key } of tx.store.scan({ ...tasksAtNode(conv_id, node_id), limit: left })) {
      left--
      const draft = readableTask(tx.store, taskOfKey(key))
      if (draft === undefined) continue
      beginOp(tx)
      if (!migrateTask(tx, process, draft)) continue
      saveAndDrain(tx, draft)
      moved++
      if (tx.moves_made >= tx.engine.limits.moves_per_transaction_max) return false
    }
    if (left === 0) return moved === 0
  }
  if (moved < tasks_max - left) return true
  tx.store.put(processKey(conv_id), encodeRecord({ ...process.record, moves: {} }))
  return true
}

/** Removes up to `tasks_max` tasks ended by `until_ms`; returns the end of the oldest left. */
export function sweepEnded(
  tx: Transaction,
  until_ms: number,
  tasks_max: number,
): number | undefined {
  const { store } = tx
  let left = tasks_max
  for (const conv_id of processesWith(store, 'ended')) {
    for (const { key } of store.scan({ ...endedUpTo(conv_id, until_ms), limit: left })) {
      store.del(key)
      removeEnded(tx, taskOfKey(key))
      left--
    }
    if (left === 0) break
  }
  return oldestEnded(store)
}

function oldestEnded(view: View): number | undefined {
  let oldest_ms: number | undefined
  for (const conv_id of processesWith(view, 'ended')) {
    const [first] = view.scan({ ...endedOf(conv_id), limit: 1 })
    if (first === undefined) continue
    const { ms } = timeOfKey(first.key)
    if (oldest_ms === undefined || ms < oldest_ms) oldest_ms = ms
  }
  return oldest_ms
}
