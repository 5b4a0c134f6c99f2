/**
 * Administration of one task: retry, move, cancel, with results and rules of ops. A live task with
 * a damaged record can still be canceled, without its data and history: its other keys are found by
 * reading each list, so that its ref, timer and place become free.
 */

import { idOfValue } from '../../codec/ids.ts'
import { docOfText } from '../../codec/json.ts'
import {
  after,
  atNodeOfKey,
  dueOf,
  failedOf,
  type Key,
  type KeyRange,
  keysOfType,
  nodeCountKey,
  outboxOfKey,
  queueOf,
  queueOfKey,
  refOfKey,
  refsOf,
  taskKey,
  taskOfKey,
  taskSlotsOf,
  tasksAtNodes,
  timeOfKey,
} from '../../codec/keys.ts'
import { decodeCounts } from '../../codec/records.ts'
import { statuses, type TaskRecord, type Wait } from '../../codec/task-record.ts'
import type { Caller, ModifyOp, OpResult, ShowOp, Status } from '../../core/model.ts'
import type { Entry, View } from '../../store/store.ts'
import type { ActionResult } from '../api/task-api.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { beginOp } from '../transactions/transaction-queue.ts'
import { advance, enterNode, migrateTask } from './advance.ts'
import { completeHistory, recordEvent } from './history.ts'
import { accepted, findLive, findProcess, refused } from './ops.ts'
import { saveAndDrain } from './run-queue.ts'
import { inactiveOf, type OpRefusal, paused } from './task-rules.ts'
import { newTask, type TaskDraft } from './task-store.ts'
import { viewTask } from './task-view.ts'

export function retryTask(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  node_id: string | undefined,
  caller: Caller = {},
): ActionResult {
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  beginOp(tx)
  if (process.record.status === 'paused') return refused(op, paused)
  const draft = findLive(tx.store, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  const was = placeOf(task)
  if (task.status !== 'failed') {
    return refused(op, { code: 'error', description: 'the task has not failed', task })
  }
  migrateTask(tx, process, draft)
  if (node_id !== undefined && !process.graph.nodes.has(node_id)) return noNode(op, node_id, task)
  task.moves = 0
  if (node_id === undefined) {
    recordEvent(tx, task, 'retry', caller.user)
    advance(tx, process, draft, 0)
  } else enterNode(tx, process, draft, node_id, 'retry', caller.user)
  return saved(tx, op, was, draft)
}

/** Puts a live task into another node and runs it there, abandoning its wait. */
export function moveTask(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  node_id: string,
  caller: Caller = {},
): ActionResult {
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  beginOp(tx)
  const inactive = inactiveOf(process)
  if (inactive !== undefined) return refused(op, inactive)
  const draft = findLive(tx.store, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  if (!process.graph.nodes.has(node_id)) return noNode(op, node_id, task)
  const was = placeOf(task)
  task.moves = 0
  enterNode(tx, process, draft, node_id, 'move', caller.user)
  return saved(tx, op, was, draft)
}

/** Ends a live task as `canceled`, also one with a damaged record. */
export function cancelTask(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  caller: Caller = {},
): ActionResult {
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  beginOp(tx)
  return endCanceled(tx, op, caller)
}

/** Like `cancelTask`, for a caller whose right has been checked. */
export function endCanceled(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  { user }: Caller,
): ActionResult {
  const found = findLive(tx.store, op)
  const draft = soundOf(tx, op, found)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  const was = placeOf(task)
  recordEvent(tx, task, 'cancel', user)
  task.status = 'canceled'
  task.details = undefined
  task.wait = 'nothing'
  return saved(tx, op, was, draft)
}

function soundOf(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  found: TaskDraft | OpRefusal,
): TaskDraft | OpRefusal {
  if (!('code' in found) || found.code !== 'task_damaged' || found.task === undefined) return found
  return draftOfDamaged(tx, op.conv_id, found.task.obj_id) ?? found
}

function placeOf({ status, node_id }: TaskRecord): NonNullable<ActionResult['was']> {
  return { status, node_id }
}

function noNode(op: ModifyOp | ShowOp, node_id: string, task: TaskRecord): OpResult {
  const description = `Value is not valid. node_id: "${node_id}" is no node`
  return refused(op, { code: 'error', description, task })
}

/** The task as this change leaves it; tasks made ready may change it then. */
function saved(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  was: NonNullable<ActionResult['was']>,
  draft: TaskDraft,
): ActionResult {
  const { task } = draft
  // `saveTask` does this only for a kept task.
  completeHistory(tx, task)
  saveAndDrain(tx, draft)
  return { ...accepted(op, task), was, task: viewTask(task) }
}

const page_keys = 1_000
const id_hex_of_seconds = 8

/** Undefined if the process has no such live task. */
export function draftOfDamaged(
  tx: Transaction,
  conv_id: string,
  obj_id: string,
): TaskDraft | undefined {
  const view = tx.store
  const keyIn = (range: KeyRange): Key | undefined =>
    find(view, range, ({ key }) => taskOfKey(key) === obj_id)?.key
  const place = keyIn(tasksAtNodes(conv_id))
  if (place === undefined) return undefined
  const { node } = atNodeOfKey(place)
  const due = keyIn(dueOf(conv_id))
  const failed = keyIn(failedOf(conv_id))
  const job = keyIn(keysOfType('outbox'))
  const queued = job === undefined ? keyIn(queueOf(conv_id, node)) : undefined
  const ref = find(view, refsOf(conv_id, ''), ({ value }) => idOfValue(value) === obj_id)
  const create_ms = 1_000 * Number.parseInt(obj_id.slice(0, id_hex_of_seconds), 16)
  const wait: Wait = job !== undefined ? 'work' : queued !== undefined ? 'queue' : 'nothing'
  const state = {
    status: failed === undefined ? statusOf(view, place) : ('failed' as const),
    wait,
    node_id: node,
    due_ms: due === undefined ? 0 : timeOfKey(due).ms,
    at_ms: job !== undefined ? outboxOfKey(job).ms : queued ? queueOfKey(queued).since_ms : 0,
    change_ms: failed === undefined ? create_ms : timeOfKey(failed).ms,
  }
  const doc = docOfText('{}')
  const named = ref && { text: refOfKey(ref.key).ref, is_number: false }
  const blank = newTask(tx, { conv_id, ref: named, user_id: undefined, doc })
  const has_slots = view.scan({ ...taskSlotsOf(obj_id), limit: 1 }).length > 0
  const task: TaskRecord = { ...blank.task, ...state, has_slots, obj_id, create_ms }
  return { task, stored: state, original: doc, keep_ended: true }
}

/** The byte may be damaged, so it decides only if the node has tasks of both. */
function statusOf(view: View, place: Key): Status {
  const { conv, node, obj_id } = atNodeOfKey(place)
  const counts = decodeCounts(view.get(nodeCountKey(conv, node)))
  if (counts.processing === 0) return 'delayed'
  if (counts.delayed === 0) return 'processing'
  const byte = view.get(taskKey(obj_id))?.[1] ?? 0
  return statuses[byte & 7] === 'processing' ? 'processing' : 'delayed'
}

function find(
  view: View,
  { from, to }: KeyRange,
  isIt: (entry: Entry) => boolean,
): Entry | undefined {
  for (let next = from; ; ) {
    const page = view.scan({ from: next, to, limit: page_keys })
    const found = page.find(isIt)
    const last = page[page_keys - 1]
    if (found !== undefined || last === undefined) return found
    next = after(last.key)
  }
}
