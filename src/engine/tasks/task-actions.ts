/**
 * Administration of one task: retry, move, cancel. They return results as ops do, because they
 * change tasks under the same rules.
 */
import type { TaskRecord } from '../../codec/task-record.ts'
import type { Caller, ModifyOp, OpResult, ShowOp } from '../../core/model.ts'
import type { ActionResult } from '../api/task-api.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { beginOp } from '../transactions/transaction-queue.ts'
import { advance, enterNode } from './advance.ts'
import { draftOfDamaged } from './damaged-task.ts'
import { completeHistory, recordEvent } from './history.ts'
import { migrateTask } from './migrate.ts'
import { accepted, findLive, findProcess, refused } from './ops.ts'
import { saveAndDrain } from './run-queue.ts'
import { inactiveOf, type OpRefusal, paused } from './task-rules.ts'
import type { TaskDraft } from './task-store.ts'
import { viewTask } from './task-view.ts'

/** Runs a failed task again, from its node or from `node_id`. */
export function retryTask(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  node_id: string | undefined,
  caller: Caller = {},
): ActionResult {
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  beginOp(tx)
  if (process.record.status === 'paused') return refused(op, paused)
  const draft = findLive(tx.store, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  const was = placeOf(task)
  if (task.status !== 'failed') {
    return refused(op, { code: 'error', description: 'the task has not failed', task })
  }
  migrateTask(tx, process, draft)
  if (node_id !== undefined && !process.graph.nodes.has(node_id)) return noNode(op, node_id, task)
  task.moves = 0
  if (node_id === undefined) {
    recordEvent(tx, task, 'retry', caller.user)
    advance(tx, process, draft, 0)
  } else enterNode(tx, process, draft, node_id, 'retry', caller.user)
  return saved(tx, op, was, draft)
}

/** Puts a live task into another node, where it runs on; what it waits for is given up. */
export function moveTask(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  node_id: string,
  caller: Caller = {},
): ActionResult {
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  beginOp(tx)
  const inactive = inactiveOf(process)
  if (inactive !== undefined) return refused(op, inactive)
  const draft = findLive(tx.store, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  if (!process.graph.nodes.has(node_id)) return noNode(op, node_id, task)
  const was = placeOf(task)
  task.moves = 0
  enterNode(tx, process, draft, node_id, 'move', caller.user)
  return saved(tx, op, was, draft)
}

/** Ends a live task as `canceled`; one whose record is damaged, without its data. */
export function cancelTask(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  caller: Caller = {},
): ActionResult {
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  beginOp(tx)
  const found = findLive(tx.store, op)
  const draft = soundOf(tx, op, found)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  const was = placeOf(task)
  recordEvent(tx, task, 'cancel', caller.user)
  task.status = 'canceled'
  task.details = undefined
  task.wait = 'nothing'
  return saved(tx, op, was, draft)
}

/** In place of a damaged task, what its keys tell of it. */
function soundOf(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  found: TaskDraft | OpRefusal,
): TaskDraft | OpRefusal {
  if (!('code' in found) || found.code !== 'task_damaged' || found.task === undefined) return found
  return draftOfDamaged(tx, op.conv_id, found.task.obj_id) ?? found
}

function placeOf({ status, node_id }: TaskRecord): NonNullable<ActionResult['was']> {
  return { status, node_id }
}

function noNode(op: ModifyOp | ShowOp, node_id: string, task: TaskRecord): OpResult {
  const description = `Value is not valid. node_id: "${node_id}" is no node`
  return refused(op, { code: 'error', description, task })
}

/** The task is as this change leaves it: others that it has made ready may change it then. */
function saved(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  was: NonNullable<ActionResult['was']>,
  draft: TaskDraft,
): ActionResult {
  const { task } = draft
  // For one that is not kept no save does, and others that run then forget where it went.
  completeHistory(tx, task)
  saveAndDrain(tx, draft)
  return { ...accepted(op, task), was, task: viewTask(task) }
}
