/**
 * Compares the counters of nodes with their tasks, for `check`. Counting in slices is inconclusive
 * for a node whose tasks change meanwhile: if its process is small it is counted again in one view,
 * else a later check must do it. Processes with a damaged task are skipped, because its node is
 * unknown.
 */
import {
  endedOf,
  type Key,
  nodeCountKey,
  nodeCountOfKey,
  taskOfKey,
  tasksAtNode,
} from '../../codec/keys.ts'
import { decodeCounts, noTasks, type StatusCounts } from '../../codec/records.ts'
import { statuses, type TaskRecord } from '../../codec/task-record.ts'
import type { View } from '../../store/store.ts'
import { readableTask } from '../tasks/task-store.ts'
import { countsByNode } from '../transactions/node-counters.ts'

const recounted_max = 20_000

export interface Counted {
  readonly nodes: ReadonlyMap<Key, StatusCounts>
  of(key: Key): StatusCounts
  add(task: TaskRecord): void
}

export function newCounted(): Counted {
  const nodes = new Map<Key, StatusCounts>()
  function of(key: Key): StatusCounts {
    let known = nodes.get(key)
    if (known === undefined) {
      known = noTasks()
      nodes.set(key, known)
    }
    return known
  }
  return {
    nodes,
    of,
    add({ conv_id, node_id, status }) {
      of(nodeCountKey(conv_id, node_id))[status]++
    },
  }
}

/** A sentence that names the breach, or undefined. */
export function checkCount(
  view: View,
  key: Key,
  counted: StatusCounts,
  changed: ReadonlySet<Key>,
): string | undefined {
  const stated = decodeCounts(view.get(key))
  const { conv, node } = nodeCountOfKey(key)
  const there = changed.has(key) ? recounted(view, key) : counted
  if (there === undefined) return undefined
  const wrong = statuses.filter((status) => stated[status] !== there[status])
  if (wrong.length === 0) return undefined
  const says = wrong.map((status) => `${stated[status]} ${status} and has ${there[status]}`)
  return `node "${node}" of ${conv} counts ${says.join(', ')}`
}

/** Undefined if it would take too long. */
function recounted(view: View, key: Key): StatusCounts | undefined {
  const { conv, node } = nodeCountOfKey(key)
  let tasks = 0
  for (const { processed, canceled } of countsByNode(view, conv).values()) {
    tasks += processed + canceled
  }
  const { processing, delayed, failed } = decodeCounts(view.get(key))
  if (tasks + processing + delayed + failed > recounted_max) return undefined
  const again = newCounted()
  for (const range of [tasksAtNode(conv, node), endedOf(conv)]) {
    for (const listed of view.scan({ ...range, limit: recounted_max })) {
      const held = readableTask(view, taskOfKey(listed.key))
      if (held === undefined) return undefined
      again.add(held.task)
    }
  }
  return again.of(key)
}
