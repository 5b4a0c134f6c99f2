/**
 * What ops do to tasks, and what they are refused for, in the order of the fault table. An op is
 * checked fully before its first write, so a refused op changes nothing, and the ops beside it
 * stand.
 */
import { bytesOf } from '../codec/json.ts'
import { isOp, refOf } from '../codec/op.ts'
import { grant_bits } from '../codec/records.ts'
import { is_live, type TaskRecord } from '../codec/task-record.ts'
import { fault } from '../core/faults.ts'
import type { Caller, CreateOp, ModifyOp, Op, OpResult, ShowOp, Task } from '../core/model.ts'
import type { View } from '../store/store.ts'
import { advance, enterNode } from './advance.ts'
import type { Process } from './catalog.ts'
import { migrateTask } from './migrate.ts'
import { beginOp, drainRunQueue } from './run-queue.ts'
import {
  checkNewTask,
  damaged,
  modifyTask,
  noProcess,
  not_found_task,
  type OpRefusal,
  paused,
  stays,
} from './task-rules.ts'
import { type Draft, loadTask, newTask, refHolder, saveTask } from './task-store.ts'
import { viewTask } from './task-view.ts'
import type { TransactionContext } from './transaction-context.ts'

/** One result for each op, in order. A malformed op is its result already. */
export function applyOps(
  context: TransactionContext,
  ops: readonly (Op | OpResult)[],
  caller: Caller,
): OpResult[] {
  return ops.map((op) => (isOp(op) ? applyOp(context, op, caller) : op))
}

function applyOp(context: TransactionContext, op: Op, caller: Caller): OpResult {
  const process = findProcess(context, op, caller)
  if ('code' in process) return refused(op, process)
  if (op.type === 'show') return show(context, op)
  beginOp(context)
  const result =
    op.type === 'create' ? create(context, process, op, caller) : modify(context, process, op)
  drainRunQueue(context)
  return result
}

/** A user gets one answer for a process without a grant and for one that does not exist. */
function findProcess(context: TransactionContext, op: Op, { user }: Caller): Process | OpRefusal {
  const { conv_id } = op
  if (user === undefined) return context.process(conv_id) ?? noProcess(conv_id)
  const is_granted = (context.granted(user, conv_id) & grant_bits[op.type]) !== 0
  const process = is_granted ? context.process(conv_id) : undefined
  const description = `user: ${user}, conv_id: ${conv_id}`
  return process ?? { code: 'access_denied', description }
}

function create(
  context: TransactionContext,
  process: Process,
  op: CreateOp,
  { user }: Caller,
): OpResult {
  const { conv_id, ref, data } = op
  const check = checkNewTask(context, process, ref, data)
  if (check !== 'new') return 'code' in check ? refused(op, check) : accepted(op, check.same)
  const draft = newTask(context, { conv_id, ref, user_id: user, doc: data })
  enterNode(context, process, draft, process.graph.start_id)
  saveTask(context, draft)
  return accepted(op, draft.task)
}

function modify(context: TransactionContext, process: Process, op: ModifyOp): OpResult {
  if (process.head.status === 'paused') return refused(op, paused)
  const draft = findMigrated(context, process, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  const resume_at = modifyTask(context, process, task, op.data, op)
  if (typeof resume_at === 'object') return refused(op, resume_at)
  if (resume_at !== stays) advance(context, process, draft, resume_at)
  saveTask(context, draft)
  return accepted(op, task)
}

/**
 * The live task, moved first if an import dropped its node. The move stands even if the op is
 * refused, because the task may have created or changed other tasks on its way.
 */
function findMigrated(
  context: TransactionContext,
  process: Process,
  op: ModifyOp,
): Draft | OpRefusal {
  const draft = findLive(context.tx, op)
  if ('code' in draft || !migrateTask(context, process, draft)) return draft
  saveTask(context, draft)
  return findLive(context.tx, op)
}

function show(context: TransactionContext, op: ShowOp): OpResult {
  const { answer_bytes_max } = context.engine.limits
  const description = `Answer size is over ${answer_bytes_max} bytes`
  // Once the answer is too large, later tasks are refused without being loaded.
  if (context.shown_bytes > answer_bytes_max) {
    return refused(op, { code: 'answer_too_large', description })
  }
  const draft = findTask(context.tx, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  context.shown_bytes += bytesOf(task.doc.text)
  if (context.shown_bytes > answer_bytes_max) {
    return refused(op, { code: 'answer_too_large', description, task })
  }
  return Object.assign(accepted(op, task), { task: viewTask(task) })
}

/** The task of a show by the embedder, who may see all tasks. Throws `task_damaged`. */
export function shownTask(view: View, op: ShowOp): Task | undefined {
  const draft = findTask(view, op)
  if (!('code' in draft)) return viewTask(draft.task)
  if (draft.code === 'task_damaged') throw fault(draft.code, draft.description)
  return undefined
}

/** A live task of the op's process. */
export function findLive(view: View, op: ModifyOp | ShowOp): Draft | OpRefusal {
  const draft = findTask(view, op)
  if ('code' in draft || is_live[draft.task.status]) return draft
  return not_found_task
}

/** The task with the op's obj_id, also an ended one; without one, the live holder of its ref. */
function findTask(view: View, op: ModifyOp | ShowOp): Draft | OpRefusal {
  const obj_id = op.obj_id ?? refHolder(view, op.conv_id, op.ref?.text ?? '')
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

export function accepted(op: Op, task: Pick<TaskRecord, 'obj_id' | 'ref'>): OpResult {
  const { type, id_text } = op
  const ref = op.type !== 'create' && op.obj_id !== undefined ? task.ref : op.ref
  const { obj_id } = task
  if (id_text === undefined && ref?.is_number !== true) {
    return { type, ref: ref === undefined ? null : ref.text, obj: 'task', obj_id, proc: 'ok' }
  }
  const id = id_text === undefined ? {} : { id_text }
  return { type, ...id, ...refOf(ref), obj: 'task', obj_id, proc: 'ok' }
}
