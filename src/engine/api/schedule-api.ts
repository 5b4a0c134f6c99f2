/**
 * The part of the public interface that is about schedules, as types: tasks that are created at
 * their due times, by a cron expression, at an interval, or once.
 *
 *     await engine.schedules.put({
 *       id: 'nightly', cron: '0 2 * * *', timezone: 'Europe/Kyiv', conv_id: 1234,
 *     })
 *
 * creates a task in process 1234 each night at 2:00 in Kyiv, with a ref such as
 * `nightly@2026-11-22T00:00:00Z`: the id of the schedule, `@`, and the due time in UTC.
 */
import type { OpResult } from '../../core/model.ts'

/**
 * What happens to due times that were missed, because the engine was closed, the machine slept, the
 * clock was set forward, the disk was full, or the schedule or its process was paused. A due time
 * is missed once a minute has passed; until then it is made as if on time.
 *
 * - `none`: they get no task.
 * - `latest`: only the newest of them gets its task.
 * - `all`: each gets its task, the oldest first, but only the newest `catch_up_max` (1,000).
 */
export type CatchUp = 'none' | 'latest' | 'all'

/** Exactly one of `cron`, `every_ms` and `at_ms` says when. */
export interface ScheduleInput {
  /** 1 to 64 characters; it begins the ref of each task. */
  readonly id: string
  /**
   * Five fields: minute, hour, day of the month, month, day of the week; or six, the first of which
   * is the second; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. Where both days are
   * given, either of them is enough.
   *
   * When the clocks go forward, a time of day that is skipped is due at the first moment after the
   * gap; when they go back, one that comes twice is due the first time only. That holds for an
   * expression of one time a day; one with several (`*`, `/`, `,` or `-` in second, minute or hour)
   * is due at no skipped time, and both times at a repeated one.
   */
  readonly cron?: string
  /** Milliseconds between two due times, at least 1,000; the first is that long from now. */
  readonly every_ms?: number
  /** Once, at this time: milliseconds since 1970 (UTC), not in the past. */
  readonly at_ms?: number
  /** The zone of `cron`, by its IANA name such as `Europe/Kyiv`; default `UTC`. */
  readonly timezone?: string
  /** The process in which the tasks are created. It must be there. */
  readonly conv_id: string | number
  /** The data of each task: a plain JSON object, or `rawJson(text)`; default `{}`. */
  readonly data?: unknown
  /** The member of the data that each task gets its due time in, in milliseconds; default none. */
  readonly due_key?: string
  /** Default `latest`. */
  readonly catch_up?: CatchUp
}

export interface PutScheduleResult {
  readonly id: string
  readonly state: 'created' | 'updated' | 'unchanged'
  /** The next due time; null where an unchanged one has none left. */
  readonly next_ms: number | null
}

/** A due time that was tried, and what came of it. */
export interface ScheduleRun {
  readonly due_ms: number
  /** When it was tried: never before `due_ms`. */
  readonly at_ms: number
  /** The ref of its task. */
  readonly ref: string
  /**
   * `ok`, or why there is no task; `description` says more. With `conveyor_is_not_active` and
   * `conv_not_found` the due time waits for its process, and is then made or left out as `catch_up`
   * says. With any other code it is not tried again. `internal_error` has paused the schedule.
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
  /** `ended`: no due time is left. An ended schedule stays until it is removed. */
  readonly state: 'active' | 'paused' | 'ended'
  /** The next due time; null for an ended one. A past one waits for room or for its process. */
  readonly next_ms: number | null
  /** The newest due time that was tried; absent before the first. `run` does not count. */
  readonly last?: ScheduleRun
  /** The missed due times that got no task most recently: `from_ms` included, `to_ms` excluded. */
  readonly left_out?: { readonly from_ms: number; readonly to_ms: number }
}

export interface ScheduleDetails extends ScheduleInfo {
  /** The data of each task as JSON text, without its due time. */
  readonly data_text: string
}

/**
 * Each due time creates one task, whatever crashes: the task and the next due time are one commit.
 * No task is created before its due time. A clock that is set back delays the next due time until
 * the clock reaches it, and repeats none. An engine with `timers: false` creates none.
 *
 * The calls with an id reject with `schedule_not_found`.
 */
export interface Schedules {
  /**
   * Stores a schedule, to be called at each start. The same definition changes nothing: not the
   * next due time, and not a schedule that has ended or is paused. Another definition replaces it
   * from now on; a paused one stays paused. Rejects with `bad_schedule` and a sentence that names
   * the member and its mistake, with `conv_not_found`, and with `not_possible` for more than
   * `schedules_max` of them.
   */
  put(schedule: ScheduleInput): Promise<PutScheduleResult>
  /** All of them, by id. */
  list(): Promise<ScheduleInfo[]>
  show(id: string): Promise<ScheduleDetails>
  /** Nothing is created until `resume`; what is missed meanwhile is treated as `catch_up` says. */
  pause(id: string): Promise<void>
  resume(id: string): Promise<void>
  /**
   * Creates a task now, also for one that is paused or has ended, and leaves the due times as they
   * are. Its ref is the id, `/run@` and the present time; two runs in one millisecond are one. A
   * refusal is in the result. Rejects as `Engine.apply` does.
   */
  run(id: string): Promise<OpResult>
  /** Its tasks stay. */
  remove(id: string): Promise<void>
}
