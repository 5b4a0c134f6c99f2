/**
 * `Engine.statistics`: what an engine has done since it was opened and what it has to do now, as
 * plain data. Reading it costs microseconds and reads no file; metrics are made of it.
 *
 * What was done is in counters (core/counters), each thing counted once, after its commit. What
 * there is to do is asked of the parts that have it.
 */

import type { Clock } from '../core/clock.ts'
import type { Counters } from '../core/counters.ts'
import type { Store } from '../store/store.ts'
import type { EngineStatistics } from './api/statistics-api.ts'
import type { ChangeFeed } from './changes/changes.ts'
import type { Handlers } from './jobs/handlers.ts'
import type { JobDispatcher } from './jobs/job-dispatcher.ts'
import type { Replays } from './replays/replays.ts'
import type { Results } from './requests/results.ts'
import type { Timers } from './timers/due-work.ts'
import type { Admission } from './transactions/admission.ts'

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
