/**
 * Applies ops to tasks, with refusals in the order of the fault table. An op is checked fully
 * before its first write, so a refused op changes nothing and does not affect the others.
 */
import { digestOf } from '../../codec/doc-text.ts'
import { bytesOf } from '../../codec/json.ts'
import { isOp, refOf } from '../../codec/op.ts'
import { grant_bits } from '../../codec/records.ts'
import { is_live, type TaskRecord } from '../../codec/task-record.ts'
import { isAliasId, shownConvId } from '../../core/alias.ts'
import type {
  Caller,
  CreateOp,
  HistoryWhy,
  ModifyOp,
  Op,
  OpResult,
  ShowOp,
  Task,
} from '../../core/model.ts'
import type { View } from '../../store/store.ts'
import type { Process } from '../transactions/catalog.ts'
import { convIdOf } from '../transactions/stages.ts'
import type { ReadContext, Transaction } from '../transactions/transaction.ts'
import { beginOp } from '../transactions/transaction-queue.ts'
import { advance, enterNode, migrateTask } from './advance.ts'
import { recordEvent } from './history.ts'
import { drainRunQueue } from './run-queue.ts'
import {
  accessDenied,
  checkNewTask,
  damaged,
  faultOf,
  inactiveOf,
  modifyTask,
  noProcess,
  not_found_task,
  type OpRefusal,
  stays,
} from './task-rules.ts'
import { loadTask, newTask, saveTask, type TaskDraft, taskIdOfRef } from './task-store.ts'
import { viewTask } from './task-view.ts'

export function applyOps(
  tx: Transaction,
  ops: readonly (Op | OpResult)[],
  caller: Caller,
): OpResult[] {
  return ops.map((op) => (isOp(op) ? applyOp(tx, op, caller) : op))
}

function applyOp(tx: Transaction, given: Op, caller: Caller): OpResult {
  const op = named(tx.store, given)
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  if (op.type === 'show') return showInTransaction(tx, op)
  beginOp(tx)
  const result =
    op.type === 'create' ? create(tx, process, op, caller) : modify(tx, process, op, caller)
  drainRunQueue(tx)
  return result
}

/** The op on the process that its alias names, where it names one. */
export function named<Named extends Op>(view: View, op: Named): Named {
  if (!isAliasId(op.conv_id)) return op
  return { ...op, conv_id: shownConvId(convIdOf(view, op.conv_id)) }
}

/** A user gets one answer for an unknown process and one without a grant. */
export function findProcess(from: ReadContext, op: Op, { user }: Caller): Process | OpRefusal {
  const { conv_id } = op
  if (user === undefined) return from.process(conv_id) ?? noProcess(conv_id)
  const is_granted = (from.grantBits(user, conv_id) & grant_bits[op.type]) !== 0
  const process = is_granted ? from.process(conv_id) : undefined
  return process ?? accessDenied(user, conv_id)
}

export function create(
  tx: Transaction,
  process: Process,
  op: CreateOp,
  { user }: Caller,
  why: HistoryWhy = 'create',
): OpResult {
  const { conv_id, ref, data, identity } = op
  const check = checkNewTask(tx, process, ref, data, identity)
  if ('code' in check) return refused(op, check)
  if ('same' in check) {
    const result = accepted(op, check.same)
    return identity === undefined ? result : { ...result, task: viewTask(check.same) }
  }
  const { former } = check
  const draft = newTask(tx, { conv_id, ref, user_id: user, doc: data, former, trace: tx.cause })
  if (identity !== undefined && ref !== undefined) draft.task.digest = digestOf(identity)
  enterNode(tx, process, draft, process.graph.start_id, why, user)
  saveTask(tx, draft)
  return accepted(op, draft.task)
}

function modify(tx: Transaction, process: Process, op: ModifyOp, { user }: Caller): OpResult {
  const inactive = inactiveOf(process)
  if (inactive !== undefined) return refused(op, inactive)
  const draft = findMigrated(tx, process, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  const resume_at = modifyTask(tx, process, task, op.data, op)
  if (typeof resume_at === 'object') return refused(op, resume_at)
  task.trace ??= tx.cause
  recordEvent(tx, task, resume_at > 0 ? 'callback' : 'modify', user)
  if (resume_at !== stays) advance(tx, process, draft, resume_at)
  saveTask(tx, draft)
  return accepted(op, task, resume_at !== stays)
}

/**
 * The live task, migrated first if its node was dropped. The migration stays even if the op is
 * refused, because it may have changed other tasks.
 */
function findMigrated(tx: Transaction, process: Process, op: ModifyOp): TaskDraft | OpRefusal {
  const draft = findLive(tx.store, op)
  if ('code' in draft || !migrateTask(tx, process, draft)) return draft
  saveTask(tx, draft)
  return findLive(tx.store, op)
}

/** Sees its transaction's changes; the answer waits for their commit. */
function showInTransaction(tx: Transaction, op: ShowOp): OpResult {
  const { answer_bytes_max } = tx.engine.limits
  const description = `Answer size is over ${answer_bytes_max} bytes`
  // Once the answer is too large, later tasks are refused without being loaded.
  if (tx.shown_bytes > answer_bytes_max) {
    return refused(op, { code: 'answer_too_large', description })
  }
  const draft = findTask(tx.store, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  tx.shown_bytes += bytesOf(task.doc.text)
  if (tx.shown_bytes > answer_bytes_max) {
    return refused(op, { code: 'answer_too_large', description, task })
  }
  return Object.assign(accepted(op, task), { task: viewTask(task) })
}

/** An embedder's show, from durable state only. Throws `task_damaged`. */
export function taskInView(view: View, op: ShowOp): Task | undefined {
  const draft = findTask(view, named(view, op))
  if (!('code' in draft)) return viewTask(draft.task)
  if (draft.code === 'task_damaged') throw faultOf(draft)
  return undefined
}

export function requireRight(from: ReadContext, op: Op, caller: Caller): void {
  const process = findProcess(from, named(from.view, op), caller)
  if ('code' in process) throw faultOf(process)
}

/** The task as a caller may see it. Throws the fault of the op. */
export function readTask(from: ReadContext, op: ShowOp, caller: Caller): Task {
  requireRight(from, op, caller)
  const found = findTask(from.view, named(from.view, op))
  if ('code' in found) throw faultOf(found)
  return viewTask(found.task)
}

export function findLive(view: View, op: ModifyOp | ShowOp): TaskDraft | OpRefusal {
  const draft = findTask(view, op)
  if ('code' in draft || is_live[draft.task.status]) return draft
  return not_found_task
}

/** By obj_id or else ref, also an ended task that is kept. */
export function findTask(view: View, op: ModifyOp | ShowOp): TaskDraft | OpRefusal {
  const obj_id = op.obj_id ?? taskIdOfRef(view, op.conv_id, op.ref?.text ?? '')
  const draft = obj_id === undefined ? undefined : loadTask(view, obj_id)
  if (draft === 'damaged') return damaged(obj_id as string)
  if (draft === undefined || draft.task.conv_id !== op.conv_id) return not_found_task
  return draft
}

export function refused(op: Op, { code, description, task }: OpRefusal): OpResult {
  return {
    type: op.type,
    ...(op.id_text === undefined ? {} : { id_text: op.id_text }),
    ...refOf(op.ref ?? task?.ref),
    obj: 'task',
    ...(task === undefined ? {} : { obj_id: task.obj_id }),
    proc: code,
    description,
  }
}

export function accepted(
  op: Op,
  task: Pick<TaskRecord, 'obj_id' | 'ref'>,
  resumed?: boolean,
): OpResult {
  const { type, id_text } = op
  const ref = op.type !== 'create' && op.obj_id !== undefined ? task.ref : op.ref
  const { obj_id } = task
  if (id_text === undefined && ref?.is_number !== true) {
    const text = ref === undefined ? null : ref.text
    if (resumed === undefined) return { type, ref: text, obj: 'task', obj_id, proc: 'ok' }
    return { type, ref: text, obj: 'task', obj_id, proc: 'ok', resumed }
  }
  const id = id_text === undefined ? {} : { id_text }
  const more = resumed === undefined ? {} : { resumed }
  return { type, ...id, ...refOf(ref), obj: 'task', obj_id, proc: 'ok', ...more }
}
