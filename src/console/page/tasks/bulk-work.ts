/**
 * A bulk action: counts first, then works in calls of about a second each, between which it may be
 * stopped. A stopped job can be resumed, also from another page, because the engine keeps it.
 */
import { signal } from '@preact/signals'
import type { BulkAction, BulkJob } from '../../../engine/api/search-api.ts'
import type { BecameCounts, Bulk, WorkedJob } from '../../server/messages.ts'
import { countText } from '../parts/texts.ts'
import type { Call } from './list.ts'

export interface BulkState {
  readonly step: 'counting' | 'counted' | 'running' | 'stopped' | 'done'
  /** Tasks counted so far; undefined where a job goes on that was counted before. */
  readonly counted?: number
  readonly job?: BulkJob
  /** Of the tasks that this page has retried. */
  readonly became?: BecameCounts
  readonly fault?: unknown
}

const none_became: BecameCounts = { ended: 0, waiting: 0, failed: 0, running: 0 }

function sumOf(one: BecameCounts, other: BecameCounts): BecameCounts {
  return {
    ended: one.ended + other.ended,
    waiting: one.waiting + other.waiting,
    failed: one.failed + other.failed,
    running: one.running + other.running,
  }
}

/** `3 ended, 4 wait, 5 failed again`, and how many are still under way. */
export function becameText({ ended, waiting, failed, running }: BecameCounts): string {
  const counts = [
    `${countText(ended)} ended`,
    `${countText(waiting)} ${waiting === 1 ? 'waits' : 'wait'}`,
    `${countText(failed)} failed again`,
  ]
  const more =
    running === 0 ? [] : [`${countText(running)} still ${running === 1 ? 'runs' : 'run'}`]
  return [...counts, ...more].join(', ')
}

export type BulkWork = ReturnType<typeof newBulkWork>

export function newBulkWork(call: Call, job?: BulkJob) {
  const state = signal<BulkState>(
    job === undefined ? { step: 'counting', counted: 0 } : { step: 'stopped', job },
  )
  let has_stopped = false

  async function count(bulk: Bulk): Promise<void> {
    has_stopped = false
    state.value = { step: 'counting', counted: 0 }
    try {
      let cursor: string | undefined
      do {
        const from = cursor === undefined ? {} : { cursor }
        const found: BulkJob = await call('bulk_count', { ...bulk, ...from })
        const counted = (state.value.counted ?? 0) + found.matched
        cursor = found.cursor
        const is_done = found.is_done || cursor === undefined || has_stopped
        state.value = { step: is_done ? 'counted' : 'counting', counted }
        if (is_done) return
      } while (!has_stopped)
    } catch (fault) {
      state.value = { ...state.value, step: 'counted', fault }
    }
  }

  function add({ became, ...job }: WorkedJob): void {
    const { became: before = none_became } = state.value
    state.value = { ...state.value, job, ...(became && { became: sumOf(before, became) }) }
  }

  /** Works until it is done, stopped or refused; a job that has begun is kept in any case. */
  async function work(next: () => Promise<WorkedJob>): Promise<void> {
    has_stopped = false
    const { fault: _none, ...before } = state.value
    state.value = { ...before, step: 'running' }
    try {
      let job = await next()
      add(job)
      while (!job.is_done && !has_stopped && job.id !== undefined) {
        job = await call('bulk_resume', { id: job.id })
        add(job)
      }
      state.value = { ...state.value, step: job.is_done ? 'done' : 'stopped' }
    } catch (fault) {
      const { job } = state.value
      state.value = { ...state.value, step: job === undefined ? 'counted' : 'stopped', fault }
    }
  }

  return {
    state,
    count,
    /** Ends the counting: what is counted so far is the least that it will be. */
    run: (bulk: Bulk) => work(() => call('bulk', bulk)),
    resume: (id: string) => work(() => call('bulk_resume', { id })),
    /** After the call under way. */
    stop(): void {
      has_stopped = true
    },
  }
}

export const verbs: Readonly<Record<BulkAction, string>> = {
  retry: 'Retry',
  cancel: 'Cancel',
  move: 'Move',
  modify: 'Send data to',
}

export const outcomes: Readonly<Record<BulkAction, string>> = {
  retry: 'retried',
  cancel: 'canceled',
  move: 'moved',
  modify: 'changed',
}

export const effects: Readonly<Record<BulkAction, string>> = {
  retry: 'Each failed one runs again from its node.',
  cancel: 'Each ends as canceled in its node and cannot go on any more. Its ref is free again.',
  move: 'Each goes on in the node that you chose. What it waits for is given up.',
  modify: 'The data is merged into each. One that waits for a callback goes on.',
}

/** Why the engine refuses a task in such work; other codes are shown as they are. */
const refusals: Readonly<Record<string, string>> = {
  conveyor_is_not_active: 'the process is paused',
  not_found_task: 'ended or gone meanwhile',
  no_api_callback_in_node_with_task: 'does not wait for a callback',
  task_size_overflow_limit: 'the data would be too large',
  wrong_validate_params: 'a parameter of the process is not satisfied',
  task_damaged: 'the stored record is damaged',
  internal_error: 'an internal error, see the log',
}

export const refusalText = (code: string): string => refusals[code] ?? code
