/** The view of a stored task that callers get. Its data and history are parsed when read. */
import { defineData } from '../../codec/task-data.ts'
import { parseHistory } from '../../codec/task-history.ts'
import type { TaskRecord } from '../../codec/task-record.ts'
import type { Task } from '../../core/model.ts'

/** What the history of a view is made of. A WeakMap would take most of the time. */
const history_text = Symbol('history')

interface WithHistory extends Task {
  readonly [history_text]?: { readonly history: string; readonly nodes: readonly string[] }
}

const history: PropertyDescriptor & ThisType<WithHistory> = {
  enumerable: false,
  configurable: true,
  get() {
    const { [history_text]: text, create_time_ms, user_id } = this
    return text === undefined ? [] : parseHistory(text.history, text.nodes, create_time_ms, user_id)
  },
}

/** Reused: one per view would take twice the time. */
const hidden: PropertyDescriptor = { enumerable: false, value: undefined }

/** Each read of `data` parses `data_text` again, so the caller owns the value. */
export function viewTask(task: TaskRecord): Task {
  const { ref, details, trace } = task
  const view: Omit<Task, 'data' | 'history'> = {
    obj_id: task.obj_id,
    conv_id: task.conv_id,
    ref: ref === undefined ? null : ref.text,
    status: task.status,
    user_id: task.user_id ?? null,
    create_time_ms: task.create_ms,
    change_time_ms: task.change_ms,
    node_id: task.node_id,
    node_prev_id: task.node_prev_id,
    data_text: task.doc.text,
  }
  defineData(view)
  Object.defineProperty(view, 'history', history)
  const { history: entries, nodes } = task
  if (entries !== '') {
    hidden.value = { history: entries, nodes }
    Object.defineProperty(view, history_text, hidden)
  }
  if (ref?.is_number === true) Object.assign(view, { ref_is_number: true })
  // A task with a repeated job has the last failure, which callers do not see.
  if (details !== undefined && task.status === 'failed')
    Object.assign(view, { status_details: details })
  if (trace !== undefined) Object.assign(view, { trace_id: trace.trace_id })
  return view as Task
}
