/**
 * `Engine.statistics`: what an engine has done since it was opened and what it has to do, as plain
 * data. Counters (core/counters) count each thing once, after its commit. A read costs microseconds
 * and reads no file.
 */
import type { EngineStatistics } from './api/statistics-api.ts'
import type { ChangeFeed } from './changes/changes.ts'
import type { Handlers } from './jobs/handlers.ts'
import type { JobDispatcher } from './jobs/job-dispatcher.ts'
import type { Replays } from './replays/replays.ts'
import type { Results } from './requests/results.ts'
import type { Timers } from './timers/due-work.ts'
import type { Parts } from './transactions/parts.ts'

interface ReportingParts {
  readonly timers: Timers
  readonly jobs: JobDispatcher
  readonly results: Results
  readonly feed: ChangeFeed
  readonly handlers: Handlers
  readonly replays: Replays
}

export function newStatisticsReader(
  { clock, store, counters, admission }: Parts,
  { timers, jobs, results, feed, handlers, replays }: ReportingParts,
): () => EngineStatistics {
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
