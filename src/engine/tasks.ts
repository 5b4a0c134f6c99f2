/**
 * Administration of one task: retry, cancel. Retry and cancel return results as ops do, because
 * they change tasks under the same rules.
 */
import type { Caller, ModifyOp, OpResult, ShowOp } from '../core/model.ts'
import { advance, enterNode } from './advance.ts'
import { recordEvent } from './history.ts'
import { migrateTask } from './migrate.ts'
import { accepted, findLive, findProcess, refused } from './ops.ts'
import { beginOp, saveAndDrain } from './run-queue.ts'
import { paused } from './task-rules.ts'
import type { Transaction } from './transaction.ts'

/** Runs a failed task again, from its node or from `node_id`. */
export function retryTask(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  node_id: string | undefined,
  caller: Caller = {},
): OpResult {
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  beginOp(tx)
  if (process.record.status === 'paused') return refused(op, paused)
  const draft = findLive(tx.store, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  if (task.status !== 'failed') {
    return refused(op, { code: 'error', description: 'the task has not failed', task })
  }
  migrateTask(tx, process, draft)
  if (node_id !== undefined && !process.graph.nodes.has(node_id)) {
    const description = `Value is not valid. node_id: "${node_id}" is no node`
    return refused(op, { code: 'error', description, task })
  }
  task.moves = 0
  if (node_id === undefined) {
    recordEvent(tx, task, 'retry', caller.user)
    advance(tx, process, draft, 0)
  } else enterNode(tx, process, draft, node_id, 'retry')
  saveAndDrain(tx, draft)
  return accepted(op, task)
}

/** Ends a live task as `canceled`. */
export function cancelTask(tx: Transaction, op: ModifyOp | ShowOp, caller: Caller = {}): OpResult {
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  const draft = findLive(tx.store, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  recordEvent(tx, task, 'cancel', caller.user)
  task.status = 'canceled'
  task.details = undefined
  task.wait = 'nothing'
  saveAndDrain(tx, draft)
  return accepted(op, task)
}
