/**
 * The commands of queues: `queue` puts the task into the queue of its node, `take` takes the oldest
 * or newest task out of a queue; the taken task resumes after its queue logic.
 */
import { objectOf } from '../../codec/json.ts'
import { queueOf, queueOfKey } from '../../codec/keys.ts'
import type { TaskRecord } from '../../codec/task-record.ts'
import type { Command, FailCommand } from '../../process/logic.ts'
import type { Process } from '../transactions/catalog.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { resolveTarget } from './evaluation-context.ts'
import { recordEvent } from './history.ts'
import { inactiveOf, overSize } from './task-rules.ts'
import { loadTask, saveTask, type TaskDraft } from './task-store.ts'
import { failCommand, resume, withMembers } from './transitions.ts'
import { waitLogic } from './waits.ts'

type Queue = Extract<Command, { command: 'queue' }>
type Take = Extract<Command, { command: 'take' }>

export function queue(tx: Transaction, task: TaskRecord, command: Queue): Command {
  const { doc, err_node_id } = command
  if (doc === undefined) return command
  const over = overSize(tx, doc)
  if (over !== undefined) {
    const tag = 'queue_task_size_overflow'
    return failCommand('queue', 'software', tag, over.description, err_node_id)
  }
  task.doc = doc
  return command
}

export function take(
  tx: Transaction,
  process: Process,
  task: TaskRecord,
  { conv, node_id, newest, err_node_id }: Take,
): Command {
  const notTaken = (
    description: string,
    tag = 'get_task_executing_error',
    error_type: FailCommand['error_type'] = 'software',
  ): FailCommand => failCommand('get_task', error_type, tag, description, err_node_id)
  const target = resolveTarget(tx, process, task, conv, 'modify')
  if (target === undefined) return notTaken('access_denied')
  const inactive = inactiveOf(target)
  if (inactive !== undefined) return notTaken(inactive.description)
  const { logics = [] } = target.graph.nodes.get(node_id) ?? {}
  if (!logics.some(({ waits_for }) => waits_for === 'queue')) {
    const description = `No queue logic in conv_id: ${target.conv_id}`
    return failCommand('queue', 'software', 'queue_wrong_logic', description, err_node_id)
  }
  const taken = firstInQueue(tx, target.conv_id, task.obj_id, node_id, newest)
  if (taken === undefined) return notTaken('not_found_task')
  if (taken === 'damaged') {
    return notTaken('the tasks in the queue are damaged', 'get_task_fatal_error', 'hardware')
  }
  const doc = withMembers(task.doc, {
    __queue_task_data__: objectOf(taken.task.doc),
    __queue_task_id__: taken.task.obj_id,
  })
  const over = overSize(tx, doc)
  if (over !== undefined) return notTaken(over.description, 'get_task_size_overflow')
  recordEvent(tx, taken.task, 'queue')
  resume(tx, taken.task, waitLogic(target, taken.task, 'queue') + 1, task.moves)
  saveTask(tx, taken)
  return { command: 'set', doc, err_node_id }
}

/** Damaged tasks are skipped, so that one does not block a queue; `check` names them. */
const scanned_tasks_max = 64

function firstInQueue(
  tx: Transaction,
  conv_id: string,
  taker_id: string,
  node_id: string,
  newest: boolean,
): TaskDraft | 'damaged' | undefined {
  let is_damaged = false
  const range = queueOf(conv_id, node_id)
  for (const { key } of tx.store.scan({ ...range, limit: scanned_tasks_max, reverse: newest })) {
    const { obj_id } = queueOfKey(key)
    // A taker that a timer has moved out of this queue is listed until it is saved.
    if (obj_id === taker_id) continue
    const draft = loadTask(tx.view, obj_id)
    if (draft !== undefined && draft !== 'damaged') return draft
    is_damaged = true
  }
  return is_damaged ? 'damaged' : undefined
}
