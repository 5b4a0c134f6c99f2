/** The types of `Engine.statistics` and `Engine.ready`. */
import type { Counts, JobKind, OpKind, ServerName } from '../../core/counters.ts'
import type { EventName } from '../../core/event-table.ts'
import type { StoreNumbers } from '../../store/store.ts'

/** A 0 may be absent from any count. */
export interface EngineStatistics {
  readonly since_ms: number
  /** Ops of callers, without schedules, by type and by `ok` or fault code. */
  readonly ops: Counts<OpKind>
  /**
   * Answered requests by server and by `ok` or fault code. `library` are calls of `apply`, `create`
   * and `modify` in this process.
   */
  readonly requests: Counts<ServerName>
  /** Requests that repeated an earlier one; their ops are not counted. */
  readonly replays: number
  /** Attempts of jobs by kind and result (`job_results` of core/counters). */
  readonly jobs: Counts<JobKind>
  /** Due times of schedules, by `ok` or the code for which there is no task. */
  readonly due_times: Readonly<Record<string, number>>
  readonly events: Readonly<Partial<Record<EventName, number>>>
  readonly tasks: {
    readonly created: number
    /** Tasks that failed; a retried one may count twice. */
    readonly failed: number
    readonly processed: number
    readonly canceled: number
  }
  readonly timers_fired: number
  /** Waiting for the disk. */
  readonly queue: { readonly ops: number; readonly bytes: number }
  /** Lateness of the earliest overdue timer or schedule; 0 if none. */
  readonly due_lag_ms: number
  readonly jobs_in_flight: number
  /** Due jobs that wait for a slot or a paused process. */
  readonly jobs_waiting: number
  readonly results_waiting: number
  /** Open iterators of the feed. */
  readonly feed_readers: number
  readonly handlers: number
  /** Bytes of the file kept to answer repeated requests. */
  readonly replay_bytes: number
  readonly certificates_until_ms: Readonly<Partial<Record<ServerName, number>>>
  readonly store: StoreNumbers
}

export interface Readiness {
  readonly ok: boolean
  readonly version: string
  readonly uptime_s: number
  readonly checks: Readonly<Record<ReadyCheckName, ReadyCheck>> & {
    /** Of a cluster node: its database answers, and it has its lease. */
    readonly commit_log?: ReadyCheck
  }
}

/**
 * `open`: not closing; `commit`: a commit succeeds in time; `disk`: above `disk_free_bytes_min`,
 * with a margin after a full disk; `key`: secrets can be read; `queue`: has room; `background`:
 * timers and schedules run.
 */
export type ReadyCheckName = 'open' | 'commit' | 'disk' | 'key' | 'queue' | 'background'

export interface ReadyCheck {
  readonly ok: boolean
  /** Of a failure or warning, for the operator: it may name files. */
  readonly reason?: string
}
