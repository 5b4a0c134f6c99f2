/**
 * Administration of schedules, and which is due next; the timers then call `fire`. Memory holds one
 * lower bound of the due time for each active schedule: changes only lower it, and firing reads the
 * stored time again. A schedule whose process takes no tasks has none until that is resumed or
 * imported.
 */
import { scheduleKey, scheduleOfKey } from '../../codec/keys.ts'
import { decodeRecord, type ScheduleRecord } from '../../codec/records.ts'
import { isStoreUnavailable } from '../../core/faults.ts'
import type { OpResult } from '../../core/model.ts'
import type { ScheduleInfo, Schedules } from '../api/schedule-api.ts'
import { requireProcess } from '../definitions/processes.ts'
import type { Submission } from '../requests/submission.ts'
import type { Parts } from '../transactions/parts.ts'
import { eachEntry } from '../transactions/scans.ts'
import { readSchedule } from './schedule-input.ts'
import {
  createOp,
  due_times_per_slice,
  type Fired,
  fireSchedule,
  late_ms_max,
  putSchedule,
  quarantineSchedule,
  requireSchedule,
  saveSchedule,
} from './schedule-transactions.ts'

export interface DueSchedules {
  read(): Promise<void>
  /** Infinity without a schedule. */
  earliest_ms(): number
  fire(): Promise<void>
  onProcessChanged(conv_id: string): void
}

const slice_schedules = 64

export function newSchedules(
  parts: Parts,
  submit: Submission['submit'],
): { readonly schedules: Schedules; readonly due_schedules: DueSchedules } {
  const { clock, limits, store, transactions, catalog, counters, emit, wake } = parts
  const due = new Map<string, number>()
  /** The minimum of `due`, kept because it is read after each commit that sets timers. */
  let earliest_ms = Number.POSITIVE_INFINITY
  /** Schedules that wait for a process, by conv_id. */
  const waiting = new Map<string, string>()
  let process_changes = 0
  /** Until when a decision on missed due times holds. */
  const decided_until_ms = new Map<string, number>()
  const schedules_per_slice = Math.ceil(limits.slice_tasks_max / due_times_per_slice)

  function lower(id: string, due_ms: number): void {
    if (due_ms < (due.get(id) ?? Number.POSITIVE_INFINITY)) due.set(id, due_ms)
    earliest_ms = Math.min(earliest_ms, due_ms)
  }

  async function fireOne(id: string): Promise<void> {
    const due_ms = due.get(id) ?? 0
    const changes_before = process_changes
    const until_ms = decided_until_ms.get(id) ?? 0
    const is_catching_up = clock.now_ms() < until_ms
    due.delete(id)
    const {
      next_ms,
      waits_for,
      refused,
      left_out,
      created = 0,
    } = await transactions
      .run((tx) => fireSchedule(tx, id, is_catching_up))
      .catch((error: unknown) => {
        if (isStoreUnavailable(error)) throw error
        parts.onBug(error)
        return transactions.run((tx): Fired => quarantineSchedule(tx, id))
      })
      .catch((error: unknown) => {
        lower(id, due_ms)
        throw error
      })
    for (let n = 0; n < created; n++) counters.countDueTime('ok')
    for (const { due_ms, proc, ref } of refused) {
      counters.countDueTime(proc)
      emit('schedule_refused', { schedule: id, due_ms, ref, code: proc })
    }
    if (left_out !== undefined) {
      emit('schedule_left_out', { schedule: id, ...left_out })
    }
    if (waits_for !== undefined) {
      // The process may have been resumed during the commit.
      if (process_changes === changes_before) waiting.set(id, waits_for)
      else lower(id, 0)
    }
    const now_ms = clock.now_ms()
    if (next_ms === undefined || next_ms > now_ms) decided_until_ms.delete(id)
    else if (!is_catching_up) decided_until_ms.set(id, now_ms + late_ms_max)
    if (next_ms !== undefined) lower(id, next_ms)
  }

  async function setPaused(id: string, is_paused: boolean): Promise<void> {
    const { next_ms } = await transactions.update((tx) => {
      const record = requireSchedule(tx, id)
      if (record.is_paused !== is_paused) saveSchedule(tx, id, { ...record, is_paused })
      return record
    })
    if (is_paused || next_ms === null) return
    lower(id, next_ms)
    wake()
  }

  async function each(visit: (id: string, record: ScheduleRecord) => void): Promise<void> {
    await eachEntry(store, 'schedule', slice_schedules, (_view, { key, value }) =>
      visit(scheduleOfKey(key), decodeRecord<ScheduleRecord>(value)),
    )
  }

  const due_schedules: DueSchedules = {
    read: () =>
      each((id, { is_paused, next_ms }) => {
        if (!is_paused && next_ms !== null) lower(id, next_ms)
      }),
    earliest_ms: () => earliest_ms,
    async fire() {
      const now_ms = clock.now_ms()
      const ids = [...due]
        .filter(([, due_ms]) => due_ms <= now_ms)
        .sort(([, one_ms], [, other_ms]) => one_ms - other_ms)
        .slice(0, schedules_per_slice)
      // In one turn, so that they share a commit.
      const ends = await Promise.allSettled(ids.map(([id]) => fireOne(id)))
      earliest_ms = Number.POSITIVE_INFINITY
      for (const due_ms of due.values()) earliest_ms = Math.min(earliest_ms, due_ms)
      const failed = ends.find((end) => end.status === 'rejected')
      if (failed !== undefined) throw failed.reason
    },
    onProcessChanged(conv_id) {
      process_changes++
      for (const [id, waits_for] of waiting) {
        if (waits_for !== conv_id) continue
        waiting.delete(id)
        lower(id, 0)
      }
    },
  }

  const schedules: Schedules = {
    async put(input) {
      const { id, definition } = readSchedule(input, limits)
      const now_ms = clock.now_ms()
      const result = await transactions.update((tx) => {
        requireProcess(tx, catalog, definition.conv_id)
        return putSchedule(tx, id, definition, now_ms, limits.schedules_max)
      })
      if (result.next_ms !== null) {
        lower(id, result.next_ms)
        wake()
      }
      return result
    },
    async list() {
      const found: ScheduleInfo[] = []
      await each((id, record) => found.push(infoOf(id, record)))
      return found
    },
    async show(id) {
      const record = await store.view((view) => requireSchedule(view, id))
      return { ...infoOf(id, record), data_text: record.data_text }
    },
    pause: (id) => setPaused(id, true),
    resume: (id) => setPaused(id, false),
    async run(id) {
      const record = await store.view((view) => requireSchedule(view, id))
      const now_ms = clock.now_ms()
      const op = createOp(record, `${id}/run@${new Date(now_ms).toISOString()}`, now_ms)
      const [result] = await submit([op], {})
      return result as OpResult
    },
    async remove(id) {
      await transactions.update((tx) => {
        requireSchedule(tx, id)
        tx.del(scheduleKey(id))
      })
      for (const kept of [due, waiting, decided_until_ms]) kept.delete(id)
    },
  }
  return { schedules, due_schedules }
}

function infoOf(id: string, record: ScheduleRecord): ScheduleInfo {
  const { data_text: _data, put_ms: _put, is_paused, ...info } = record
  const state = record.next_ms === null ? 'ended' : is_paused ? 'paused' : 'active'
  return { id, ...info, state }
}
