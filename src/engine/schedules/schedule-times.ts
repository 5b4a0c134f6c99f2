/**
 * When a schedule is due, as pure functions of its definition; croner reads cron expressions. Due
 * times rise strictly: `after` returns one later than its argument.
 */
import { Cron } from 'croner'
import type { ScheduleDefinition } from '../../codec/records.ts'

export interface DueTimes {
  /** The first due time after this, up to the year 9999. */
  after(ms: number): number | undefined
  /** The oldest of the newest `count` due times between `from_ms` and `to_ms`; looks at no more. */
  newest(count: number, from_ms: number, to_ms: number): number
}

/** The end of the year 9999, after which a time has no ordinary text. */
const time_ms_max = 253_402_300_799_999

/** Throws the error of croner, whose message says what is wrong with `cron`. */
export function dueTimesOf(
  definition: Pick<ScheduleDefinition, 'cron' | 'every_ms' | 'at_ms' | 'timezone'>,
  put_ms: number,
): DueTimes {
  const { cron, every_ms, at_ms, timezone } = definition
  if (cron !== undefined) return cronTimes(cron, timezone)
  return every_ms === undefined ? onceAt(at_ms ?? 0) : timesEvery(every_ms, put_ms)
}

function cronTimes(expression: string, timezone: string): DueTimes {
  // Croner would take a date and time too, which always have a colon.
  if (expression.includes(':')) throw new TypeError('a cron expression has no colon')
  const cron = new Cron(expression, { timezone, mode: '5-or-6-parts', paused: true })
  const gap_ms_min = expression.trim().split(/\s+/).length === 6 ? 1_000 : 60_000
  return {
    after: (ms) => possible(cron.nextRun(new Date(ms))?.getTime()),
    newest(count, from_ms, to_ms) {
      if ((to_ms - from_ms) / gap_ms_min < count - 1) return from_ms
      // The time given to previousRuns is excluded.
      let found_ms = (Math.floor(to_ms / 1_000) + 1) * 1_000
      for (let left = count; left > 0; left--) {
        const before_ms = cron.previousRuns(1, new Date(found_ms))[0]?.getTime() ?? 0
        if (before_ms <= from_ms) return from_ms
        found_ms = before_ms
      }
      return found_ms
    },
  }
}

function timesEvery(every_ms: number, put_ms: number): DueTimes {
  const atOrBefore = (ms: number): number => ms - ((ms - put_ms) % every_ms)
  return {
    after: (ms) => possible(atOrBefore(Math.max(ms, put_ms)) + every_ms),
    newest: (count, from_ms, to_ms) =>
      Math.max(from_ms, atOrBefore(to_ms) - (count - 1) * every_ms),
  }
}

function onceAt(at_ms: number): DueTimes {
  return { after: (ms) => (at_ms > ms ? possible(at_ms) : undefined), newest: () => at_ms }
}

function possible(ms: number | undefined): number | undefined {
  return ms !== undefined && ms <= time_ms_max ? ms : undefined
}

/** `2026-11-22T02:00:00Z`, with milliseconds only where there are some. */
export function utcText(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}
