/** Ops of editors on the tasks of a process: those in a node, what happened to one, its end. */
import { parseStored } from '../codec/json.ts'
import {
  atNodeOfKey,
  endedKey,
  endedOf,
  nodeCountKey,
  tasksAtNode,
  timeOfKey,
} from '../codec/keys.ts'
import { isOp, parseTaskOp } from '../codec/op.ts'
import { decodeCounts, grant_bits } from '../codec/records.ts'
import { is_live, type TaskRecord } from '../codec/task-record.ts'
import { defined } from '../core/defined.ts'
import { fault, type OpFaultCode } from '../core/faults.ts'
import type { JsonObject, ShowOp } from '../core/model.ts'
import { findTask, named } from '../engine/tasks/ops.ts'
import { endCanceled } from '../engine/tasks/task-actions.ts'
import { faultOf, not_found_task } from '../engine/tasks/task-rules.ts'
import { loadTask, removeEnded, taskIdOfRef } from '../engine/tasks/task-store.ts'
import { viewTask } from '../engine/tasks/task-view.ts'
import { beginOp } from '../engine/transactions/transaction-queue.ts'
import {
  type Act,
  idOf,
  idValue,
  invalid,
  memberOf,
  noObject,
  numberIn,
  permitted,
  refusal,
  secondsOf,
  textIn,
} from './act.ts'
import type { Answer } from './answers.ts'
import { userName } from './users.ts'

const tasks_max = 1_000
const offset_max = 100_000
/** Of the ended tasks of a process, the newest: their keys do not name their node. */
const ended_read_max = 2_000

export function listNode(act: Act): Answer {
  const { conv_id, graph } = permitted(act, 'conv_id', grant_bits.show)
  const node_id = idOf(act, 'obj_id')
  const node = graph.nodes.get(node_id)
  if (node === undefined) throw noObject('node', node_id)
  const limit = numberIn(act, 'limit', { min: 1, max: tasks_max, usual: 50 })
  const offset = numberIn(act, 'offset', { max: offset_max, usual: 0 })
  const { store } = act.tx
  const counts = decodeCounts(store.get(nodeCountKey(conv_id, node_id)))
  const place = { conv_id, node_id, reverse: orderIn(act) === 'DESC' }
  const ref = refIn(act)
  const found =
    ref === undefined
      ? idsIn(act, { ...place, is_end: node.kind === 'end', ids_max: offset + limit })
      : [taskIdOfRef(store, conv_id, ref)].filter((id) => id !== undefined)
  const { answer_bytes_max } = act.engine.limits
  let chars = 0
  const list: JsonObject[] = []
  for (const obj_id of found.slice(offset, offset + limit)) {
    const task = taskIn(act, conv_id, obj_id)
    if (task === undefined || task.node_id !== node_id) continue
    chars += task.doc.text.length
    if (chars > answer_bytes_max) {
      throw fault('answer_too_large', `Answer size is over ${answer_bytes_max} bytes`)
    }
    list.push(rowOf(task))
  }
  const { processing, delayed, failed, processed, canceled } = counts
  return {
    count: processing + delayed + failed + processed + canceled,
    ...{ count_created: 0, count_processing: processing, count_delayed: delayed },
    list,
  }
}

function orderIn({ op: { sort = 'ASC' } }: Act): 'ASC' | 'DESC' {
  const order = String(sort).toUpperCase()
  if (order === 'ASC' || order === 'DESC') return order
  throw invalid('sort', 'ASC or DESC')
}

/** The ref of the only filter that there is; undefined without one. */
function refIn({ op: { filters } }: Act): string | undefined {
  if (filters === undefined || filters === null) return undefined
  if (!Array.isArray(filters)) throw invalid('filters', 'an array')
  const [filter, more] = filters
  if (filter === undefined) return undefined
  const ref = memberOf(filter, 'value')
  const is_ref = memberOf(filter, 'name') === 'ref' && (memberOf(filter, 'fun') ?? 'eq') === 'eq'
  if (is_ref && more === undefined && typeof ref === 'string') return ref
  throw invalid('filters', 'one filter by ref, fun eq')
}

/** Ends a live task as canceled, and removes one that has ended. */
export function deleteTask(act: Act): Answer {
  const { tx, caller, op: given } = act
  const parsed = parseTaskOp('show', given, act.engine.limits)
  if (!isOp(parsed)) throw refusal(parsed.description ?? '', defined({ key: parsed.key }))
  const node_id = textIn(act, 'node_id', act.engine.limits.node_id_chars_max)
  const op = named(tx.store, parsed as ShowOp)
  const { conv_id } = permitted({ ...act, op: { conv_id: op.conv_id } }, 'conv_id', grant_bits.edit)
  const found = findTask(tx.store, op)
  const task = 'code' in found ? undefined : found.task
  if ('code' in found && found.code !== 'task_damaged') throw faultOf(found)
  if (node_id !== undefined && task?.node_id !== node_id) throw faultOf(not_found_task)
  if (task === undefined || is_live[task.status]) {
    beginOp(tx)
    const { proc, description, obj_id } = endCanceled(tx, op, caller)
    if (proc !== 'ok') throw fault(proc as OpFaultCode, description)
    deleted(act, conv_id)
    return { obj_id: obj_id as string }
  }
  tx.store.del(endedKey(conv_id, task.change_ms, task.obj_id))
  removeEnded(tx, task.obj_id)
  deleted(act, conv_id)
  return { obj_id: task.obj_id }
}

function deleted({ engine, caller, afterwards }: Act, conv_id: string): void {
  const row = { act: 'delete task', user: caller.user, conv_id }
  afterwards(() => engine.emit('process_managed', row))
}

interface Place {
  readonly conv_id: string
  readonly node_id: string
  readonly reverse: boolean
  readonly is_end: boolean
  readonly ids_max: number
}

/** In the order of their creation; of an end node, of their end. */
function idsIn(act: Act, { conv_id, node_id, reverse, is_end, ids_max }: Place): string[] {
  const { store } = act.tx
  if (!is_end) {
    const live = store.scan({ ...tasksAtNode(conv_id, node_id), limit: ids_max, reverse })
    return live.map(({ key }) => atNodeOfKey(key).obj_id)
  }
  const ended = store.scan({ ...endedOf(conv_id), limit: ended_read_max, reverse: true })
  const ids = ended
    .map(({ key }) => timeOfKey(key).obj_id)
    .filter((obj_id) => taskIn(act, conv_id, obj_id)?.node_id === node_id)
  return (reverse ? ids : ids.reverse()).slice(0, ids_max)
}

/** Undefined for one that is damaged, gone, or of another process. */
function taskIn({ tx }: Act, conv_id: string, obj_id: string): TaskRecord | undefined {
  const draft = loadTask(tx.store, obj_id)
  if (draft === undefined || draft === 'damaged') return undefined
  return draft.task.conv_id === conv_id ? draft.task : undefined
}

function rowOf(task: TaskRecord): JsonObject {
  const { obj_id, ref, status, user_id, create_ms, change_ms, node_prev_id, doc } = task
  return {
    ...{ obj: 'task', obj_id, ref: ref?.text ?? null, status },
    user_id: user_id === undefined ? null : idValue(user_id),
    ...{ create_time: secondsOf(create_ms), change_time: secondsOf(change_ms), node_prev_id },
    data: parseStored(doc.text),
  }
}

/** Oldest first, of the last entries that are kept; each but the last was passed. */
export function listTaskHistory(act: Act): Answer {
  const { conv_id } = permitted(act, 'conv_id', grant_bits.show)
  const obj_id = idOf(act, 'obj_id').toLowerCase()
  const limit = numberIn(act, 'limit', { min: 1, max: tasks_max, usual: 50 })
  const offset = numberIn(act, 'offset', { max: offset_max, usual: 0 })
  const task = /^[0-9a-f]{24}$/.test(obj_id) ? taskIn(act, conv_id, obj_id) : undefined
  if (task === undefined) throw fault('not_found_task', 'not found task')
  const history = viewTask(task).history ?? []
  const last = history.length - 1
  const rows = history.map(({ node_id, at_ms, by }, at): JsonObject => {
    return {
      ...{ history_id: at + 1, conv_id: idValue(conv_id), node_id },
      node_prev_id: history[at - 1]?.node_id ?? '',
      user_id: by === undefined ? null : idValue(by),
      user_name: by === undefined ? '' : userName(act, by),
      create_time_ms: at_ms,
      status: at === last ? task.status : 'processed',
      data: null,
    }
  })
  const { ref } = task
  return { ref: ref?.text ?? null, list: rows.slice(offset, offset + limit) }
}
