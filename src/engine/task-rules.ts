/**
 * Putting a task into a process: what a create is refused for, in the order of the fault table, and
 * the same create again. For ops of callers and for logics that make tasks alike.
 */
import { digestOf } from '../codec/canonical.ts'
import { bytesOf } from '../codec/json.ts'
import type { TaskRecord } from '../codec/task-record.ts'
import type { OpFaultCode } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Doc, Ref } from '../core/model.ts'
import type { View } from '../store/store.ts'
import type { Process } from './catalog.ts'
import { createDigest, loadTask, refHolder } from './task-store.ts'

export interface OpRefusal {
  readonly code: OpFaultCode
  readonly description: string
  /** The task it is about, where known. */
  readonly task?: { readonly obj_id: string; readonly ref?: Ref | undefined }
}

export type NewTaskCheck = 'new' | { readonly same: TaskRecord } | OpRefusal

/** Whether a new task may come in; `same` is the live task that the same create made. */
export function checkNewTask(
  view: View,
  process: Process,
  ref: Ref | undefined,
  doc: Doc,
  limits: Limits,
): NewTaskCheck {
  const { conv_id } = process
  let clash: OpRefusal | undefined
  if (ref !== undefined) {
    const obj_id = refHolder(view, conv_id, ref.text)
    const holder = obj_id === undefined ? undefined : loadTask(view, obj_id)
    if (holder === 'damaged') clash = damaged(obj_id as string)
    else if (holder !== undefined) {
      if (createDigest(holder.task).equals(digestOf(doc))) return { same: holder.task }
      clash = {
        code: 'not_unical_ref',
        description: 'not unical reference',
        task: { obj_id: holder.task.obj_id },
      }
    }
  }
  if (process.head.status === 'paused') return paused
  const over = overSize(doc.text, limits.task_bytes_max)
  if (over !== undefined) return over
  const mistake = process.graph.checkParams(doc)
  if (mistake !== undefined) {
    const description = `Param: ${mistake.param}, Error: ${mistake.error}`
    return { code: 'wrong_validate_params', description }
  }
  return clash ?? 'new'
}

export const paused: OpRefusal = {
  code: 'conveyor_is_not_active',
  description: 'conveyor is not active',
}

export const not_found_task: OpRefusal = { code: 'not_found_task', description: 'not found task' }

export const no_callback: OpRefusal = {
  code: 'no_api_callback_in_node_with_task',
  description: 'no api callback logic in node with task',
}

export function damaged(obj_id: string): OpRefusal {
  const description = 'the stored record fails its checksum'
  return { code: 'task_damaged', description, task: { obj_id } }
}

export function overSize(text: string, bytes_max: number): OpRefusal | undefined {
  // A UTF-16 unit takes at most 3 bytes, so a short text needs no counting.
  if (text.length * 3 <= bytes_max) return undefined
  const bytes = bytesOf(text)
  if (bytes <= bytes_max) return undefined
  const description = `Your task size: ${bytes} bytes, Max available task size: ${bytes_max} bytes`
  return { code: 'task_size_overflow_limit', description }
}
