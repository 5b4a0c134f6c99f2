/**
 * The run queue: tasks that an op makes ready run in the transaction of the op, first in first out.
 * Before each of them, callers whose called task has ended without a reply are resumed; after the
 * last one, count semaphores send their signal tasks.
 *
 * An op has a budget of moves. A task that is still ready when the budget is used up has a due key,
 * and runs in a later transaction; so nothing of the queue need be kept.
 */
import { docOfValue } from '../codec/json.ts'
import { advance } from './advance.ts'
import { resumeUnansweredCallers } from './call-command.ts'
import type { Process } from './catalog.ts'
import { migrateTask } from './migrate.ts'
import { type Draft, loadTask, newTask, saveTask } from './task-store.ts'
import type { TransactionContext } from './transaction-context.ts'
import { startTask } from './transitions.ts'

/** A request has the moves of this many ops in one transaction. */
const full_budgets_max = 10

/** Called before each request. */
export function beginRequest(context: TransactionContext): void {
  context.moves_made = 0
  context.shown_bytes = 0
}

/** Called before each op, so that an op cannot use up the moves of the next. */
export function beginOp(context: TransactionContext): void {
  const each_max = context.engine.limits.moves_per_transaction_max
  context.moves_left = Math.min(each_max, each_max * full_budgets_max - context.moves_made)
  context.chain_moves = 0
}

/** Saves the task that has been changed, and runs the tasks that this has made ready. */
export function saveAndDrain(context: TransactionContext, draft: Draft): void {
  saveTask(context, draft)
  drainRunQueue(context)
}

/** Called after each op. */
export function drainRunQueue(context: TransactionContext): void {
  const { run_queue } = context
  do {
    resumeUnansweredCallers(context)
    while (run_queue.length > 0 && context.moves_left > 0) {
      runTask(context, run_queue.shift() as string)
      resumeUnansweredCallers(context)
    }
    sendSignals(context)
  } while (run_queue.length > 0 && context.moves_left > 0)
  if (run_queue.length > 0) run_queue.length = 0
}

function runTask(context: TransactionContext, obj_id: string): void {
  const draft = loadTask(context.view, obj_id)
  if (draft === undefined || draft === 'damaged' || draft.task.wait !== 'ready') return
  const process = context.process(draft.task.conv_id)
  if (process === undefined || process.head.status === 'paused') return
  advanceReady(context, process, draft)
  saveTask(context, draft)
}

/** A ready task advances from the logic where it stopped. */
export function advanceReady(context: TransactionContext, process: Process, draft: Draft): void {
  const { task } = draft
  task.due_ms = 0
  if (!migrateTask(context, process, draft)) advance(context, process, draft, task.logic_at)
}

/** A count semaphore sends a task as the number of tasks in its node reaches or leaves a value. */
function sendSignals(context: TransactionContext): void {
  for (const { conv_id, node_id, before, now } of context.takeCountChanges()) {
    const process = context.process(conv_id)
    for (const { value, esc_node_id } of process?.graph.nodes.get(node_id)?.count_semaphors ?? []) {
      const is_reached = before < value && now >= value
      if (!is_reached && !(before >= value && now < value)) continue
      const doc = docOfValue({ start: is_reached ? 'true' : 'false' })
      const draft = newTask(context, { conv_id, ref: undefined, user_id: undefined, doc })
      startTask(context, draft, esc_node_id, context.chain_moves)
    }
  }
}
