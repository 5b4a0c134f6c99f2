/**
 * The commands on other tasks: create, modify by ref, `queue` and `take`. Rules are those of ops
 * (task-rules); where an op would be refused, the command fails. A create is never a repetition,
 * because processes use a ref as a lock.
 */
import { mergeDocs } from '../../codec/doc-text.ts'
import { objectOf } from '../../codec/json.ts'
import { queueOf, queueOfKey } from '../../codec/keys.ts'
import { is_live, type TaskRecord } from '../../codec/task-record.ts'
import type { Doc } from '../../core/model.ts'
import type { Command, FailCommand } from '../../process/logic.ts'
import { advice } from '../../process/logics/failures.ts'
import type { Process } from '../transactions/catalog.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { resolveTarget } from './evaluation-context.ts'
import { recordEvent } from './history.ts'
import {
  accessDenied,
  checkNewTask,
  damaged,
  inactiveOf,
  modifyTask,
  no_callback,
  not_found_task,
  type OpRefusal,
  overSize,
  ref_taken,
  stays,
} from './task-rules.ts'
import { loadTask, readableTask, saveTask, type TaskDraft, taskIdOfRef } from './task-store.ts'
import { failCommand, resume, startTask, withMembers } from './transitions.ts'
import { waitLogic } from './waits.ts'

type CopyCreate = Extract<Command, { command: 'copy_create' }>
type CopyModify = Extract<Command, { command: 'copy_modify' }>

export function copyCreate(
  tx: Transaction,
  process: Process,
  task: TaskRecord,
  { conv, ref: ref_text, doc, err_node_id }: CopyCreate,
): Command {
  const target = resolveTarget(tx, process, task, conv, 'create')
  if (target === undefined) return copyFailed(accessDenied(task.user_id, conv.conv_id), err_node_id)
  const ref = ref_text === undefined ? undefined : { text: ref_text, is_number: false }
  // The task holds its own ref, also before it is first saved.
  const check = isOwnRef(task, target, ref_text) ? ref_taken : checkNewTask(tx, target, ref, doc)
  if (!('former' in check)) {
    const refusal = 'code' in check ? check : ref_taken
    return copyFailed(inactiveOf(target) ?? refusal, err_node_id)
  }
  const copied = copyDone(tx, task.doc, err_node_id)
  if (copied.command === 'set') {
    const { user_id, moves, trace } = task
    const given = { conv_id: target.conv_id, ref, user_id, doc, former: check.former, trace }
    startTask(tx, given, target.graph.start_id, moves, 'copy')
  }
  return copied
}

export function copyModify(
  tx: Transaction,
  process: Process,
  task: TaskRecord,
  command: CopyModify,
): Command {
  const { conv, ref, doc, is_sync, err_node_id } = command
  const target = resolveTarget(tx, process, task, conv, 'modify')
  if (target === undefined) return copyFailed(accessDenied(task.user_id, conv.conv_id), err_node_id)
  const inactive = inactiveOf(target)
  if (inactive !== undefined) return copyFailed(inactive, err_node_id)
  const obj_id = taskIdOfRef(tx.view, target.conv_id, ref)
  if (obj_id === task.obj_id || isOwnRef(task, target, ref)) {
    if (is_sync) return copyFailed(no_callback, err_node_id)
    return copyDone(tx, mergeDocs(task.doc, doc), err_node_id)
  }
  const copied = copyDone(tx, task.doc, err_node_id)
  if (copied.command !== 'set') return copied
  const refusal = modifyOther(tx, target, task, obj_id, command)
  return refusal === undefined ? copied : copyFailed(refusal, err_node_id)
}

function modifyOther(
  tx: Transaction,
  target: Process,
  from: TaskRecord,
  obj_id: string | undefined,
  command: CopyModify,
): OpRefusal | undefined {
  const draft = obj_id === undefined ? undefined : loadTask(tx.view, obj_id)
  if (draft === 'damaged') return damaged(obj_id as string)
  if (draft === undefined || !is_live[draft.task.status]) return not_found_task
  const resume_at = modifyTask(tx, target, draft.task, command.doc, command)
  if (typeof resume_at === 'object') return resume_at
  recordEvent(tx, draft.task, 'copy')
  if (resume_at !== stays) resume(tx, draft.task, resume_at, from.moves)
  saveTask(tx, draft)
  return undefined
}

function isOwnRef(task: TaskRecord, { conv_id }: Process, ref: string | undefined): boolean {
  return task.conv_id === conv_id && ref !== undefined && task.ref?.text === ref
}

function copyDone(tx: Transaction, doc: Doc, err_node_id: string | undefined): Command {
  const done = withMembers(doc, { __conveyor_copy_task_result__: 'ok' })
  const over = overSize(tx, done)
  if (over !== undefined) return copyFailed(over, err_node_id)
  return { command: 'set', doc: done, err_node_id }
}

/** Tags that differ from the refusal's code. */
const tags: Readonly<Record<string, string>> = {
  task_size_overflow_limit: 'copy_task_size_overflow_limit',
  conv_not_found: 'access_denied',
  task_damaged: 'copy_task_fatal_error',
}

const may_pass: ReadonlySet<string> = new Set(['task_damaged', 'too_many_tasks'])

function copyFailed(
  { code, description }: OpRefusal,
  err_node_id: string | undefined,
): FailCommand {
  const error_type = may_pass.has(code) ? 'hardware' : 'software'
  const text = code === 'task_size_overflow_limit' ? description + advice : description
  return failCommand('copy_task', error_type, tags[code] ?? code, text, err_node_id)
}

type Queue = Extract<Command, { command: 'queue' }>
type Take = Extract<Command, { command: 'take' }>

export function queue(tx: Transaction, task: TaskRecord, command: Queue): Command {
  const { doc, err_node_id } = command
  if (doc === undefined) return command
  const over = overSize(tx, doc)
  if (over !== undefined) {
    const tag = 'queue_task_size_overflow'
    return failCommand('queue', 'software', tag, over.description, err_node_id)
  }
  task.doc = doc
  return command
}

export function take(
  tx: Transaction,
  process: Process,
  task: TaskRecord,
  { conv, node_id, newest, err_node_id }: Take,
): Command {
  const notTaken = (
    description: string,
    tag = 'get_task_executing_error',
    error_type: FailCommand['error_type'] = 'software',
  ): FailCommand => failCommand('get_task', error_type, tag, description, err_node_id)
  const target = resolveTarget(tx, process, task, conv, 'modify')
  if (target === undefined) return notTaken('access_denied')
  const inactive = inactiveOf(target)
  if (inactive !== undefined) return notTaken(inactive.description)
  const { logics = [] } = target.graph.nodes.get(node_id) ?? {}
  if (!logics.some(({ waits_for }) => waits_for === 'queue')) {
    const description = `No queue logic in conv_id: ${target.conv_id}`
    return failCommand('queue', 'software', 'queue_wrong_logic', description, err_node_id)
  }
  const taken = firstInQueue(tx, target.conv_id, task.obj_id, node_id, newest)
  if (taken === undefined) return notTaken('not_found_task')
  if (taken === 'damaged') {
    return notTaken('the tasks in the queue are damaged', 'get_task_fatal_error', 'hardware')
  }
  const doc = withMembers(task.doc, {
    __queue_task_data__: objectOf(taken.task.doc),
    __queue_task_id__: taken.task.obj_id,
  })
  const over = overSize(tx, doc)
  if (over !== undefined) return notTaken(over.description, 'get_task_size_overflow')
  recordEvent(tx, taken.task, 'queue')
  resume(tx, taken.task, waitLogic(target, taken.task, 'queue') + 1, task.moves)
  saveTask(tx, taken)
  return { command: 'set', doc, err_node_id }
}

/** Damaged tasks are skipped, so that one does not block a queue; `check` names them. */
const scanned_tasks_max = 64

function firstInQueue(
  tx: Transaction,
  conv_id: string,
  taker_id: string,
  node_id: string,
  newest: boolean,
): TaskDraft | 'damaged' | undefined {
  let is_damaged = false
  const range = queueOf(conv_id, node_id)
  for (const { key } of tx.store.scan({ ...range, limit: scanned_tasks_max, reverse: newest })) {
    const { obj_id } = queueOfKey(key)
    // A taker that a timer moved out of this queue is listed until saved.
    if (obj_id === taker_id) continue
    const draft = readableTask(tx.view, obj_id)
    if (draft !== undefined) return draft
    is_damaged = true
  }
  return is_damaged ? 'damaged' : undefined
}
