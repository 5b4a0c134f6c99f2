/**
 * A live task whose record is damaged, as far as its keys still tell of it: enough to cancel it, so
 * that its ref, its timer and its place in a node are free. Its data and its history are lost.
 *
 * The keys that name a task begin with other things than its id, so each list is read through. A
 * task that called this one waits for an answer that does not come; `check` names it.
 */

import { docOfText } from '../../codec/json.ts'
import {
  after,
  atNodeOfKey,
  dueOf,
  failedOf,
  idOfValue,
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
  tasksAtNodes,
  timeOfKey,
} from '../../codec/keys.ts'
import { decodeCounts } from '../../codec/records.ts'
import { statuses, type TaskRecord, type Wait } from '../../codec/task-record.ts'
import type { Status } from '../../core/model.ts'
import type { Entry, View } from '../../store/store.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { newTask, type TaskDraft } from './task-store.ts'

const page_keys = 1_000
const id_hex_of_seconds = 8

/** Undefined where the process has no such live task. */
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
  const task: TaskRecord = { ...blank.task, ...state, obj_id, create_ms }
  return { task, stored: state, original: doc, keep_ended: true }
}

/** The byte that says it may be the damaged one, so it counts where the node has tasks of both. */
function statusOf(view: View, place: Key): Status {
  const { conv, node, obj_id } = atNodeOfKey(place)
  const counts = decodeCounts(view.get(nodeCountKey(conv, node)))
  if (counts.processing === 0) return 'delayed'
  if (counts.delayed === 0) return 'processing'
  const byte = view.get(taskKey(obj_id))?.[1] ?? 0
  return statuses[byte & 15] === 'processing' ? 'processing' : 'delayed'
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
