/**
 * Transitions of a task that several files make. They change the record only; the caller saves it,
 * except for `startTask`.
 */
import { bytesOf, docOfValue, objectOf, setMember } from '../../codec/json.ts'
import type { TaskRecord } from '../../codec/task-record.ts'
import type { Doc, HistoryWhy, JsonObject, JsonValue } from '../../core/model.ts'
import { steps_max } from '../../process/definition-limits.ts'
import type { FailCommand } from '../../process/logic.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { recordEntry, recordEvent } from './history.ts'
import { type NewTask, newTask, releaseSlots, saveTask } from './task-store.ts'

/** Without running anything there. */
export function moveToNode(tx: Transaction, task: TaskRecord, node_id: string): void {
  if (task.has_slots) releaseSlots(tx, task)
  task.node_prev_id = task.node_id
  task.node_id = node_id
  task.visit++
  task.moves++
  task.due_ms = 0
  if (task.trace !== undefined) tx.runs?.onMove(task)
  tx.flow?.onMove(task)
  countMove(tx, task)
}

function countMove(tx: Transaction, task: TaskRecord): void {
  tx.moves_left--
  tx.moves_made++
  tx.chain_moves = Math.max(tx.chain_moves, task.moves)
}

/** Steps that count as one move, so that computation is bounded like moves. */
const steps_per_move = 100

/** Charges a logic's steps to the op's moves, and resets them for the next logic. */
export function countSteps(tx: Transaction): void {
  const { steps } = tx
  if (steps.left === steps_max) return
  const moves = Math.floor((steps_max - steps.left) / steps_per_move)
  steps.left = steps_max
  tx.moves_left -= moves
  tx.moves_made += moves
}

/**
 * Queues the task to resume at a logic of its node. Counts as a move and continues the chain of
 * `moves` that caused it, so that endless chains reach the bounds.
 */
export function resume(tx: Transaction, task: TaskRecord, logic_at: number, moves: number): void {
  makeReady(tx, task, logic_at)
  task.moves = Math.max(task.moves, moves) + 1
  countMove(tx, task)
  tx.run_queue.push(task.obj_id)
}

/** Creates a task in its first node, queued to run, and saves it. Returns its obj_id. */
export function startTask(
  tx: Transaction,
  given: NewTask,
  node_id: string,
  moves: number,
  why: HistoryWhy,
): string {
  const draft = newTask(tx, given)
  const { task } = draft
  task.node_id = node_id
  task.visit++
  recordEntry(tx, task, why)
  resume(tx, task, 0, moves)
  saveTask(tx, draft)
  return task.obj_id
}

/** Ready at a logic; its due key lets the timers run it. Keeps its timer. */
export function makeReady(tx: Transaction, task: TaskRecord, logic_at: number): void {
  task.at_ms = task.due_ms
  task.status = 'processing'
  task.details = undefined
  task.wait = 'ready'
  task.logic_at = logic_at
  task.due_ms = Math.max(1, tx.now_ms)
}

/** Moves the task to the error node with the error fields; without one it fails. */
export function moveToErrorNode(
  tx: Transaction,
  task: TaskRecord,
  { err_node_id, kind, error_type, tag, description, doc: given }: FailCommand,
): 'moved' | 'stays' {
  const { task_bytes_max } = tx.engine.limits
  if (given !== undefined && bytesOf(given.text) <= task_bytes_max) task.doc = given
  if (err_node_id === undefined) {
    fail(tx, task, tag, description)
    return 'stays'
  }
  const prefix = `__conveyor_${kind}_return`
  const doc = withMembers(task.doc, {
    [`${prefix}_type_error__`]: error_type,
    [`${prefix}_type_tag__`]: tag,
    [`${prefix}_description__`]: shownText(tx, description),
  })
  // Drops the error fields if the data would exceed the limit.
  if (bytesOf(doc.text) <= task_bytes_max) task.doc = doc
  moveToNode(tx, task, err_node_id)
  recordEntry(tx, task, 'fail', undefined, tag)
  return 'moved'
}

export function fail(tx: Transaction, task: TaskRecord, tag: string, description: string): void {
  recordEvent(tx, task, 'fail', undefined, tag)
  task.status = 'failed'
  task.details = { tag, description: shownText(tx, description) }
  task.wait = 'nothing'
  task.due_ms = 0
  task.at_ms = 0
  const { conv_id, obj_id, node_id, trace } = task
  const of_trace = trace === undefined ? undefined : { trace_id: trace.trace_id }
  tx.recordFailure({ conv_id, obj_id, node_id, code: tag, ...of_trace })
}

const description_chars_max = 1_000

/** Masks given variables and cuts the text, without splitting a surrogate pair. */
function shownText({ engine }: Transaction, description: string): string {
  return engine.variables.masked(description).slice(0, description_chars_max).toWellFormed()
}

export function failCommand(
  kind: string,
  error_type: FailCommand['error_type'],
  tag: string,
  description: string,
  err_node_id: string | undefined,
): FailCommand {
  return { command: 'fail', kind, error_type, tag, description, err_node_id }
}

export function withMembers(doc: Doc, members: JsonObject): Doc {
  const data: JsonObject = { ...objectOf(doc) }
  for (const key of Object.keys(members)) setMember(data, key, members[key] as JsonValue)
  return docOfValue(data)
}
