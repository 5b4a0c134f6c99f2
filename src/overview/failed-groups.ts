/**
 * The newest failed tasks by process, node and tag, so that a thousand failures of one cause are
 * one line.
 */
import type { Engine } from '../engine/api.ts'
import type { FailedGroup, FailedTasks } from './messages.ts'

const grouped_max = 1_000

export async function failedGroups(engine: Engine): Promise<FailedTasks> {
  const { total, rows } = await engine.tasks.count({ status: 'failed' })
  if (total === 0) return { total, grouped: 0, groups: [] }
  const titles = new Map(rows.map(({ conv_id, title }) => [conv_id, title]))
  const query = { status: 'failed', newest_first: true, limit: grouped_max } as const
  const { tasks } = await engine.tasks.list(query)
  const groups = new Map<string, FailedGroup>()
  for (const { conv_id, node_id, obj_id, status_details, change_time_ms } of tasks) {
    const tag = status_details?.tag ?? ''
    const key = JSON.stringify([conv_id, node_id, tag])
    const known = groups.get(key)
    groups.set(
      key,
      known === undefined
        ? {
            ...{ conv_id, node_id, tag, title: titles.get(conv_id) ?? '', node_title: '' },
            ...{ tasks: 1, newest_ms: change_time_ms, newest_obj_id: obj_id },
          }
        : { ...known, tasks: known.tasks + 1 },
    )
  }
  return { total, grouped: tasks.length, groups: [...groups.values()] }
}
