/**
 * What each op does to the store (wire 1.2), and what it is refused for (wire 1.4, second table, in
 * that order). An op is checked fully before its first write, so a refused one leaves nothing and
 * its neighbours stand.
 */
import { bytesOf, mergeDocs } from '../codec/json.ts'
import { refOf } from '../codec/op.ts'
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
  no_callback,
  not_found_task,
  type OpRefusal,
  overSize,
  paused,
} from './task-rules.ts'
import { type Draft, loadTask, newTask, refHolder, saveTask } from './task-store.ts'
import { viewTask } from './task-view.ts'
import type { ReadContext, TransactionContext } from './transaction-context.ts'
import { callbackLogic, isIdle } from './waits.ts'

export function applyOp(context: TransactionContext, op: Op, caller: Caller): OpResult {
  const process = access(context, op, caller)
  if ('code' in process) return refused(op, process)
  if (op.type === 'show') return show(context, op)
  beginOp(context)
  const result =
    op.type === 'create' ? create(context, process, op, caller) : modify(context, process, op)
  drainRunQueue(context)
  return result
}

/** The task of a show by the embedder, who may see all. Throws `task_damaged`. */
export function taskIn(view: View, op: ShowOp): Task | undefined {
  const found = findTask(view, op)
  if (!('code' in found)) return viewTask(found.task)
  if (found.code === 'task_damaged') throw fault(found.code, found.description)
  return undefined
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

/** One answer where the grant does not cover it and where there is no such process (wire 1.4). */
function access(context: ReadContext, op: Op, caller: Caller): Process | OpRefusal {
  const { conv_id } = op
  const { user } = caller
  if (user === undefined) return context.process(conv_id) ?? convNotFound(conv_id)
  const is_granted = (context.granted(user, conv_id) & grant_bits[op.type]) !== 0
  const process = is_granted ? context.process(conv_id) : undefined
  return process ?? accessDenied(user, conv_id)
}

function convNotFound(conv_id: string): OpRefusal {
  const description = `Object conv with id ${quoted(conv_id)} does not exist`
  return { code: 'conv_not_found', description }
}

function accessDenied(user: string, conv_id: string): OpRefusal {
  return { code: 'access_denied', description: `user: ${user}, conv_id: ${quoted(conv_id)}` }
}

function create(
  context: TransactionContext,
  process: Process,
  op: CreateOp,
  caller: Caller,
): OpResult {
  const admitted = checkNewTask(context.view, process, op.ref, op.data, context.engine.limits)
  if (admitted !== 'new') {
    return 'code' in admitted ? refused(op, admitted) : accepted(op, admitted.same)
  }
  const draft = newTask(context, {
    conv_id: op.conv_id,
    ref: op.ref,
    user_id: caller.user,
    doc: op.data,
  })
  const { keep_ended } = enterNode(context, process, draft, process.graph.start_id)
  saveTask(context, draft, keep_ended)
  return accepted(op, draft.task)
}

function modify(context: TransactionContext, process: Process, op: ModifyOp): OpResult {
  if (process.head.status === 'paused') return refused(op, paused)
  const found = findAtHome(context, process, op)
  if ('code' in found) return refused(op, found)
  const { task } = found
  const waits_at = callbackLogic(process, task)
  const demanded_elsewhere = op.node_id !== undefined && op.node_id !== task.node_id
  if ((op.is_sync || op.node_id !== undefined) && (waits_at === -1 || demanded_elsewhere)) {
    return refused(op, { ...no_callback, task })
  }
  const doc = mergeDocs(task.doc, op.data)
  const over = overSize(doc.text, context.engine.limits.task_bytes_max)
  if (over !== undefined) return refused(op, { ...over, task })
  task.doc = doc
  // In a state process a modify moves the task: the logics of its state run anew.
  const runs_state = process.graph.kind === 'state' && isIdle(task)
  const { keep_ended } =
    waits_at === -1 && !runs_state
      ? { keep_ended: true }
      : advance(context, process, found, waits_at + 1)
  saveTask(context, found, keep_ended)
  return accepted(op, task)
}

/**
 * A live task in a node that is there. One whose node was dropped is moved first, and that stands,
 * whatever becomes of the op: on its way the task may have made or changed others.
 */
function findAtHome(
  context: TransactionContext,
  process: Process,
  op: ModifyOp,
): Draft | OpRefusal {
  const found = findLive(context.tx, op)
  if ('code' in found) return found
  const walked = migrateTask(context, process, found)
  if (walked === undefined) return found
  saveTask(context, found, walked.keep_ended)
  return findLive(context.tx, op)
}

function show(context: TransactionContext, op: ShowOp): OpResult {
  const { answer_bytes_max } = context.engine.limits
  const description = `Answer size is over ${answer_bytes_max} bytes`
  // Those behind the first that is too much are refused too, and not looked for.
  if (context.shown_bytes > answer_bytes_max) {
    return refused(op, { code: 'answer_too_large', description })
  }
  const found = findTask(context.tx, op)
  if ('code' in found) return refused(op, found)
  context.shown_bytes += bytesOf(found.task.doc.text)
  if (context.shown_bytes > answer_bytes_max) {
    return refused(op, { code: 'answer_too_large', description, task: found.task })
  }
  return Object.assign(accepted(op, found.task), { task: viewTask(found.task) })
}

/** A live task of the op's process. */
export function findLive(view: View, op: ModifyOp | ShowOp): Draft | OpRefusal {
  const found = findTask(view, op)
  if ('code' in found || is_live[found.task.status]) return found
  return not_found_task
}

/** By obj_id where there is one, also an ended task; else the live task with that ref. */
function findTask(view: View, op: ModifyOp | ShowOp): Draft | OpRefusal {
  const obj_id = op.obj_id ?? refHolder(view, op.conv_id, op.ref?.text ?? '')
  const found = obj_id === undefined ? undefined : loadTask(view, obj_id)
  if (found === 'damaged') return damaged(obj_id as string)
  if (found === undefined || found.task.conv_id !== op.conv_id) return not_found_task
  return found
}

const quoted_chars_max = 128
const quoted = (conv_id: string): string => conv_id.slice(0, quoted_chars_max)
