/**
 * The view of a stored task that callers get.
 */
import { parsePlain } from '../codec/json.ts'
import type { TaskRecord } from '../codec/task-record.ts'
import type { Task } from '../core/model.ts'

/** One getter for all views, so that V8 gives all of them one shape. */
const data: PropertyDescriptor & ThisType<Task> = {
  enumerable: true,
  configurable: true,
  get() {
    return parsePlain(this.dataText)
  },
}

/** Each read of `data` parses `dataText` again, so the caller owns the value. */
export function viewTask(task: TaskRecord): Task {
  const { ref, details } = task
  const view: Omit<Task, 'data'> = {
    obj_id: task.obj_id,
    conv_id: task.conv_id,
    ref: ref === undefined ? null : ref.text,
    status: task.status,
    user_id: task.user_id ?? null,
    create_time_ms: task.create_ms,
    change_time_ms: task.change_ms,
    node_id: task.node_id,
    node_prev_id: task.node_prev_id,
    dataText: task.doc.text,
  }
  Object.defineProperty(view, 'data', data)
  if (ref?.is_number === true) Object.assign(view, { ref_is_number: true })
  if (details !== undefined) Object.assign(view, { status_details: details })
  return view as Task
}
