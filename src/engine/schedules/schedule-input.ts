/**
 * Checks a schedule and computes its due times, which rise strictly; croner reads cron expressions.
 * Each mistake is a `bad_schedule` that names the member.
 */
import { Cron } from 'croner'
import { bytesOf, docOfText, docOfValue, objectOf, setMember } from '../../codec/json.ts'
import { isName, isOp, parseTaskOp } from '../../codec/op.ts'
import type { ScheduleDefinition } from '../../codec/records.ts'
import { defined } from '../../core/defined.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { CreateOp, Doc } from '../../core/model.ts'
import { quoted } from '../../process/report.ts'
import type { ScheduleInput } from '../api/schedule-api.ts'

const id_chars_max = 64
const cron_chars_max = 256
const every_ms_min = 1_000
/** For `/run@2026-11-22T02:00:00.000Z`. */
const ref_end_chars = 29
const members = 'id cron every_ms at_ms timezone conv_id data due_key catch_up'.split(' ')

export interface GivenSchedule {
  readonly id: string
  readonly definition: ScheduleDefinition
}

export function readSchedule(input: ScheduleInput, limits: Limits): GivenSchedule {
  if (typeof input !== 'object' || input === null) throw mistake('it is no object')
  const { cron, every_ms, at_ms, timezone = 'UTC', due_key, catch_up = 'latest' } = input
  const unknown = Object.keys(input).find((name) => !members.includes(name))
  if (unknown !== undefined) throw mistake(`${quoted(unknown)} is no member of a schedule`)
  const id = scheduleId(input.id, limits)
  if ([cron, every_ms, at_ms].filter((given) => given !== undefined).length !== 1) {
    throw mistake('exactly one of cron, every_ms and at_ms says when')
  }
  checkZone(timezone)
  if (cron !== undefined) checkCron(cron, timezone)
  if (every_ms !== undefined && !(Number.isSafeInteger(every_ms) && every_ms >= every_ms_min)) {
    throw mistake(`every_ms: ${String(every_ms)} is no whole number from ${every_ms_min} on`)
  }
  if (at_ms !== undefined && !Number.isSafeInteger(at_ms)) {
    throw mistake(`at_ms: ${String(at_ms)} is no time in milliseconds since 1970`)
  }
  if (!['none', 'latest', 'all'].includes(catch_up)) {
    throw mistake('catch_up is none, latest or all')
  }
  if (due_key !== undefined && (typeof due_key !== 'string' || !isName(due_key, id_chars_max))) {
    throw mistake(`due_key is a name of 1 to ${id_chars_max} characters`)
  }
  const { conv_id, data } = taskOf(input, limits)
  const definition = {
    ...defined({ cron: cron?.trim(), every_ms, at_ms }),
    timezone,
    conv_id,
    data_text: data.text,
    ...defined({ due_key }),
    catch_up,
  }
  const bytes = bytesOf(taskData(definition, Number.MAX_SAFE_INTEGER).text)
  if (bytes <= limits.task_bytes_max) return { id, definition }
  throw mistake(`data: ${bytes} bytes, at most ${limits.task_bytes_max} in a task`)
}

function scheduleId(id: unknown, limits: Limits): string {
  const chars_max = Math.min(id_chars_max, limits.ref_chars_max - ref_end_chars)
  if (typeof id === 'string' && isName(id, chars_max)) return id
  throw mistake(`id is a text of 1 to ${chars_max} characters`)
}

function checkZone(timezone: unknown): void {
  try {
    if (typeof timezone === 'string' && timezone !== '') {
      new Intl.DateTimeFormat('en', { timeZone: timezone })
      return
    }
  } catch {
    // Intl does not know the zone.
  }
  throw mistake(`timezone: ${quoted(timezone)} is no time zone such as Europe/Kyiv or UTC`)
}

function checkCron(cron: unknown, timezone: string): void {
  if (typeof cron !== 'string' || cron.length > cron_chars_max) {
    throw mistake(`cron is a text of at most ${cron_chars_max} characters`)
  }
  try {
    dueTimesOf({ cron, timezone }, 0)
  } catch (error) {
    throw mistake(`cron: ${(error as Error).message.replace('CronPattern: ', '')}`)
  }
}

/** The op that would create its tasks, to check conv_id and data. */
function taskOf({ conv_id, data = {} }: ScheduleInput, limits: Limits): CreateOp {
  const op = parseTaskOp('create', { conv_id, data }, limits)
  if (!isOp(op)) throw mistake(`${op.key}: ${op.description}`)
  return op as CreateOp
}

export function mistake(sentence: string): Fault {
  return fault('bad_schedule', sentence)
}

export interface DueTimes {
  /** The first due time after this, up to the year 9999. */
  after(ms: number): number | undefined
  /** The oldest of the newest `count` due times in the interval; computes no more. */
  newest(count: number, from_ms: number, to_ms: number): number
}

/** The end of the year 9999, the last with an ordinary text. */
const time_ms_max = 253_402_300_799_999

/** Throws croner's error, which explains what is wrong with `cron`. */
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

/** `2026-11-22T02:00:00Z`, with milliseconds only if not 0. */
export function utcText(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}

export function taskData({ data_text, due_key }: ScheduleDefinition, due_ms: number): Doc {
  const data = docOfText(data_text)
  if (due_key === undefined) return data
  const members = { ...objectOf(data) }
  setMember(members, due_key, due_ms)
  return docOfValue(members)
}
