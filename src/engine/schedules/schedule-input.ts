/**
 * Checks a schedule that an embedder passes. Each mistake is a `bad_schedule` that names the
 * member. Whether it is ever due is checked in its transaction (schedule-transactions).
 */
import { bytesOf } from '../../codec/json.ts'
import { isName, isOp, parseTaskOp } from '../../codec/op.ts'
import type { ScheduleDefinition } from '../../codec/records.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { CreateOp } from '../../core/model.ts'
import { quoted } from '../../process/report.ts'
import type { ScheduleInput } from '../api/schedule-api.ts'
import { dueTimesOf } from './schedule-times.ts'
import { taskData } from './schedule-transactions.ts'

const id_chars_max = 64
const cron_chars_max = 256
const every_ms_min = 1_000
/** What follows the id in a ref: `/run@2026-11-22T02:00:00.000Z`. */
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
    ...(cron === undefined ? {} : { cron: cron.trim() }),
    ...(every_ms === undefined ? {} : { every_ms }),
    ...(at_ms === undefined ? {} : { at_ms }),
    timezone,
    conv_id,
    data_text: data.text,
    ...(due_key === undefined ? {} : { due_key }),
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
    // Intl knows no such zone.
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

/** The op that would create its tasks: its checks of conv_id and data hold here too. */
function taskOf({ conv_id, data = {} }: ScheduleInput, limits: Limits): CreateOp {
  const op = parseTaskOp('create', { conv_id, data }, limits)
  if (!isOp(op)) throw mistake(`${op.key}: ${op.description}`)
  return op as CreateOp
}

export function mistake(sentence: string): Fault {
  return fault('bad_schedule', sentence)
}
