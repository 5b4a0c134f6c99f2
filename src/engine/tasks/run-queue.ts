/**
 * The run queue: tasks that an op makes ready run in its transaction, first in first out. Before
 * each, callers whose called task ended without a reply resume; after the last, count semaphors
 * send their signal tasks. A task still ready when the moves are used up has a due key and runs in
 * a later transaction, so the queue is never stored.
 */
import { docOfValue } from '../../codec/json.ts'
import type { Process } from '../transactions/catalog.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { advance, migrateTask } from './advance.ts'
import { resumeUnansweredCallers } from './call-command.ts'
import { readableTask, saveTask, type TaskDraft } from './task-store.ts'
import { startTask } from './transitions.ts'

export function saveAndDrain(tx: Transaction, draft: TaskDraft): void {
  saveTask(tx, draft)
  drainRunQueue(tx)
}

export function drainRunQueue(tx: Transaction): void {
  const { run_queue } = tx
  do {
    resumeUnansweredCallers(tx)
    while (run_queue.length > 0 && tx.moves_left > 0) {
      runTask(tx, run_queue.shift() as string)
      resumeUnansweredCallers(tx)
    }
    // A signal may itself change a number, which later transactions do not compare with this one.
    while (sendSignals(tx));
  } while (run_queue.length > 0 && tx.moves_left > 0)
  if (run_queue.length > 0) run_queue.length = 0
}

function runTask(tx: Transaction, obj_id: string): void {
  const draft = readableTask(tx.view, obj_id)
  if (draft?.task.wait !== 'ready') return
  const process = tx.process(draft.task.conv_id)
  if (process === undefined || process.record.status === 'paused') return
  advanceReady(tx, process, draft)
  saveTask(tx, draft)
}

/** A ready task advances from the logic where it stopped. */
export function advanceReady(tx: Transaction, process: Process, draft: TaskDraft): void {
  const { task } = draft
  task.due_ms = task.at_ms
  task.at_ms = 0
  if (!migrateTask(tx, process, draft)) advance(tx, process, draft, task.logic_at)
}

/**
 * Sends the tasks of count semaphors whose value was reached or left, unless the process is full.
 * Returns whether one was sent.
 */
function sendSignals(tx: Transaction): boolean {
  let has_sent = false
  for (const { conv_id, node_id, before, now } of tx.takeCountChanges()) {
    const process = tx.process(conv_id)
    for (const { value, esc_node_id } of process?.graph.nodes.get(node_id)?.count_semaphors ?? []) {
      const is_reached = before < value && now >= value
      if (!is_reached && !(before >= value && now < value)) continue
      if (!tx.hasRoom(conv_id)) continue
      const doc = docOfValue({ start: is_reached ? 'true' : 'false' })
      const given = { conv_id, ref: undefined, user_id: undefined, doc }
      startTask(tx, given, esc_node_id, tx.chain_moves, 'count')
      has_sent = true
    }
  }
  return has_sent
}
