/**
 * `Engine.ready` and `Engine.statistics`. The disk is checked at most once a second: a recent
 * commit passes, one in flight for too long fails, otherwise a tiny commit gets `ready_ms_max`;
 * concurrent probes get the last result. Uses the system's clock, because a disk ignores a test's.
 * Statistics read no file.
 */
import { metaKey } from '../codec/keys.ts'
import { type Clock, within } from '../core/clock.ts'
import type { WholeFaultCode } from '../core/faults.ts'
import { health_checks as checks } from '../core/health-checks.ts'
import type { Limits } from '../core/limits.ts'
import { version } from '../core/version.ts'
import { freeBytesAgain } from '../store/space-watch.ts'
import type { Store } from '../store/store.ts'
import type { KeyState } from './access/secrets.ts'
import type { EngineStatistics, Readiness, ReadyCheck } from './api/statistics-api.ts'
import type { ChangeFeed } from './changes/changes.ts'
import type { Handlers } from './jobs/handlers.ts'
import type { JobDispatcher } from './jobs/job-dispatcher.ts'
import type { Replays } from './replays/replays.ts'
import type { Results } from './requests/results.ts'
import type { Timers } from './timers/due-work.ts'
import type { Parts } from './transactions/parts.ts'

export interface ReadinessOptions {
  readonly store: Store
  readonly limits: Limits
  readonly clock: Clock
  readonly health: () => 'ok' | WholeFaultCode
  readonly keyState: () => Pick<KeyState, 'problem' | 'warning'>
  readonly isBroken: () => boolean
}

const ready_key = metaKey('ready')
const probe_every_ms = 1_000
const fine: ReadyCheck = { ok: true }

export function newReadiness(options: ReadinessOptions): () => Promise<Readiness> {
  const { store, limits, clock, health, keyState, isBroken } = options
  const began_ms = clock.now_ms()
  const logError = store.commitLogError
  const late = notOk(checks.commit.hangs(limits.ready_ms_max, logError !== undefined))
  let probed_ms = Number.NEGATIVE_INFINITY
  let probed: Promise<ReadyCheck> = Promise.resolve(fine)
  let is_probing = false
  let commits = store.numbers().commits

  /** The outcome of the last second, or a new one. Never rejects. */
  async function commitCheck(away: string | undefined): Promise<ReadyCheck> {
    if (away !== undefined) return notOk(away)
    if (store.commit_ms() > limits.ready_ms_max) return late
    const now_ms = clock.now_ms()
    const passed_ms = Math.abs(now_ms - probed_ms)
    if (is_probing || passed_ms < probe_every_ms) return probed
    probed_ms = now_ms
    const has_committed = store.numbers().commits !== commits && passed_ms < 2 * probe_every_ms
    probed = has_committed ? Promise.resolve(fine) : tryCommit()
    commits = store.numbers().commits
    return probed
  }

  async function tryCommit(): Promise<ReadyCheck> {
    is_probing = true
    const committed = store
      .update((tx) => tx.put(ready_key, Buffer.from(version)))
      .then(
        () => fine,
        (error: Error) => notOk(error.message),
      )
      .finally(() => {
        is_probing = false
        commits = store.numbers().commits
      })
    const outcome = await within(clock, limits.ready_ms_max, committed)
    return outcome === 'late' ? late : outcome
  }

  function diskCheck(): ReadyCheck {
    const { disk_free_bytes_min, slow_commit_ms } = limits
    const free_bytes = store.freeBytes()
    if (free_bytes === undefined || (free_bytes >= disk_free_bytes_min && !store.isFull())) {
      if (!store.isCheckpointSlow()) return fine
      return { ok: true, reason: checks.disk.hangs(slow_commit_ms) }
    }
    const again = freeBytesAgain(disk_free_bytes_min)
    return notOk(checks.disk.full(free_bytes, disk_free_bytes_min, again))
  }

  return async () => {
    const code = health()
    const disk = diskCheck()
    const open = code === 'shutting_down' ? notOk(checks.open.engine) : fine
    const blocked = [open, disk].find(({ ok }) => !ok)?.reason
    const away = code === 'store_failed' ? undefined : store.unavailable()?.message
    const log_error = logError?.()
    const { problem, warning } = keyState()
    const key = warning === undefined ? fine : { ok: true, reason: warning }
    const found = {
      open,
      commit:
        blocked === undefined ? await commitCheck(away) : notOk(checks.commit.skipped(blocked)),
      disk,
      key: problem === undefined ? key : notOk(problem),
      queue: code === 'overloaded' && !away ? notOk(checks.queue.full) : fine,
      background: isBroken() ? notOk(checks.background.stopped) : fine,
      ...(logError && { commit_log: log_error === undefined ? fine : notOk(log_error) }),
    }
    const ok = Object.values(found).every((check) => check.ok)
    const uptime_ms = Math.max(0, clock.now_ms() - began_ms)
    return { ok, version, uptime_s: Math.floor(uptime_ms / 1000), checks: found }
  }
}

function notOk(reason: string): ReadyCheck {
  return { ok: false, reason }
}

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
