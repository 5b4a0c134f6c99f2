/**
 * The transactions of jobs: apply an outcome, or list the job again for a later attempt. Both
 * change the task only if it still waits for this job.
 */
import type { StatusDetails } from '../../core/model.ts'
import type { JobOutcome } from '../../process/logic.ts'
import { advance, migrateTask } from '../tasks/advance.ts'
import { evaluationContextOf } from '../tasks/evaluation-context.ts'
import { recordEvent } from '../tasks/history.ts'
import { saveAndDrain } from '../tasks/run-queue.ts'
import { loadTask, saveTask, type TaskDraft } from '../tasks/task-store.ts'
import type { Process } from '../transactions/catalog.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { beginOp } from '../transactions/transaction-queue.ts'
import type { DueJob } from './job-queue.ts'

export function applyOutcome(
  tx: Transaction,
  due: DueJob,
  outcome: JobOutcome | undefined,
): 'applied' | 'paused' {
  const draft = findWaiting(tx, due)
  const process = draft === undefined ? undefined : tx.process(draft.task.conv_id)
  if (draft === undefined || process === undefined) return 'applied'
  if (process.record.status === 'paused') return 'paused'
  beginOp(tx)
  if (!migrateTask(tx, process, draft)) advanceWith(tx, process, draft, due, outcome)
  saveAndDrain(tx, draft)
  return 'applied'
}

/** Advances by the outcome. If a new definition has dropped the logic, the node runs again. */
function advanceWith(
  tx: Transaction,
  process: Process,
  draft: TaskDraft,
  { order, type }: DueJob,
  outcome: JobOutcome | undefined,
): void {
  const { task } = draft
  if (order.job !== 'none' && outcome !== undefined) recordEvent(tx, task, order.job)
  const found = process.graph.nodes.get(task.node_id)?.logics[task.logic_at]
  const logic = found?.type === type ? found : undefined
  const command =
    order.job === 'none'
      ? order.command
      : outcome && logic?.job?.finish(evaluationContextOf(tx, process, task), order.doc, outcome)
  advance(tx, process, draft, command === undefined ? 0 : task.logic_at, command)
}

/** Lists the job for its next attempt; the task keeps how this one failed until it goes on. */
export function listAgain(
  tx: Transaction,
  due: DueJob,
  at_ms: number,
  failure: StatusDetails | undefined,
): void {
  const draft = findWaiting(tx, due)
  if (draft === undefined) return
  draft.task.at_ms = at_ms
  draft.task.attempts++
  draft.task.details = failure
  saveTask(tx, draft)
}

function findWaiting(tx: Transaction, due: DueJob): TaskDraft | undefined {
  const draft = loadTask(tx.view, due.obj_id)
  if (draft === undefined || draft === 'damaged') return undefined
  const { wait, visit, logic_at, at_ms } = draft.task
  const is_same = visit === due.visit && logic_at === due.logic_at && at_ms === due.at_ms
  return wait === 'work' && is_same ? draft : undefined
}
