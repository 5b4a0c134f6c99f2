/**
 * A stored task as callers see it.
 */
import type { TaskRecord } from '../bytes/task-record.ts'
import type { Task } from '../words/model.ts'

/** `data` is parsed anew at each read and is the reader's own; numbers in it are doubles. */
export function viewTask(task: TaskRecord): Task {
  return {
    obj_id: task.obj_id,
    conv_id: task.conv_id,
    ref: task.ref?.text ?? null,
    ...(task.ref?.is_number ? { ref_is_number: true } : {}),
    status: task.status,
    ...(task.details === undefined ? {} : { status_details: task.details }),
    user_id: task.user_id ?? null,
    create_time_ms: task.create_ms,
    change_time_ms: task.change_ms,
    node_id: task.node_id,
    node_prev_id: task.node_prev_id,
    dataText: task.doc.text,
    get data(): unknown {
      return JSON.parse(task.doc.text)
    },
  }
}
