/**
 * Ends an attempt of a job: applies its outcome or lists it again, if the task still waits for it,
 * and logs it. Handler errors are logged in part; calls with cause, status and host; code, whose
 * texts come from data, with the tag only, and so a query that the database has refused.
 */
import { defined } from '../../core/defined.ts'
import type { EventFields, EventName } from '../../core/event-table.ts'
import type { StatusDetails } from '../../core/model.ts'
import type { JobOrder, JobOutcome } from '../../process/logic.ts'
import { advance, migrateTask } from '../tasks/advance.ts'
import { evaluationContextOf } from '../tasks/evaluation-context.ts'
import { recordEvent } from '../tasks/history.ts'
import { saveAndDrain } from '../tasks/run-queue.ts'
import { readableTask, saveTask, type TaskDraft } from '../tasks/task-store.ts'
import type { Process } from '../transactions/catalog.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { beginOp } from '../transactions/transaction-queue.ts'
import type { Variables } from '../transactions/variables.ts'
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

/** If a new definition has dropped the logic, the node runs again. */
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
      : outcome && logic?.job?.finish(evaluationContextOf(tx, process, task), order, outcome)
  advance(tx, process, draft, command === undefined ? 0 : task.logic_at, command)
}

/** Lists the job for its next attempt; the task keeps this failure until it resumes. */
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
  const draft = readableTask(tx.view, due.obj_id)
  if (draft === undefined) return undefined
  const { wait, visit, logic_at, at_ms } = draft.task
  const is_same = visit === due.visit && logic_at === due.logic_at && at_ms === due.at_ms
  return wait === 'work' && is_same ? draft : undefined
}

const chars_max = 200

type Doable = Exclude<DueJob['order'], { job: 'none' }>

export const failure_events = {
  code: { failed: 'code_failed', repeats: 'code_failed' },
  call: { failed: 'call_gave_up', repeats: 'call_repeats' },
  db: { failed: 'query_failed', repeats: 'query_failed' },
  handler: { failed: 'handler_failed', repeats: 'handler_repeats' },
} as const satisfies Record<Doable['job'], Record<'failed' | 'repeats', EventName>>

export function jobFields({ order, task }: Pick<DueJob, 'order' | 'task'>): EventFields {
  const { conv_id, obj_id, node_id, trace_id } = task
  const what = order.job === 'handler' ? { handler: order.handler } : { job: order.job }
  return { conv_id, obj_id, node_id, ...what, ...defined({ trace_id }) }
}

/** Undefined for a success. An answer that asks for a retry is a failure. */
export function failureFields(
  due: DueJob,
  order: Doable,
  outcome: JobOutcome,
  attempts_max: number,
  variables: Variables,
): EventFields | undefined {
  if (outcome.outcome === 'done' && outcome.may_pass !== true) return undefined
  const fields = {
    ...jobFields(due),
    code: outcome.outcome === 'failed' ? outcome.tag : 'api_bad_answer',
  }
  if (order.job === 'code') return fields
  const attempts = {
    attempt: due.attempts + 1,
    attempts_max: Number.isFinite(attempts_max) ? attempts_max : undefined,
  }
  const shown = (text: string): string => variables.masked(text).slice(0, chars_max)
  const error = outcome.outcome === 'failed' ? shown(outcome.description) : undefined
  if (order.job === 'call') {
    const status = outcome.outcome === 'done' ? outcome.status : outcome.figures?.status
    return { ...fields, ...attempts, error, status, host: hostOf(order) }
  }
  if (order.job === 'db') {
    const is_of_data = outcome.outcome === 'failed' && outcome.error_type === 'software'
    return {
      ...fields,
      ...attempts,
      error: is_of_data ? undefined : error,
      instance: order.instance,
    }
  }
  const thrown_in = outcome.thrown_in && shown(outcome.thrown_in)
  return { ...fields, ...attempts, error, thrown_in }
}

export function detailsOf({ code, error, status }: EventFields): StatusDetails {
  const answered = status === undefined ? '' : `it answered ${status}`
  const text = String(error ?? answered).slice(0, description_chars_max)
  return { tag: String(code), description: text.toWellFormed() }
}

const description_chars_max = 200

function hostOf({ request }: Extract<JobOrder, { job: 'call' }>): string | undefined {
  return URL.canParse(request.url) ? new URL(request.url).host : undefined
}
