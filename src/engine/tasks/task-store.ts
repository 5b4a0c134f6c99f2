/**
 * Loads and saves tasks with their index keys. Every write of the key types task, ref, at_node,
 * due, queue, outbox, ended, failed and node_count goes through `saveTask` or `removeEnded`, so a
 * change of a task keeps all invariants of its keys (codec/keys).
 */
import { digestOf } from '../../codec/doc-text.ts'
import { idOfValue, idValue } from '../../codec/ids.ts'
import {
  atNodeKey,
  dueKey,
  endedKey,
  failedKey,
  type Key,
  outboxKey,
  queueKey,
  refKey,
  taskKey,
} from '../../codec/keys.ts'
import { decodeTask, encodeTask } from '../../codec/task-bytes.ts'
import { is_live, is_over, type TaskRecord, type Wait } from '../../codec/task-record.ts'
import type { EndStatus } from '../../core/counters.ts'
import type { Doc } from '../../core/model.ts'
import type { TraceContext } from '../../core/tracing.ts'
import type { Tx, View } from '../../store/store.ts'
import { shapeIn } from '../transactions/shapes.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { completeHistory } from './history.ts'
import { viewTask } from './task-view.ts'

export interface TaskDraft {
  readonly task: TaskRecord
  /** The state that the index keys show; undefined for a new task. */
  readonly stored: StoredState | undefined
  /** The data before the change, for the digest of the data as created. */
  readonly original: Doc
  /** Whether the end node keeps the record. */
  keep_ended: boolean
}

type StoredState = Readonly<
  Pick<TaskRecord, 'status' | 'wait' | 'node_id' | 'due_ms' | 'at_ms' | 'change_ms'>
>

const no_value = Buffer.alloc(0)

export function loadTask(view: View, obj_id: string): TaskDraft | 'damaged' | undefined {
  const bytes = view.get(taskKey(obj_id))
  if (bytes === undefined) return undefined
  const task = decodeTask(obj_id, bytes, (conv_id, n) => shapeIn(view, conv_id, n))
  if (task === 'damaged') return task
  const { status, wait, node_id, due_ms, at_ms, change_ms } = task
  const stored = { status, wait, node_id, due_ms, at_ms, change_ms }
  return { task, stored, original: task.doc, keep_ended: true }
}

/** Undefined also for a damaged task; `check` names it. */
export function readableTask(view: View, obj_id: string): TaskDraft | undefined {
  const draft = loadTask(view, obj_id)
  return draft === 'damaged' ? undefined : draft
}

/** The live task that holds a ref; else the newest ended one kept. */
export function taskIdOfRef(view: View, conv_id: string, ref: string): string | undefined {
  const bytes = view.get(refKey(conv_id, ref))
  return bytes === undefined ? undefined : idOfValue(bytes)
}

export type NewTask = Pick<TaskRecord, 'conv_id' | 'ref' | 'user_id' | 'doc'> & {
  readonly caller_id?: string
  readonly former?: TaskRecord | undefined
  readonly trace?: TraceContext | undefined
}

export function newTask(tx: Transaction, given: NewTask): TaskDraft {
  const { former } = given
  const task: TaskRecord = {
    obj_id: tx.newTaskId(),
    conv_id: given.conv_id,
    ref: given.ref,
    user_id: given.user_id,
    create_ms: tx.now_ms,
    // Not before the former task, even if the clock was set back: the newest is removed last.
    change_ms: former === undefined ? tx.now_ms : Math.max(tx.now_ms, former.change_ms),
    status: 'processing',
    details: undefined,
    node_id: '',
    node_prev_id: '',
    nodes: [],
    wait: 'nothing',
    logic_at: 0,
    due_ms: 0,
    semaphor_at: 0,
    visit: 0,
    moves: 0,
    at_ms: 0,
    has_slots: false,
    attempts: 0,
    caller_id: given.caller_id,
    called_id: undefined,
    former_id: former?.obj_id,
    digest: undefined,
    doc: given.doc,
    history: '',
    history_count: 0,
    history_ms: -1,
    trace: given.trace,
  }
  return { task, stored: undefined, original: given.doc, keep_ended: true }
}

export function createDigest(task: TaskRecord): Buffer {
  return task.digest ?? digestOf(task.doc)
}

/** Writes a task and its index keys; deletes an ended task that is not kept. */
export function saveTask(tx: Transaction, draft: TaskDraft): void {
  const { task, stored, keep_ended } = draft
  const { store } = tx
  if (task.has_slots && is_over[task.status]) releaseSlots(tx, task)
  const was_live = stored !== undefined && is_live[stored.status]
  const live = is_live[task.status]
  if (!live) task.due_ms = 0
  if (!live || (task.wait !== 'ready' && !isListed(task.wait))) task.at_ms = 0
  task.change_ms = Math.max(tx.now_ms, task.change_ms)

  if (was_live && (!live || stored.node_id !== task.node_id)) {
    store.del(atNodeKey(task.conv_id, stored.node_id, task.obj_id))
  }
  if (live && (!was_live || stored.node_id !== task.node_id)) {
    store.put(atNodeKey(task.conv_id, task.node_id, task.obj_id), no_value)
  }
  if (stored === undefined || stored.status !== task.status || stored.node_id !== task.node_id) {
    if (was_live) tx.countTask(task.conv_id, stored.node_id, stored.status, -1)
    if (live || keep_ended) tx.countTask(task.conv_id, task.node_id, task.status, 1)
  }
  if (stored === undefined) tx.recordCount('created')
  if (is_over[task.status] && stored?.status !== task.status) {
    tx.recordCount(task.status as EndStatus)
  }
  if (stored?.status === 'failed') {
    store.del(failedKey(task.conv_id, stored.change_ms, task.obj_id))
  }
  if (task.status === 'failed') {
    store.put(failedKey(task.conv_id, task.change_ms, task.obj_id), no_value)
  }
  const stored_due_ms = stored?.due_ms ?? 0
  if (stored_due_ms !== task.due_ms) {
    if (stored_due_ms !== 0) store.del(dueKey(task.conv_id, stored_due_ms, task.obj_id))
    if (task.due_ms !== 0) {
      store.put(dueKey(task.conv_id, task.due_ms, task.obj_id), no_value)
      tx.recordTimer(task.conv_id, task.due_ms)
    }
  }
  saveWaitKeys(tx, draft)
  if (task.ref !== undefined) {
    if (stored === undefined && (live || keep_ended)) {
      store.put(refKey(task.conv_id, task.ref.text), idValue(task.obj_id))
    }
    if (was_live && !live && !keep_ended) giveRefBack(tx.store, task, task.ref.text)
    if (live && task.digest === undefined && task.doc.text !== draft.original.text) {
      task.digest = digestOf(draft.original)
    }
  }
  if (task.caller_id !== undefined && is_over[task.status]) {
    const { caller_id, obj_id: called_id, moves } = task
    tx.unanswered_callers.push({ caller_id, called_id, moves })
    task.caller_id = undefined
  }
  if (live || keep_ended) {
    completeHistory(tx, task)
    store.put(taskKey(task.obj_id), encodeTask(task, tx.packData(task)))
  } else if (stored !== undefined) store.del(taskKey(task.obj_id))
  if (!live && keep_ended) {
    store.put(endedKey(task.conv_id, task.change_ms, task.obj_id), no_value)
    tx.recordEnded()
  }
  if (is_over[task.status] && tx.engine.areEndsWatched()) {
    completeHistory(tx, task)
    tx.recordEnd(viewTask(task))
  }
  if (task.trace !== undefined) tx.runs?.onSave(task, tx.cause)
  tx.flow?.onSave(task)
  tx.recordChange(task)
}

/** At a move or an end. The engine has them loaded wherever a task has slots. */
export function releaseSlots(tx: Transaction, task: TaskRecord): void {
  const { slots } = tx.engine
  if (slots === undefined) throw new Error('a task has slots, and their code is not loaded')
  slots.release(tx, task)
}

/** A task that is not kept returns its ref to the ended one that had it before. */
function giveRefBack(store: Tx, { conv_id, former_id }: TaskRecord, ref: string): void {
  const key = refKey(conv_id, ref)
  if (former_id !== undefined && store.get(taskKey(former_id)) !== undefined) {
    store.put(key, idValue(former_id))
  } else store.del(key)
}

/**
 * Deletes an ended task, and its ref unless a newer task has it. Ignores live tasks. The key of its
 * end is for the caller to delete.
 */
export function removeEnded(tx: Transaction, obj_id: string): void {
  const { store } = tx
  const draft = loadTask(store, obj_id)
  if (draft === undefined) return
  if (draft !== 'damaged') {
    const { conv_id, ref, node_id, status } = draft.task
    if (is_live[status]) return
    tx.countTask(conv_id, node_id, status, -1)
    const holder = ref && taskIdOfRef(store, conv_id, ref.text)
    if (ref !== undefined && holder === obj_id) store.del(refKey(conv_id, ref.text))
  }
  store.del(taskKey(obj_id))
}

/** Writes the key of the task in its queue, or of its job in the outbox. */
function saveWaitKeys(tx: Transaction, { task, stored }: TaskDraft): void {
  const was_listed = stored !== undefined && isListed(stored.wait)
  const is_now = is_live[task.status] && isListed(task.wait)
  if (!was_listed && !is_now) return
  const before = was_listed ? waitKey(task, stored) : undefined
  const now = is_now ? waitKey(task, task) : undefined
  if (before === now) return
  if (before !== undefined) tx.store.del(before)
  if (now === undefined) return
  tx.store.put(now, no_value)
  if (task.wait === 'work') tx.recordJob(task.at_ms)
}

function isListed(wait: Wait): boolean {
  return wait === 'queue' || wait === 'work'
}

function waitKey(
  { conv_id, obj_id }: TaskRecord,
  { wait, node_id, at_ms }: Pick<TaskRecord, 'wait' | 'node_id' | 'at_ms'>,
): Key {
  return wait === 'queue' ? queueKey(conv_id, node_id, at_ms, obj_id) : outboxKey(at_ms, obj_id)
}
