/**
 * Public types of schedules: tasks created at due times by a cron expression, at an interval, or
 * once.
 *
 *     await engine.schedules.put({
 *       id: 'nightly', cron: '0 2 * * *', timezone: 'Europe/Kyiv', conv_id: 1234,
 *     })
 *
 * creates a task in process 1234 each night at 2:00 in Kyiv, with a ref such as
 * `nightly@2026-11-22T00:00:00Z`: schedule id, `@`, due time in UTC.
 */
import type { OpResult } from '../../core/model.ts'

/**
 * What happens to due times missed because the engine was closed, the machine slept, the clock was
 * set forward, the disk was full, or the schedule or process was paused. A due time is missed after
 * one minute; until then it is made as if on time.
 *
 * - `none`: they get no task.
 * - `latest`: only the newest of them gets its task.
 * - `all`: each gets its task, the oldest first, but only the newest `catch_up_max` (1,000).
 */
export type CatchUp = 'none' | 'latest' | 'all'

/** Needs exactly one of `cron`, `every_ms` and `at_ms`. */
export interface ScheduleInput {
  /** 1 to 64 characters; the prefix of task refs. */
  readonly id: string
  /**
   * Five fields (minute, hour, day of month, month, day of week), six with seconds first, or
   * `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. If both days are given, either suffices.
   *
   * When clocks go forward, a skipped time is due at the first moment after the gap; when they go
   * back, a repeated one is due the first time only. That is for one time a day; an expression with
   * several (`*`, `/`, `,` or `-` in second, minute or hour) skips skipped times and repeats
   * repeated ones.
   */
  readonly cron?: string
  /** Milliseconds between due times, at least 1,000; the first is that long from now. */
  readonly every_ms?: number
  /** Once, at this Unix time in milliseconds, not in the past. */
  readonly at_ms?: number
  /** IANA zone of `cron`, such as `Europe/Kyiv`; default `UTC`. */
  readonly timezone?: string
  /** The existing process of the tasks. */
  readonly conv_id: string | number
  /** A plain JSON object, or `rawJson(text)`; default `{}`. */
  readonly data?: unknown
  /** Member of the data that gets the due time in milliseconds; default none. */
  readonly due_key?: string
  /** Default `latest`. */
  readonly catch_up?: CatchUp
}

export interface PutScheduleResult {
  readonly id: string
  readonly state: 'created' | 'updated' | 'unchanged'
  /** Null for an ended schedule. */
  readonly next_ms: number | null
}

/** An attempted due time and its outcome. */
export interface ScheduleRun {
  readonly due_ms: number
  /** When it was attempted, never before `due_ms`. */
  readonly at_ms: number
  readonly ref: string
  /**
   * `ok`, or why there is no task; `description` says more. With `conveyor_is_not_active` and
   * `conv_not_found` the due time waits for its process, then follows `catch_up`. Any other code is
   * final. `internal_error` pauses the schedule.
   */
  readonly proc: OpResult['proc'] | 'internal_error'
  readonly obj_id?: string
  readonly description?: string
}

export interface ScheduleInfo {
  readonly id: string
  readonly cron?: string
  readonly every_ms?: number
  readonly at_ms?: number
  readonly timezone: string
  readonly conv_id: string
  readonly due_key?: string
  readonly catch_up: CatchUp
  /** `ended`: no due time is left; it stays until removed. */
  readonly state: 'active' | 'paused' | 'ended'
  /** Null for an ended schedule. A past one waits for room or for its process. */
  readonly next_ms: number | null
  /** The last attempted due time, without `run`. */
  readonly last?: ScheduleRun
  /** The last range of missed due times without a task: `to_ms` is excluded. */
  readonly left_out?: { readonly from_ms: number; readonly to_ms: number }
}

export interface ScheduleDetails extends ScheduleInfo {
  /** JSON text, without the due time. */
  readonly data_text: string
}

/**
 * Each due time creates one task, across crashes, never early: the task and the next due time are
 * one commit. A clock that is set back delays due times and repeats none. An engine with `timers:
 * false` creates none. Calls with an id reject with `schedule_not_found`.
 */
export interface Schedules {
  /**
   * Stores a schedule; call it at each start. The same definition changes nothing, also for an
   * ended or paused schedule. A different one replaces it from now on; a paused one stays paused.
   * Rejects with `bad_schedule` and a sentence that names the member and its mistake, with
   * `conv_not_found`, and with `not_possible` beyond `schedules_max`.
   */
  put(schedule: ScheduleInput): Promise<PutScheduleResult>
  /** By id. */
  list(): Promise<ScheduleInfo[]>
  show(id: string): Promise<ScheduleDetails>
  /** Nothing is created until `resume`; missed due times then follow `catch_up`. */
  pause(id: string): Promise<void>
  resume(id: string): Promise<void>
  /**
   * Creates a task now, even if paused or ended, without affecting due times. Its ref is the id,
   * `/run@` and the present time, so two runs in a millisecond are one. A refusal is in the result.
   * Rejects as `Engine.apply` does.
   */
  run(id: string): Promise<OpResult>
  /** Its tasks stay. */
  remove(id: string): Promise<void>
}
