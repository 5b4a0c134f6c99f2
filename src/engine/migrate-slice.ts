/**
 * Empties the nodes that an import dropped, in small steps, each task with what it sets off besides
 * itself.
 */
import { processKey, taskOfKey, tasksAtNode } from '../codec/keys.ts'
import { encodeRecord } from '../codec/records.ts'
import { migrateTask } from './migrate.ts'
import { beginOp, drainRunQueue } from './run-queue.ts'
import { loadTask, saveTask } from './task-store.ts'
import type { TransactionContext } from './transaction-context.ts'

/**
 * Moves up to `tasks_max` tasks of a process; true once none is left in a dropped node, or none but
 * damaged ones, which stay for `check` to name.
 */
export function migrateSlice(
  context: TransactionContext,
  conv_id: string,
  tasks_max: number,
): boolean {
  const process = context.process(conv_id)
  if (process === undefined || process.head.status === 'paused') return true
  const dropped = Object.keys(process.head.moves)
  if (dropped.length === 0) return true
  let left = tasks_max
  let moved = 0
  for (const node_id of dropped) {
    for (const { key } of context.tx.scan({ ...tasksAtNode(conv_id, node_id), limit: left })) {
      left--
      const draft = loadTask(context.tx, taskOfKey(key))
      if (draft === undefined || draft === 'damaged') continue
      beginOp(context)
      const walked = migrateTask(context, process, draft)
      if (walked === undefined) continue
      saveTask(context, draft, walked.keep_ended)
      drainRunQueue(context)
      moved++
      if (context.moves_made >= context.engine.limits.moves_per_transaction_max) return false
    }
    if (left === 0) return moved === 0
  }
  if (moved < tasks_max - left) return true
  context.tx.put(processKey(conv_id), encodeRecord({ ...process.head, moves: {} }))
  return true
}
