/**
 * What an op sets off besides its own task: ready tasks go on in the order in which they became so,
 * callers of ended tasks are released, and count semaphors signal, until all is still or the op's
 * moves are used up. What is ready then has a due key and goes on in the next transaction, so
 * nothing here need be remembered.
 */
import type { TaskRecord } from '../codec/task-record.ts'
import { type Walked, walkFrom } from './advance.ts'
import type { Process } from './catalog.ts'
import { releaseOrphans, sendSignals } from './effects.ts'
import { relocate } from './migrate.ts'
import { type Draft, loadTask, saveTask } from './task-store.ts'
import type { Work } from './transaction-context.ts'

/**
 * However many ops a request has, it makes no more moves in its transaction than so many of them
 * may; what is left goes on in later ones, with others in between.
 */
const ops_worth_max = 10

/** To be called before each request, which has its moves for itself. */
export function beginRequest(work: Work): void {
  work.moves_made = 0
  work.shown_bytes = 0
}

/** To be called before each op, so that one cannot use up the moves of the next. */
export function beginOp(work: Work): void {
  const each_max = work.shared.limits.moves_per_transaction_max
  work.moves_left = Math.min(each_max, each_max * ops_worth_max - work.moves_made)
  work.chain_moves = 0
}

/** To be called after each op. */
export function settle(work: Work): void {
  do {
    releaseOrphans(work)
    while (work.agenda.length > 0 && work.moves_left > 0) {
      runReady(work, work.agenda.shift() as string)
      releaseOrphans(work)
    }
    sendSignals(work)
  } while (work.agenda.length > 0 && work.moves_left > 0)
  if (work.agenda.length > 0) work.agenda.length = 0
}

function runReady(work: Work, obj_id: string): void {
  const draft = loadTask(work.view, obj_id)
  if (draft === undefined || draft === 'damaged' || draft.task.wait !== 'ready') return
  const process = work.process(draft.task.conv_id)
  if (process === undefined || process.head.status === 'paused') return
  const { keep_ended } = goOn(work, process, draft)
  saveTask(work, draft, keep_ended)
}

/** A ready task goes on where it stopped. */
export function goOn(work: Work, process: Process, draft: Draft): Walked {
  const { task }: { task: TaskRecord } = draft
  task.due_ms = 0
  return relocate(work, process, draft) ?? walkFrom(work, process, draft, task.logic_at)
}
