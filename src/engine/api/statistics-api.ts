/**
 * The types of `Engine.statistics` and `Engine.ready`: what an engine has done, and whether it can
 * do its work.
 */
import type { Counts, JobKind, OpKind, ServerName } from '../../core/counters.ts'
import type { EventName } from '../../core/event-table.ts'
import type { StoreNumbers } from '../../store/store.ts'

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

export interface Readiness {
  /** Whether all checks are ok. */
  readonly ok: boolean
  readonly version: string
  /** Since the file was opened. */
  readonly uptime_s: number
  readonly checks: Readonly<Record<ReadyCheckName, ReadyCheck>> & {
    /** Of a node of a cluster: its database answers, and it has its lease. */
    readonly commit_log?: ReadyCheck
  }
}

/**
 * `open`: it does not close; `commit`: a commit succeeds, in time; `disk`: above
 * `disk_free_bytes_min`, by a little where it was full; `key`: secrets can be read; `queue`: it has
 * room; `background`: timers and schedules go on.
 */
export type ReadyCheckName = 'open' | 'commit' | 'disk' | 'key' | 'queue' | 'background'

export interface ReadyCheck {
  readonly ok: boolean
  /** Why not, or what will be wrong later; for the operator: it may name files. */
  readonly reason?: string
}
