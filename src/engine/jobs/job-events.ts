/**
 * The log events of a job: its task, its node and how it failed. A handler's error is logged in
 * part; of a call the cause, status and host; of code, whose texts are made from data, only the
 * tag.
 */
import type { EventFields, EventName } from '../../core/event-table.ts'
import type { StatusDetails } from '../../core/model.ts'
import type { JobOrder, JobOutcome } from '../../process/logic.ts'
import type { Variables } from '../transactions/variables.ts'
import type { DueJob } from './job-queue.ts'

const chars_max = 200

type Doable = Exclude<DueJob['order'], { job: 'none' }>

/** The events of a failure: the last one where the task goes on, and one that is tried again. */
export const failure_events = {
  code: { failed: 'code_failed', repeats: 'code_failed' },
  call: { failed: 'call_gave_up', repeats: 'call_repeats' },
  handler: { failed: 'handler_failed', repeats: 'handler_repeats' },
} as const satisfies Record<Doable['job'], Record<'failed' | 'repeats', EventName>>

export function jobFields({ order, task }: Pick<DueJob, 'order' | 'task'>): EventFields {
  const { conv_id, obj_id, node_id, trace_id } = task
  const what = order.job === 'handler' ? { handler: order.handler } : { job: order.job }
  return { conv_id, obj_id, node_id, ...what, ...(trace_id === undefined ? {} : { trace_id }) }
}

/** Undefined where it has not failed. An answer that asks for another attempt is a failure. */
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
  const told = (text: string): string => variables.masked(text).slice(0, chars_max)
  const error = outcome.outcome === 'failed' ? told(outcome.description) : undefined
  if (order.job === 'call') {
    const status = outcome.outcome === 'done' ? outcome.status : outcome.figures?.status
    return { ...fields, ...attempts, error, status, host: hostOf(order) }
  }
  const thrown_in = outcome.thrown_in && told(outcome.thrown_in)
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
