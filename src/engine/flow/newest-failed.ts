/**
 * The newest failed tasks of processes, by the index of failed tasks. The time in its key is that
 * of the last change, so a task that was read before with the same time is not read again.
 */
import { failedOf, idHex, timeOfKey } from '../../codec/keys.ts'
import { nextTurn } from '../../core/clock.ts'
import type { Store, View } from '../../store/store.ts'
import { sourceOf } from '../search/search-order.ts'
import { loadTask } from '../tasks/task-store.ts'

export interface FailedTask {
  readonly conv_id: string
  readonly obj_id: string
  readonly node_id: string
  readonly tag: string
  readonly change_ms: number
}

/** Tasks that are read in one turn. */
const slice_tasks = 100

/** The newest first, at most `tasks_max`; `known` are those of the last call. */
export async function newestFailed(
  store: Pick<Store, 'view'>,
  conv_ids: readonly string[],
  known: readonly FailedTask[],
  tasks_max: number,
): Promise<FailedTask[]> {
  const runs = conv_ids.map((conv_id) => {
    const all = failedOf(conv_id)
    return { ...all, prefix: all.from, is_by_ref: false }
  })
  const source = sourceOf(() => runs, true)
  const { entries } = await store.view((view) => source.next(view, undefined, tasks_max))
  const before = new Map(known.map((task) => [task.obj_id, task]))
  const found: FailedTask[] = []
  const newest = entries.slice(0, tasks_max)
  for (let at = 0; at < newest.length; at += slice_tasks) {
    const slice = newest.slice(at, at + slice_tasks)
    const tasks = await store.view((view) =>
      slice.map(({ prefix, place, id }) => {
        const obj_id = idHex(id)
        const last = before.get(obj_id)
        const is_same = last?.change_ms === timeOfKey(prefix + place).ms
        return is_same ? last : failedTask(view, obj_id)
      }),
    )
    found.push(...tasks.filter((task) => task !== undefined))
    await nextTurn()
  }
  return found
}

/** Undefined for one that has been retried or canceled meanwhile. */
function failedTask(view: View, obj_id: string): FailedTask | undefined {
  const draft = loadTask(view, obj_id)
  if (draft === undefined || draft === 'damaged') return undefined
  const { conv_id, node_id, status, details, change_ms } = draft.task
  if (status !== 'failed') return undefined
  return { conv_id, obj_id, node_id, tag: details?.tag ?? '', change_ms }
}
