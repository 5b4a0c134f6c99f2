/**
 * The admin verbs on schedules. Data crosses the socket as text, so that numbers keep their digits;
 * what the process marks as auto-clear is masked, as in the data of tasks.
 */
import { rawJson } from '../../codec/json.ts'
import { isFault } from '../../core/faults.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import type {
  PutScheduleResult,
  ScheduleDetails,
  ScheduleInput,
} from '../../engine/api/schedule-api.ts'
import { maskedPaths, maskTask } from '../../task-operations/hidden-params.ts'
import { type ResultView, viewOfResult } from '../../task-operations/task-actions.ts'

export type ScheduleArgs = Omit<ScheduleInput, 'data'> & { readonly data_text: string }

export function putSchedule(
  engine: Engine,
  { data_text, ...schedule }: ScheduleArgs,
): Promise<PutScheduleResult> {
  return engine.schedules.put({ ...schedule, data: rawJson(data_text) })
}

export async function showSchedule(
  engine: Engine,
  { id }: { readonly id: string },
): Promise<ScheduleDetails> {
  const schedule = await engine.schedules.show(id)
  try {
    const { definition_text } = await engine.processes.show(schedule.conv_id)
    return { ...schedule, ...maskTask(schedule, maskedPaths(definition_text)) }
  } catch (error) {
    if (isFault(error) && error.code === 'conv_not_found') return schedule
    throw error
  }
}

export async function runSchedule(
  engine: Engine,
  { id }: { readonly id: string },
): Promise<ResultView> {
  return viewOfResult(await engine.schedules.run(id))
}
