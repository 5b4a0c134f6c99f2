/**
 * What an op sets off besides its own task: ready tasks go on in the order in which they became so,
 * callers of ended tasks are released, and count semaphors signal, until all is still or the op's
 * moves are used up. What is ready then has a due key and goes on in the next transaction, so
 * nothing here need be remembered.
 */
import type { TaskRecord } from '../codec/task-record.ts'
import { type Advanced, advance } from './advance.ts'
import type { Process } from './catalog.ts'
import { resumeUnansweredCallers, sendSignals } from './effects.ts'
import { migrateTask } from './migrate.ts'
import { type Draft, loadTask, saveTask } from './task-store.ts'
import type { TransactionContext } from './transaction-context.ts'

/**
 * However many ops a request has, it makes no more moves in its transaction than so many of them
 * may; what is left goes on in later ones, with others in between.
 */
const ops_worth_max = 10

/** To be called before each request, which has its moves for itself. */
export function beginRequest(context: TransactionContext): void {
  context.moves_made = 0
  context.shown_bytes = 0
}

/** To be called before each op, so that one cannot use up the moves of the next. */
export function beginOp(context: TransactionContext): void {
  const each_max = context.engine.limits.moves_per_transaction_max
  context.moves_left = Math.min(each_max, each_max * ops_worth_max - context.moves_made)
  context.chain_moves = 0
}

/** To be called after each op. */
export function drainRunQueue(context: TransactionContext): void {
  do {
    resumeUnansweredCallers(context)
    while (context.run_queue.length > 0 && context.moves_left > 0) {
      runReady(context, context.run_queue.shift() as string)
      resumeUnansweredCallers(context)
    }
    sendSignals(context)
  } while (context.run_queue.length > 0 && context.moves_left > 0)
  if (context.run_queue.length > 0) context.run_queue.length = 0
}

function runReady(context: TransactionContext, obj_id: string): void {
  const draft = loadTask(context.view, obj_id)
  if (draft === undefined || draft === 'damaged' || draft.task.wait !== 'ready') return
  const process = context.process(draft.task.conv_id)
  if (process === undefined || process.head.status === 'paused') return
  const { keep_ended } = resumeReady(context, process, draft)
  saveTask(context, draft, keep_ended)
}

/** A ready task goes on where it stopped. */
export function resumeReady(context: TransactionContext, process: Process, draft: Draft): Advanced {
  const { task }: { task: TaskRecord } = draft
  task.due_ms = 0
  return migrateTask(context, process, draft) ?? advance(context, process, draft, task.logic_at)
}
