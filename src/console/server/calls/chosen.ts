/**
 * Bulk work on tasks that were chosen one by one: each is changed as by its own call, some at once,
 * so that they share commits. All is done within one call, and counted as a bulk job counts.
 */
import { is_live } from '../../../codec/task-record.ts'
import { codeOf, isStoreUnavailable } from '../../../core/faults.ts'
import type { Doc, OpResult, Task } from '../../../core/model.ts'
import type { BulkAction, BulkJob } from '../../../engine/api/bulk-api.ts'
import type { TaskFilter } from '../../../engine/api/search-api.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import { act } from '../../../task-operations/task-actions.ts'

/** What is to be done, and to which tasks. */
export interface Work {
  readonly action: BulkAction
  readonly filter: TaskFilter
  /** With `modify`, and only there. */
  readonly data?: Doc
  readonly to_node_id?: string
}

/** Counts those that the action takes, as they are now. */
export async function countChosen(
  engine: ServedEngine,
  work: Work,
  obj_ids: readonly string[],
): Promise<BulkJob> {
  return dealWith(engine, work, obj_ids, async () => undefined)
}

export async function changeChosen(
  engine: ServedEngine,
  work: Work,
  obj_ids: readonly string[],
): Promise<BulkJob> {
  return dealWith(engine, work, obj_ids, ({ conv_id, obj_id }) => {
    const { action, data, to_node_id } = work
    return act(
      engine,
      { conv_id, obj_id },
      { action, ...(data && { data }), ...(to_node_id && { node_id: to_node_id }) },
    )
  })
}

const at_once_max = 64

/** `deal` returns what became of a task, or nothing where it was only to be counted. */
async function dealWith(
  engine: ServedEngine,
  work: Work,
  obj_ids: readonly string[],
  deal: (task: Task) => Promise<OpResult | undefined>,
): Promise<BulkJob> {
  const { conv_id } = work.filter
  const job = {
    ...{ action: work.action, filter: conv_id === undefined ? {} : { conv_id } },
    ...{ is_done: true, started_ms: engine.clock.now_ms(), scanned: obj_ids.length },
  }
  const counts = { matched: 0, changed: 0, skipped: 0 }
  const refused: Record<string, number> = {}
  const one = async (obj_id: string): Promise<void> => {
    try {
      const { task } = (await engine.taskById(obj_id)) ?? {}
      if (task === undefined || !isMeant(work, task)) {
        counts.skipped++
        return
      }
      counts.matched++
      const { proc = '' } = (await deal(task)) ?? {}
      if (proc === 'ok') counts.changed++
      else if (proc !== '') refused[proc] = (refused[proc] ?? 0) + 1
    } catch (error) {
      if (isStoreUnavailable(error)) throw error
      refused[codeOf(error)] = (refused[codeOf(error)] ?? 0) + 1
    }
  }
  for (let at = 0; at < obj_ids.length; at += at_once_max) {
    await Promise.all(obj_ids.slice(at, at + at_once_max).map(one))
  }
  return { ...job, ...counts, refused }
}

function isMeant({ action, filter }: Work, { conv_id, status }: Task): boolean {
  const is_here = filter.conv_id === undefined || String(filter.conv_id) === conv_id
  return is_here && (action === 'retry' ? status === 'failed' : is_live[status])
}
