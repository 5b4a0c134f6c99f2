/**
 * The transactions of schedules. A task and the next due time are written together, so each due
 * time creates one task, across crashes, and none early. Due times only rise, also when a
 * definition is replaced or the clock is set back.
 */
import { digestOf } from '../../codec/doc-text.ts'
import { docOfText } from '../../codec/json.ts'
import { keysOfType, scheduleKey } from '../../codec/keys.ts'
import {
  decodeRecord,
  encodeRecord,
  type LastRun,
  type ScheduleDefinition,
  type ScheduleRecord,
} from '../../codec/records.ts'
import { sleep_ms_max } from '../../core/clock.ts'
import { defined } from '../../core/defined.ts'
import { fault } from '../../core/faults.ts'
import type { CreateOp } from '../../core/model.ts'
import { quoted } from '../../process/report.ts'
import type { Tx, View } from '../../store/store.ts'
import type { PutScheduleResult } from '../api/schedule-api.ts'
import { create } from '../tasks/ops.ts'
import { drainRunQueue } from '../tasks/run-queue.ts'
import { inactiveOf, noProcess, type OpRefusal } from '../tasks/task-rules.ts'
import { countSteps } from '../tasks/transitions.ts'
import type { Process } from '../transactions/catalog.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { beginOp } from '../transactions/transaction-queue.ts'
import { type DueTimes, dueTimesOf, taskData, utcText } from './schedule-input.ts'

/** A later due time is missed; the clock may take as long to notice a sleep. */
export const late_ms_max = sleep_ms_max
/** The cost of a cron due time, in steps of logics. */
const steps_per_due_time = 1_000
export const due_times_per_slice = 16

function scheduleOf(view: View, id: string): ScheduleRecord | undefined {
  const value = view.get(scheduleKey(id))
  return value === undefined ? undefined : decodeRecord<ScheduleRecord>(value)
}

export function requireSchedule(view: View, id: string): ScheduleRecord {
  const record = scheduleOf(view, id)
  if (record !== undefined) return record
  throw fault('schedule_not_found', `there is no schedule ${quoted(id)}`)
}

export function saveSchedule(tx: Tx, id: string, record: ScheduleRecord): void {
  tx.put(scheduleKey(id), encodeRecord(record))
}

/** Throws `bad_schedule` if it is never due, and `not_possible`. */
export function putSchedule(
  tx: Tx,
  id: string,
  definition: ScheduleDefinition,
  now_ms: number,
  schedules_max: number,
): PutScheduleResult {
  const old = scheduleOf(tx, id)
  if (old !== undefined && isSame(old, definition)) {
    return { id, state: 'unchanged', next_ms: old.next_ms }
  }
  if (old === undefined && countSchedules(tx, schedules_max) === schedules_max) {
    throw fault('not_possible', `${schedules_max} schedules are stored, which is schedules_max`)
  }
  const next_ms = dueTimesOf(definition, now_ms).after(Math.max(now_ms, old?.last?.due_ms ?? 0))
  if (next_ms === undefined) throw fault('bad_schedule', neverDue(definition))
  saveSchedule(tx, id, {
    ...definition,
    put_ms: now_ms,
    is_paused: old?.is_paused ?? false,
    next_ms,
    ...defined({ last: old?.last, left_out: old?.left_out }),
  })
  return { id, state: old === undefined ? 'created' : 'updated', next_ms }
}

function countSchedules(tx: Tx, limit: number): number {
  return tx.scan({ ...keysOfType('schedule'), limit }).length
}

function neverDue({ cron, at_ms, every_ms }: ScheduleDefinition): string {
  if (cron !== undefined) return `cron: "${cron}" is never due`
  if (at_ms !== undefined) return `at_ms: ${at_ms} is past, or after the year 9999`
  return `every_ms: ${every_ms} leads past the year 9999`
}

function isSame(old: ScheduleDefinition, definition: ScheduleDefinition): boolean {
  const { data_text: old_text } = old
  const { data_text: new_text } = definition
  const names = ['cron', 'every_ms', 'at_ms', 'timezone', 'conv_id', 'due_key', 'catch_up'] as const
  return (
    names.every((name) => old[name] === definition[name]) &&
    (old_text === new_text || digestOf(docOfText(old_text)).equals(digestOf(docOfText(new_text))))
  )
}

export interface Fired {
  /** Undefined if nothing is left, or while its process takes no tasks. */
  readonly next_ms?: number
  readonly waits_for?: string
  readonly created?: number
  readonly refused: readonly LastRun[]
  /** Missed due times without a task. */
  readonly left_out?: ScheduleRecord['left_out']
}

/**
 * Creates up to `due_times_per_slice` due tasks. `is_catching_up`: an earlier slice has decided
 * which missed due times get a task.
 */
export function fireSchedule(tx: Transaction, id: string, is_catching_up: boolean): Fired {
  const record = scheduleOf(tx.store, id)
  if (record === undefined || record.is_paused || record.next_ms === null) return { refused: [] }
  const { next_ms: first_ms, conv_id } = record
  if (first_ms > tx.now_ms) return { next_ms: first_ms, refused: [] }
  const process = processForTasks(tx, conv_id)
  if ('code' in process) {
    if (record.last?.due_ms === first_ms) return { waits_for: conv_id, refused: [] }
    const { code: proc, description } = process
    const last = { ...runOf(tx, id, first_ms), proc, description }
    saveSchedule(tx.store, id, { ...record, last })
    return { waits_for: conv_id, refused: [last] }
  }
  const times = dueTimesOf(record, record.put_ms)
  const is_late = !is_catching_up && first_ms < tx.now_ms - late_ms_max
  let due_ms = is_late ? caughtUpFrom(tx, record, first_ms, times) : first_ms
  const is_some_left_out = due_ms !== first_ms
  const left_out = is_some_left_out
    ? { from_ms: first_ms, to_ms: due_ms ?? tx.now_ms }
    : record.left_out
  let { last } = record
  let created = 0
  const refused: LastRun[] = []
  for (let made = 0; made < due_times_per_slice; made++) {
    if (due_ms === undefined || due_ms > tx.now_ms) break
    if (tx.moves_made >= tx.engine.limits.moves_per_transaction_max) break
    last = createTask(tx, id, process, record, due_ms)
    if (last.proc === 'ok') created++
    else refused.push(last)
    due_ms = times.after(due_ms)
  }
  const next = { next_ms: due_ms ?? null, ...defined({ last, left_out }) }
  saveSchedule(tx.store, id, { ...record, ...next })
  const reported = { next_ms: due_ms, left_out: is_some_left_out ? left_out : undefined }
  return { ...defined(reported), created, refused }
}

function processForTasks(tx: Transaction, conv_id: string): Process | OpRefusal {
  const process = tx.process(conv_id)
  return process === undefined ? noProcess(conv_id) : (inactiveOf(process) ?? process)
}

/** The first due time to make, from `first_ms` on, after some were missed. */
function caughtUpFrom(
  tx: Transaction,
  { catch_up, cron }: ScheduleRecord,
  first_ms: number,
  times: DueTimes,
): number | undefined {
  const { now_ms, engine } = tx
  if (catch_up === 'none') return times.after(now_ms - late_ms_max - 1)
  const { catch_up_max } = engine.limits
  if (catch_up === 'all' && cron !== undefined) {
    tx.steps.left -= catch_up_max * steps_per_due_time
    countSteps(tx)
  }
  return times.newest(catch_up === 'latest' ? 1 : catch_up_max, first_ms, now_ms)
}

function createTask(
  tx: Transaction,
  id: string,
  process: Process,
  definition: ScheduleDefinition,
  due_ms: number,
): LastRun {
  const run = runOf(tx, id, due_ms)
  beginOp(tx)
  const op = createOp(definition, run.ref, due_ms)
  const { proc, obj_id, description } = create(tx, process, op, {}, 'schedule')
  drainRunQueue(tx)
  return { ...run, proc, ...defined({ obj_id, description }) }
}

function runOf(
  { now_ms }: Transaction,
  id: string,
  due_ms: number,
): Pick<LastRun, 'due_ms' | 'at_ms' | 'ref'> {
  return { due_ms, at_ms: now_ms, ref: `${id}@${utcText(due_ms)}` }
}

export function createOp(definition: ScheduleDefinition, ref: string, due_ms: number): CreateOp {
  const data = taskData(definition, due_ms)
  const { conv_id } = definition
  return { type: 'create', id_text: undefined, conv_id, ref: { text: ref, is_number: false }, data }
}

/** Pauses a schedule on which the engine has thrown. */
export function quarantineSchedule(tx: Transaction, id: string): Fired {
  const record = scheduleOf(tx.store, id)
  if (record === undefined || record.next_ms === null) return { refused: [] }
  const description = 'the engine stumbled on this schedule'
  const last: LastRun = { ...runOf(tx, id, record.next_ms), proc: 'internal_error', description }
  saveSchedule(tx.store, id, { ...record, is_paused: true, last })
  return { refused: [last] }
}
