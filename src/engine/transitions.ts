/**
 * The steps of a task's life that several files take: entering a node, becoming ready, waking,
 * failing. They change the record alone; saving it is the caller's.
 */
import { bytesOf, docOfValue, objectOf, setMember } from '../codec/json.ts'
import type { TaskRecord } from '../codec/task-record.ts'
import type { Command } from '../process/logic.ts'
import type { TransactionContext } from './transaction-context.ts'

export type FailCommand = Extract<Command, { command: 'fail' }>

/** Enters a node without running anything yet. */
export function moveToNode(context: TransactionContext, task: TaskRecord, node_id: string): void {
  task.node_prev_id = task.node_id
  task.node_id = node_id
  task.visit++
  task.moves++
  task.due_ms = 0
  countMove(context, task)
}

/** Counts a command that the task, or another for it, has just made. */
function countMove(context: TransactionContext, task: TaskRecord): void {
  context.moves_left--
  context.moves_made++
  context.chain_moves = Math.max(context.chain_moves, task.moves)
}

/**
 * Wakes a task for another, in this transaction if there are moves left, else in the next. That is
 * a command too, and goes on with the chain of `moves` that led to it: tasks that wake or make one
 * another without end would else escape both bounds.
 */
export function wake(
  context: TransactionContext,
  task: TaskRecord,
  logic_at: number,
  moves: number,
): void {
  makeReady(context, task, logic_at)
  task.moves = Math.max(task.moves, moves) + 1
  countMove(context, task)
  context.run_queue.push(task.obj_id)
}

/** To the error node with the fields that tell what happened, or failed where it is. */
export function moveToErrorNode(
  context: TransactionContext,
  task: TaskRecord,
  command: FailCommand,
): 'moved' | 'stays' {
  if (command.err_node_id === undefined) {
    fail(task, command.tag, command.description)
    return 'stays'
  }
  setErrorFields(task, command, context.engine.limits.task_bytes_max)
  moveToNode(context, task, command.err_node_id)
  return 'moved'
}

/** Makes the task go on at a logic of its node, in its turn on the agenda or of the timers. */
export function makeReady(context: TransactionContext, task: TaskRecord, logic_at: number): void {
  task.status = 'processing'
  task.details = undefined
  task.wait = 'ready'
  task.logic_at = logic_at
  task.due_ms = Math.max(1, context.now_ms)
}

const description_chars_max = 1_000

/** Stays in its node, failed; retry and cancel are its ways on. */
export function fail(task: TaskRecord, tag: string, description: string): void {
  task.status = 'failed'
  task.details = { tag, description: boundedText(description) }
  task.wait = 'nothing'
  task.due_ms = 0
  task.at_ms = 0
}

/** The three fields that tell an error node what happened; left out where they would not fit. */
function setErrorFields(task: TaskRecord, command: FailCommand, task_bytes_max: number): void {
  const data = { ...objectOf(task.doc) }
  const prefix = `__conveyor_${command.kind}_return`
  setMember(data, `${prefix}_type_error__`, command.error_type)
  setMember(data, `${prefix}_type_tag__`, command.tag)
  setMember(data, `${prefix}_description__`, boundedText(command.description))
  const doc = docOfValue(data)
  if (bytesOf(doc.text) <= task_bytes_max) task.doc = doc
}

/** Descriptions come from code and endpoints too; a cut must not leave half a character either. */
function boundedText(description: string): string {
  return description.slice(0, description_chars_max).toWellFormed()
}
