/**
 * Rules for creating and modifying a task, shared by ops and logics: refusals in the order of the
 * fault table, and where a modified task resumes.
 */
import { digestOf, mergeDocs } from '../../codec/doc-text.ts'
import { bytesOf } from '../../codec/json.ts'
import { is_live, type TaskRecord } from '../../codec/task-record.ts'
import { shownConvId } from '../../core/alias.ts'
import { type Fault, fault, type OpFaultCode } from '../../core/faults.ts'
import type { Doc, Ref } from '../../core/model.ts'
import type { Process } from '../transactions/catalog.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { createDigest, loadTask, taskIdOfRef } from './task-store.ts'
import { countSteps } from './transitions.ts'
import { callbackLogic, isIdle } from './waits.ts'

export interface OpRefusal {
  readonly code: OpFaultCode
  readonly description: string
  readonly task?: { readonly obj_id: string; readonly ref?: Ref | undefined }
}

export function faultOf({ code, description }: OpRefusal): Fault {
  return fault(code, description)
}

/**
 * `same`: the live task of an equal earlier create; `former`: the ended task whose ref it takes.
 */
export type NewTaskCheck =
  | { readonly former: TaskRecord | undefined }
  | { readonly same: TaskRecord }
  | OpRefusal

const is_new: NewTaskCheck = { former: undefined }

export function checkNewTask(
  tx: Transaction,
  process: Process,
  ref: Ref | undefined,
  doc: Doc,
  identity = doc,
): NewTaskCheck {
  let clash: OpRefusal | undefined
  let check = is_new
  if (ref !== undefined) {
    const obj_id = taskIdOfRef(tx.view, process.conv_id, ref.text)
    const holder = obj_id === undefined ? undefined : loadTask(tx.view, obj_id)
    if (holder === 'damaged') clash = damaged(obj_id as string)
    else if (holder !== undefined && !is_live[holder.task.status]) check = { former: holder.task }
    else if (holder !== undefined) {
      if (createDigest(holder.task).equals(digestOf(identity))) return { same: holder.task }
      clash = { ...ref_taken, task: { obj_id: holder.task.obj_id } }
    }
  }
  const inactive = inactiveOf(process)
  if (inactive !== undefined) return inactive
  const over = overSize(tx, doc)
  if (over !== undefined) return over
  const mistake = process.graph.checkParams(doc, tx.steps)
  countSteps(tx)
  if (mistake !== undefined) {
    const description = `Param: ${mistake.param}, Error: ${mistake.error}`
    return { code: 'wrong_validate_params', description }
  }
  return clash ?? (tx.hasRoom(process.conv_id) ? check : full(tx, process))
}

/** Returned by `modifyTask` if the task does not resume. */
export const stays = -1

/**
 * Merges data into a live task. Returns the logic at which it resumes: after its callback, or 0 in
 * a state process; else `stays`.
 */
export function modifyTask(
  tx: Transaction,
  process: Process,
  task: TaskRecord,
  data: Doc,
  demands: { readonly is_sync: boolean; readonly node_id?: string | undefined },
): number | OpRefusal {
  const { is_sync, node_id } = demands
  const callback_at = callbackLogic(tx, process, task)
  const is_elsewhere = node_id !== undefined && node_id !== task.node_id
  if ((is_sync || node_id !== undefined) && (callback_at === -1 || is_elsewhere)) {
    return { ...no_callback, task }
  }
  const doc = mergeDocs(task.doc, data)
  const over = overSize(tx, doc)
  if (over !== undefined) return { ...over, task }
  task.doc = doc
  if (callback_at !== -1) return callback_at + 1
  return process.graph.kind === 'state' && isIdle(task) ? 0 : stays
}

export const paused: OpRefusal = {
  code: 'conveyor_is_not_active',
  description: 'conveyor is not active',
}

const draft: OpRefusal = { ...paused, description: 'conveyor is not active: a draft without nodes' }

/** Why a process takes no tasks, if so. */
export function inactiveOf({ record }: Process): OpRefusal | undefined {
  if (record.is_draft === true) return draft
  return record.status === 'paused' ? paused : undefined
}

export const ref_taken: OpRefusal = { code: 'not_unical_ref', description: 'not unical reference' }

export const not_found_task: OpRefusal = { code: 'not_found_task', description: 'not found task' }

export const no_callback: OpRefusal = {
  code: 'no_api_callback_in_node_with_task',
  description: 'no api callback logic in node with task',
}

function full(tx: Transaction, { conv_id }: Process): OpRefusal {
  const { process_tasks_max } = tx.engine.limits
  const description = `process ${conv_id} has ${process_tasks_max} live tasks, its limit`
  return { code: 'too_many_tasks', description }
}

export function damaged(obj_id: string): OpRefusal {
  const description = 'the stored record fails its checksum'
  return { code: 'task_damaged', description, task: { obj_id } }
}

export function accessDenied(user: string | undefined, conv_id: string): OpRefusal {
  const description = `user: ${user ?? '-'}, conv_id: ${shownConvId(conv_id)}`
  return { code: 'access_denied', description }
}

export function noProcess(conv_id: string): OpRefusal {
  return { code: 'conv_not_found', description: `Object conv with id ${conv_id} does not exist` }
}

export function overSize(tx: Transaction, { text }: Doc): OpRefusal | undefined {
  const bytes_max = tx.engine.limits.task_bytes_max
  // A UTF-16 unit takes at most 3 bytes, so a short text is not counted.
  if (text.length * 3 <= bytes_max) return undefined
  const bytes = bytesOf(text)
  if (bytes <= bytes_max) return undefined
  const description = `Your task size: ${bytes} bytes, Max available task size: ${bytes_max} bytes`
  return { code: 'task_size_overflow_limit', description }
}
