/**
 * Bulk work on tasks that were chosen one by one: each is changed as by its own call, several at
 * once, so that they share commits. One call does all of it, and counts as a bulk job counts.
 */
import { is_live } from '../../../codec/task-record.ts'
import { codeOf, isStoreUnavailable } from '../../../core/faults.ts'
import type { Task } from '../../../core/model.ts'
import type { TaskFilter } from '../../../engine/api/search-api.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import { act, type TaskAction } from '../../../task-operations/task-actions.ts'
import type { WorkedJob } from '../messages.ts'
import { settledCounts } from './settling.ts'

export interface Work extends TaskAction {
  readonly filter: TaskFilter
}

const at_once_max = 64

/** Changes the tasks that the action takes, or only counts them, as they are now. */
export async function changeChosen(
  engine: ServedEngine,
  work: Work,
  obj_ids: readonly string[],
  only_counts = false,
): Promise<WorkedJob> {
  const { conv_id } = work.filter
  const job = {
    ...{ action: work.action, filter: conv_id === undefined ? {} : { conv_id } },
    ...{ is_done: true, started_ms: engine.clock.now_ms(), scanned: obj_ids.length },
  }
  const counts = { matched: 0, changed: 0, skipped: 0 }
  const refused: Record<string, number> = {}
  const retried: string[] = []
  const one = async (obj_id: string): Promise<void> => {
    try {
      const { task } = (await engine.taskById(obj_id)) ?? {}
      if (task === undefined || !isMeant(work, task)) {
        counts.skipped++
        return
      }
      counts.matched++
      if (only_counts) return
      const { proc } = await act(engine, { conv_id: task.conv_id, obj_id }, work)
      if (proc === 'ok') {
        counts.changed++
        retried.push(obj_id)
      } else refused[proc] = (refused[proc] ?? 0) + 1
    } catch (error) {
      if (isStoreUnavailable(error)) throw error
      refused[codeOf(error)] = (refused[codeOf(error)] ?? 0) + 1
    }
  }
  for (let at = 0; at < obj_ids.length; at += at_once_max) {
    await Promise.all(obj_ids.slice(at, at + at_once_max).map(one))
  }
  const done = { ...job, ...counts, refused }
  if (only_counts || work.action !== 'retry') return done
  return { ...done, became: await settledCounts(engine, retried) }
}

function isMeant({ action, filter }: Work, { conv_id, status }: Task): boolean {
  const is_here = filter.conv_id === undefined || String(filter.conv_id) === conv_id
  return is_here && (action === 'retry' ? status === 'failed' : is_live[status])
}
