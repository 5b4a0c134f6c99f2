/**
 * Empties the nodes that an import dropped, in small steps, each task with what it sets off besides
 * itself.
 */
import { processKey, taskOfKey, tasksAtNode } from '../codec/keys.ts'
import { encodeRecord } from '../codec/records.ts'
import { relocate } from './migrate.ts'
import { beginOp, settle } from './run-queue.ts'
import { loadTask, saveTask } from './task-store.ts'
import type { Work } from './transaction-context.ts'

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
      beginOp(work)
      const walked = relocate(work, process, draft)
      if (walked === undefined) continue
      saveTask(work, draft, walked.keep_ended)
      settle(work)
      moved++
      if (work.moves_made >= work.shared.limits.moves_per_transaction_max) return false
    }
    if (left === 0) return moved === 0
  }
  if (moved < tasks_max - left) return true
  work.tx.put(processKey(conv_id), encodeRecord({ ...process.head, moves: {} }))
  return true
}
