/**
 * The newest failed tasks by process, node and tag, so that a thousand failures of one cause are
 * one line. They are read again only after a task has failed or is failed no longer, at most once a
 * second, and of each task only once.
 */
import type { Clock } from '../../core/clock.ts'
import { isFault } from '../../core/faults.ts'
import type { FailedTask, Flow } from '../../engine/flow/flow.ts'
import type { FailedGroup, FailedTasks, ProcessRow } from './messages.ts'
import { atMostEvery } from './shared-reading.ts'

const read_every_ms = 1_000
const grouped_max = 1_000
const none: FailedTasks = { total: 0, grouped: 0, groups: [] }

/** The same object for as long as nothing has changed. */
export function newFailedGroups(
  flow: Flow,
  clock: Clock,
): (rows: readonly ProcessRow[]) => Promise<FailedTasks> {
  let rows: readonly ProcessRow[] = []
  let tasks: readonly FailedTask[] = []
  let last = none
  let read_mark = -1
  let read_of = ''

  async function read(): Promise<FailedTasks> {
    const failing = rows.filter(({ by_status }) => by_status.failed !== undefined)
    const mark = flow.failed_mark()
    // Titles may change with a version.
    const of = JSON.stringify(
      failing.map(({ conv_id, version, by_status }) => [conv_id, version, by_status.failed]),
    )
    if (mark === read_mark && of === read_of) return last
    try {
      const conv_ids = failing.map(({ conv_id }) => conv_id)
      tasks = await flow.failed(conv_ids, tasks, grouped_max)
      const total = failing.reduce((sum, { by_status }) => sum + (by_status.failed ?? 0), 0)
      last = { total, grouped: tasks.length, groups: await withTitles(flow, rows, groupsOf(tasks)) }
      read_mark = mark
      read_of = of
    } catch (error) {
      if (!isFault(error)) throw error
    }
    return last
  }

  const shared = atMostEvery(() => read_every_ms, clock, read)
  return (now) => {
    rows = now
    return shared()
  }
}

type Group = Omit<FailedGroup, 'title' | 'node_title'>

/** In the order of their newest tasks. */
function groupsOf(tasks: readonly FailedTask[]): Group[] {
  const groups = new Map<string, Group & { tasks: number }>()
  for (const { conv_id, node_id, tag, change_ms, obj_id } of tasks) {
    const key = JSON.stringify([conv_id, node_id, tag])
    const group = groups.get(key)
    if (group !== undefined) group.tasks++
    else {
      const newest = { newest_ms: change_ms, newest_obj_id: obj_id }
      groups.set(key, { conv_id, node_id, tag, tasks: 1, ...newest })
    }
  }
  return [...groups.values()]
}

async function withTitles(
  flow: Flow,
  rows: readonly ProcessRow[],
  groups: readonly Group[],
): Promise<FailedGroup[]> {
  const of_process = new Map<string, Set<string>>()
  for (const { conv_id, node_id } of groups) {
    of_process.set(conv_id, (of_process.get(conv_id) ?? new Set()).add(node_id))
  }
  const node_titles = new Map<string, ReadonlyMap<string, string>>()
  for (const [conv_id, node_ids] of of_process) {
    node_titles.set(conv_id, await flow.titles(conv_id, node_ids))
  }
  const titles = new Map(rows.map(({ conv_id, title }) => [conv_id, title]))
  return groups.map((group) => ({
    ...group,
    title: titles.get(group.conv_id) ?? '',
    node_title: node_titles.get(group.conv_id)?.get(group.node_id) ?? '',
  }))
}
