/**
 * The view of a stored task that callers get. Its data and its history are parsed when read.
 */
import { defineData } from '../codec/task-data.ts'
import { type HistoryText, parseHistory } from '../codec/task-history.ts'
import type { TaskRecord } from '../codec/task-record.ts'
import type { Task } from '../core/model.ts'

/** The texts that views parse their history from. */
const histories = new WeakMap<object, HistoryText>()

const history: PropertyDescriptor & ThisType<Task> = {
  enumerable: false,
  configurable: true,
  get() {
    const text = histories.get(this)
    return text === undefined ? [] : parseHistory(text)
  },
}

/** Each read of `data` parses `dataText` again, so the caller owns the value. */
export function viewTask(task: TaskRecord): Task {
  const { ref, details } = task
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
    dataText: task.doc.text,
  }
  defineData(view)
  Object.defineProperty(view, 'history', history)
  if (task.history !== '') histories.set(view, historyText(task))
  if (ref?.is_number === true) Object.assign(view, { ref_is_number: true })
  if (details !== undefined) Object.assign(view, { status_details: details })
  return view as Task
}

/** Without the rest of the record, which may be changed, and must not be kept in memory. */
function historyText({ history, create_ms, user_id }: TaskRecord): HistoryText {
  return { history, create_ms, user_id }
}
