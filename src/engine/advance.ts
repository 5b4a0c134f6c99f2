/**
 * Moves one task until it rests: the only place where moves of logics are applied (law 6).
 *
 * A task enters a node and its logics run in order. `next` and `set` go on with the next one, `go`
 * enters another node, `rest` waits for a modify, `fail` goes to the error node or stays, failed.
 * Where all fall through, the task rests in the node. As it rests, the earliest time semaphor of
 * the node is armed; one that runs already for this visit keeps its time. An end node ends the
 * task. Moves that touch other tasks are done by engine/effects, which never runs another task
 * here: it makes it ready and puts it on the agenda.
 *
 * Moves are bounded twice: so many for one op, then the task is `ready` and goes on in the next
 * transaction; so many without rest, then it has failed with tag `loop`. A rest whose timer is
 * already due is none, or a circle of past semaphors would run for ever.
 *
 * `walk` changes the draft alone; saving it is the caller's.
 */
import { bytesOf } from '../codec/json.ts'
import { queueOf, queueOfKey } from '../codec/keys.ts'
import type { TaskRecord, Wait } from '../codec/task-record.ts'
import type { GraphNode } from '../process/graph.ts'
import type { Command, EvaluationContext } from '../process/logic.ts'
import type { Process } from './catalog.ts'
import { applyEffect } from './effects.ts'
import { evaluationContextOf } from './evaluation-context.ts'
import type { Draft } from './task-store.ts'
import type { TransactionContext } from './transaction-context.ts'
import { fail, makeReady, moveToErrorNode, moveToNode } from './transitions.ts'

/** What became of an ended task's record. */
export interface Advanced {
  readonly keep_ended: boolean
}

/** Puts the task into a node and moves it on. */
export function enterNode(
  context: TransactionContext,
  process: Process,
  draft: Draft,
  node_id: string,
): Advanced {
  moveToNode(context, draft.task, node_id)
  return advance(context, process, draft, 0)
}

/**
 * Goes on in the node where the task is, from one of its logics; `first` is a command that has been
 * decided already for it.
 */
export function advance(
  context: TransactionContext,
  process: Process,
  draft: Draft,
  logic_at: number,
  first?: Command,
): Advanced {
  const { task } = draft
  const { limits } = context.engine
  const scope = evaluationContextOf(context, process, task)
  let at = logic_at
  let decided = first
  task.status = 'processing'
  task.details = undefined
  task.wait = 'nothing'
  task.called_id = undefined
  for (;;) {
    const node = process.graph.nodes.get(task.node_id) as GraphNode
    if (task.moves >= limits.moves_without_rest_max) {
      fail(task, 'loop', `${limits.moves_without_rest_max} moves without coming to rest`)
      return { keep_ended: true }
    }
    if (node.kind === 'end') {
      task.status = 'processed'
      return { keep_ended: node.save_task }
    }
    if (context.moves_left <= 0 && decided === undefined) {
      makeReady(context, task, at)
      return { keep_ended: true }
    }
    const logic = node.logics[at]
    const made = decided ?? (logic === undefined ? undefined : logic.run(scope))
    decided = undefined
    if (made === undefined) {
      startWait(context, task, node, 'nothing', 0, scope)
      return { keep_ended: true }
    }
    const command = withinSize(
      applyEffect(context, process, task, made),
      logic?.type ?? '',
      limits.task_bytes_max,
    )
    const waits_for = wait_of[command.command]
    if (waits_for !== undefined) {
      // A handler registered for the node answers in the place of a modify. Looked at as the task
      // comes to rest: one that rests for a modify already goes on waiting for it.
      const is_handled = waits_for === 'callback' && context.engine.isHandled(node.title)
      const wait = is_handled ? 'work' : waits_for
      startWait(context, task, node, wait, at, scope)
      return { keep_ended: true }
    }
    if (command.command === 'set') task.doc = command.doc
    if (command.command === 'go') {
      moveToNode(context, task, command.to_node_id)
      at = 0
    } else if (command.command === 'fail') {
      if (moveToErrorNode(context, task, command) === 'stays') return { keep_ended: true }
      at = 0
    } else at++
  }
}

/** The moves by which a task comes to rest, and what it then waits for. */
const wait_of: Readonly<Partial<Record<Command['command'], Wait>>> = {
  wait: 'callback',
  call: 'reply',
  queue: 'queue',
  job: 'work',
}

function startWait(
  context: TransactionContext,
  task: TaskRecord,
  node: GraphNode,
  wait: Wait,
  logic_at: number,
  scope: EvaluationContext,
): void {
  const { now_ms } = context
  task.status = 'delayed'
  task.wait = wait
  task.logic_at = logic_at
  task.at_ms = listTime(context, task, wait)
  task.attempts = 0
  // Each piece of work is a stay of its own, also where a retry or a modify brings the task back.
  if (wait === 'work') task.visit++
  if (task.due_ms === 0) {
    arm(task, node, scope)
    // A past time rings at once, but behind what has been due by now: else a stream of past ones
    // would keep the timers of other processes waiting for ever.
    if (task.due_ms !== 0) task.due_ms = Math.max(task.due_ms, now_ms)
  }
  if (task.due_ms === 0 || task.due_ms > now_ms) task.moves = 0
}

/**
 * Since when a task stands in a queue or in the list of work. Work behind work gets another time
 * than that just done, so that the list tells them apart; a task in a queue comes behind all that
 * are in it, also within one millisecond and where the clock was set back.
 */
function listTime(context: TransactionContext, task: TaskRecord, wait: Wait): number {
  const at_ms = Math.max(2, context.now_ms)
  if (wait === 'work') return at_ms === task.at_ms ? at_ms - 1 : at_ms
  if (wait !== 'queue') return 0
  const queue = queueOf(task.conv_id, task.node_id)
  const [last] = context.view.scan({ ...queue, limit: 1, reverse: true })
  return last === undefined ? at_ms : Math.max(at_ms, queueOfKey(last.key).since_ms + 1)
}

function arm(task: TaskRecord, node: GraphNode, scope: EvaluationContext): void {
  for (const [at, semaphor] of node.time_semaphors.entries()) {
    const due = semaphor.due(scope)
    if ('tag' in due) {
      fail(task, due.tag, due.description)
      return
    }
    // 0 stands for "none", so a time before 1970 rings as the first millisecond of it.
    const due_ms = Math.max(1, Math.ceil(due.due_ms))
    if (task.due_ms === 0 || due_ms < task.due_ms) {
      task.due_ms = due_ms
      task.semaphor_at = at
    }
  }
}

/** Whatever a logic checks itself, no data over the limit is ever kept. */
function withinSize(command: Command, kind: string, task_bytes_max: number): Command {
  if (command.command !== 'set') return command
  const bytes = bytesOf(command.doc.text)
  if (bytes <= task_bytes_max) return command
  return {
    command: 'fail',
    kind,
    error_type: 'software',
    tag: `${kind}_task_size_overflow`,
    description: `Your task size: ${bytes} bytes, Max available task size: ${task_bytes_max} bytes`,
    err_node_id: command.err_node_id,
  }
}
