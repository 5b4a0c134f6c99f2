/**
 * `Engine.statistics`: what an engine has done since it was opened and what it has to do now, as
 * plain data. Reading it costs microseconds and reads no file; metrics are made of it.
 *
 * What was done is in counters (core/counters), each thing counted once, after its commit. What
 * there is to do is asked of the parts that have it.
 */
import type { Clock } from '../core/clock.ts'
import type { Counters, Counts, JobKind, OpKind, ServerName } from '../core/counters.ts'
import type { EventName } from '../core/event-table.ts'
import type { Store, StoreNumbers } from '../store/store.ts'
import type { Admission } from './admission.ts'
import type { ChangeFeed } from './changes/changes.ts'
import type { Handlers } from './jobs/handlers.ts'
import type { JobDispatcher } from './jobs/job-dispatcher.ts'
import type { Replays } from './replays/replays.ts'
import type { Results } from './results.ts'
import type { Timers } from './timers.ts'

/** In all counts a 0 may be left out. */
export interface EngineStatistics {
  /** When counting began. */
  readonly since_ms: number
  /** Ops of all callers by type, and by `ok` or the code of the fault; not those of schedules. */
  readonly ops: Counts<OpKind>
  /**
   * Answered requests by server, and by `ok` or the code of the fault that answers the whole
   * request. `library` are calls of `apply`, `create` and `modify` in this process.
   */
  readonly requests: Counts<ServerName>
  /** Requests that were answered as the first time, of those above; their ops are not counted. */
  readonly replays: number
  /** Attempts of jobs by what did them, and by how they ended: `job_results` of core/counters. */
  readonly jobs: Counts<JobKind>
  /** Due times of schedules, by `ok` or the code for which one has no task. */
  readonly due_times: Readonly<Record<string, number>>
  readonly events: Readonly<Partial<Record<EventName, number>>>
  readonly tasks: {
    readonly created: number
    /** Tasks that came into this status; one that is retried may come twice. */
    readonly failed: number
    readonly processed: number
    readonly canceled: number
  }
  readonly timers_fired: number
  /** What waits for the disk. */
  readonly queue: { readonly ops: number; readonly bytes: number }
  /** How long the first timer or due time that has not fired has been due; 0 where none is. */
  readonly due_lag_ms: number
  readonly jobs_in_flight: number
  /** Jobs that are due and wait for a slot, or for a paused process. */
  readonly jobs_waiting: number
  readonly results_waiting: number
  /** Iterators of the feed that have begun and not ended. */
  readonly feed_readers: number
  readonly handlers: number
  /** What is kept in the file to answer repeats of requests. */
  readonly replay_bytes: number
  /** Until when the certificate of a server is valid. */
  readonly certificates_until_ms: Readonly<Partial<Record<ServerName, number>>>
  readonly store: StoreNumbers
}

export interface StatisticsParts {
  readonly clock: Clock
  readonly store: Pick<Store, 'numbers'>
  readonly counters: Counters
  readonly admission: Pick<Admission, 'waiting'>
  readonly timers: Pick<Timers, 'overdue_ms'>
  readonly jobs: Pick<JobDispatcher, 'counts'>
  readonly results: Pick<Results, 'count'>
  readonly feed: Pick<ChangeFeed, 'readers'>
  readonly handlers: Pick<Handlers, 'count'>
  readonly replays: Pick<Replays, 'bytes'>
}

export function newStatisticsReader(parts: StatisticsParts): () => EngineStatistics {
  const { clock, store, counters, admission, timers, jobs, results, feed, handlers, replays } =
    parts
  const since_ms = clock.now_ms()
  return () => {
    const { timers_fired, ...tasks } = counters.tasks
    const overdue_ms = timers.overdue_ms()
    const { in_flight, waiting } = jobs.counts()
    return {
      since_ms,
      ...counters.read(),
      tasks,
      timers_fired,
      queue: admission.waiting(),
      due_lag_ms: overdue_ms === undefined ? 0 : clock.now_ms() - overdue_ms,
      jobs_in_flight: in_flight,
      jobs_waiting: waiting,
      results_waiting: results.count(),
      feed_readers: feed.readers(),
      handlers: handlers.count(),
      replay_bytes: replays.bytes(),
      store: store.numbers(),
    }
  }
}
