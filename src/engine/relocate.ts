/**
 * Tasks whose node an import dropped. The import says where they go; they are moved in small steps,
 * or before that as soon as something wants them, so no task is ever worked on in a node that is
 * gone.
 *
 * A resting task enters the new node and runs; a failed one stays failed there, for retry and
 * cancel are its only ways on.
 */
import { processKey, taskOfKey, tasksAtNode } from '../bytes/keys.ts'
import { encodeRecord } from '../bytes/records.ts'
import type { Process } from './catalog.ts'
import { type Draft, loadTask, saveTask } from './task-file.ts'
import { enterNode, type Walked } from './walk.ts'
import type { Work } from './work.ts'

/** Where the tasks of a node go. A node may be called `constructor`, so only own members count. */
export function moveOf(
  moves: Readonly<Record<string, string>>,
  node_id: string,
): string | undefined {
  return Object.hasOwn(moves, node_id) ? moves[node_id] : undefined
}

/**
 * Puts the task into its new node if its own is gone, and tells whether it did. The caller saves
 * it.
 */
export function relocate(work: Work, process: Process, draft: Draft): Walked | undefined {
  const { task } = draft
  if (process.graph.nodes.has(task.node_id)) return undefined
  const to = moveOf(process.head.moves, task.node_id) ?? process.graph.start_id
  if (task.status === 'failed') {
    task.node_prev_id = task.node_id
    task.node_id = to
    task.visit++
    return { keep_ended: true }
  }
  return enterNode(work, process, draft, to)
}

/**
 * Moves up to `tasks_max` tasks of a process; true once none is left in a dropped node, or none but
 * damaged ones, which stay for `check` to name.
 */
export function relocateSome(work: Work, conv_id: string, tasks_max: number): boolean {
  const process = work.process(conv_id)
  if (process === undefined || process.head.status === 'paused') return true
  const dropped = Object.keys(process.head.moves)
  if (dropped.length === 0) return true
  let left = tasks_max
  let moved = 0
  for (const node_id of dropped) {
    for (const { key } of work.tx.scan({ ...tasksAtNode(conv_id, node_id), limit: left })) {
      left--
      const draft = loadTask(work.tx, taskOfKey(key))
      if (draft === undefined || draft === 'damaged') continue
      const walked = relocate(work, process, draft)
      if (walked === undefined) continue
      saveTask(work, draft, walked.keep_ended)
      moved++
      if (work.moves_made >= work.shared.limits.moves_per_transaction_max) return false
    }
    if (left === 0) return moved === 0
  }
  if (moved < tasks_max - left) return true
  work.tx.put(processKey(conv_id), encodeRecord({ ...process.head, moves: {} }))
  return true
}
