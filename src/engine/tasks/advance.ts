/**
 * Advances a task until it waits, ends or fails; only this file applies the commands of logics.
 *
 * Logics of a node run in order. `next` and `set` continue, `go` moves the task, `wait`, `call`,
 * `queue` and `job` make it wait, `fail` moves it to the error node or leaves it failed. After the
 * last logic the task waits for a timer. A wait arms the earliest time semaphor, unless one is
 * armed. Commands never run another task: they put it into the run queue.
 *
 * Moves are bounded twice. A task that has used up an op's moves is `ready` and continues in a
 * later transaction. After `moves_without_rest_max` moves without a wait it fails with the tag
 * `loop`, unless its last own move ends it; a wait whose timer is already due does not count.
 */
import { queueOf, queueOfKey } from '../../codec/keys.ts'
import type { TaskRecord, Wait } from '../../codec/task-record.ts'
import type { HistoryWhy } from '../../core/model.ts'
import type { GraphNode } from '../../process/graph.ts'
import type { Command, EvaluationContext } from '../../process/logic.ts'
import type { Process } from '../transactions/catalog.ts'
import { addSums } from '../transactions/node-counters.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { call, reply } from './call-command.ts'
import { copyCreate, copyModify, queue, take } from './copy-command.ts'
import { evaluationContextOf } from './evaluation-context.ts'
import { recordEntry, recordGo } from './history.ts'
import { overSize } from './task-rules.ts'
import type { TaskDraft } from './task-store.ts'
import {
  countSteps,
  fail,
  failCommand,
  makeReady,
  moveToErrorNode,
  moveToNode,
} from './transitions.ts'
import { migrationTarget } from './waits.ts'

/** Moves the task to a node and advances it there. The caller saves it. */
export function enterNode(
  tx: Transaction,
  process: Process,
  draft: TaskDraft,
  node_id: string,
  why: HistoryWhy,
  by?: string,
): void {
  moveToNode(tx, draft.task, node_id)
  recordEntry(tx, draft.task, why, by)
  advance(tx, process, draft, 0)
}

/**
 * Advances the task from a logic of its node. `decided` is that logic's command, if a job has given
 * it. The caller saves the task.
 */
export function advance(
  tx: Transaction,
  process: Process,
  draft: TaskDraft,
  logic_at: number,
  decided?: Command,
): void {
  const { task } = draft
  const { moves_without_rest_max } = tx.engine.limits
  const evaluation = evaluationContextOf(tx, process, task)
  let at = logic_at
  let given = decided
  task.status = 'processing'
  task.details = undefined
  task.wait = 'nothing'
  task.called_id = undefined
  for (;;) {
    const node = process.graph.nodes.get(task.node_id) as GraphNode
    if (task.moves >= moves_without_rest_max && !endsItself(task, node, moves_without_rest_max)) {
      fail(tx, task, 'loop', `${moves_without_rest_max} moves without coming to rest`)
      return
    }
    if (node.kind === 'end') {
      task.status = 'processed'
      draft.keep_ended = node.save_task
      return
    }
    if (tx.moves_left <= 0 && given === undefined) {
      makeReady(tx, task, at)
      return
    }
    const logic = node.logics[at]
    const held_up = node.limits && given === undefined && takeSlots(tx, task, node, at, evaluation)
    if (held_up === 'not_loaded') {
      makeReady(tx, task, at)
      return
    }
    const wanted = given ?? (held_up || logic?.run(evaluation))
    countSteps(tx)
    given = undefined
    if (wanted === undefined) {
      startWait(tx, task, node, 'nothing', 0, evaluation)
      return
    }
    const command = apply(tx, process, task, wanted, logic?.type ?? '')
    const waits_for = wait_of[command.command]
    if (waits_for !== undefined) {
      // A handler of this title answers instead of a modify. hand-over.ts serves handlers
      // registered later.
      const is_handled =
        waits_for === 'callback' &&
        tx.engine.handlerName(tx.view, task.conv_id, node.title) !== undefined
      startWait(tx, task, node, is_handled ? 'work' : waits_for, at, evaluation)
      return
    }
    if (command.command === 'go') {
      moveToNode(tx, task, command.to_node_id)
      recordGo(tx, task)
      at = 0
    } else if (command.command === 'fail') {
      if (moveToErrorNode(tx, task, command) === 'stays') return
      at = 0
    } else at++
  }
}

/**
 * Whether a task ends with its last move, if it made all moves itself, outside any chain: so a
 * process runs whose nodes, at their maximum, form one line.
 */
function endsItself({ moves, visit }: TaskRecord, { kind }: GraphNode, moves_max: number): boolean {
  return kind === 'end' && moves === moves_max && visit >= moves_max
}

/** Commands that make a task wait, and for what. */
const wait_of: Readonly<Partial<Record<Command['command'], Wait>>> = {
  wait: 'callback',
  call: 'reply',
  queue: 'queue',
  job: 'work',
  slot: 'slot',
}

/** Undefined once the task has all slots that it needs before a logic of its node. */
function takeSlots(
  tx: Transaction,
  task: TaskRecord,
  node: GraphNode,
  logic_at: number,
  evaluation: EvaluationContext,
): Command | 'not_loaded' | undefined {
  if (tx.engine.slots !== undefined) {
    return tx.engine.slots.take(tx, task, node, logic_at, evaluation)
  }
  // The task is ready until they are; its due key has it run then.
  tx.recordNeedOfSlots()
  return 'not_loaded'
}

/** Applies a command's effects on data and other tasks; returns the rest. */
function apply(
  tx: Transaction,
  process: Process,
  task: TaskRecord,
  command: Command,
  kind: string,
): Command {
  switch (command.command) {
    case 'set':
      return setData(tx, task, command, kind)
    case 'copy_create':
      return apply(tx, process, task, copyCreate(tx, process, task, command), kind)
    case 'copy_modify':
      return apply(tx, process, task, copyModify(tx, process, task, command), kind)
    case 'call':
      return call(tx, process, task, command)
    case 'reply':
    case 'reply_exception':
      return reply(tx, task, command)
    case 'queue':
      return queue(tx, task, command)
    case 'take':
      return apply(tx, process, task, take(tx, process, task, command), kind)
    case 'sum':
      addSums(tx.store, task, command.terms)
      return command
    default:
      return command
  }
}

/** Never keeps data over the limit, whatever a logic has checked. */
function setData(
  tx: Transaction,
  task: TaskRecord,
  command: Extract<Command, { command: 'set' }>,
  kind: string,
): Command {
  const over = overSize(tx, command.doc)
  if (over !== undefined) {
    const tag = `${kind}_task_size_overflow`
    return failCommand(kind, 'software', tag, over.description, command.err_node_id)
  }
  task.doc = command.doc
  return command
}

function startWait(
  tx: Transaction,
  task: TaskRecord,
  node: GraphNode,
  wait: Wait,
  logic_at: number,
  evaluation: EvaluationContext,
): void {
  const { now_ms } = tx
  task.status = 'delayed'
  task.wait = wait
  task.logic_at = logic_at
  task.at_ms = listTime(tx, task, wait)
  task.attempts = 0
  // Each job is a visit of its own, also after a retry or a modify.
  if (wait === 'work') task.visit++
  if (task.due_ms === 0) {
    armTimer(tx, task, node, evaluation)
    // A past time becomes now, after everything overdue: a stream of past times must not starve the
    // timers of other processes.
    if (task.due_ms !== 0) task.due_ms = Math.max(task.due_ms, now_ms)
    countSteps(tx)
  }
  // A failed task is not resting: calling it again makes a move.
  const is_resting = task.status === 'delayed' && (task.due_ms === 0 || task.due_ms > now_ms)
  // In a line nothing rests: two tasks that pass a slot to each other must reach the bound.
  if (is_resting && wait !== 'slot') task.moves = 0
}

/**
 * The time in a queue or outbox key. Successive jobs of a task get different times, so that the
 * outbox distinguishes them. A task queues after all others, also within a millisecond and after
 * the clock was set back.
 */
function listTime(tx: Transaction, task: TaskRecord, wait: Wait): number {
  const at_ms = Math.max(2, tx.now_ms)
  if (wait === 'work') return at_ms === task.at_ms ? at_ms - 1 : at_ms
  if (wait !== 'queue') return 0
  const range = queueOf(task.conv_id, task.node_id)
  const [last] = tx.view.scan({ ...range, limit: 1, reverse: true })
  return last === undefined ? at_ms : Math.max(at_ms, queueOfKey(last.key).since_ms + 1)
}

function armTimer(
  tx: Transaction,
  task: TaskRecord,
  node: GraphNode,
  evaluation: EvaluationContext,
): void {
  for (const [at, semaphor] of node.time_semaphors.entries()) {
    const due = semaphor.due(evaluation)
    if ('tag' in due) {
      fail(tx, task, due.tag, due.description)
      return
    }
    // 0 means no timer, so earlier times become 1 ms after 1970.
    const due_ms = Math.max(1, Math.ceil(due.due_ms))
    if (task.due_ms === 0 || due_ms < task.due_ms) {
      task.due_ms = due_ms
      task.semaphor_at = at
    }
  }
}

/**
 * Migrates the task if its node was dropped; returns whether it did. The caller saves it. A waiting
 * task enters the new node and advances; a failed one stays failed there until retry or cancel.
 */
export function migrateTask(tx: Transaction, process: Process, draft: TaskDraft): boolean {
  const { task } = draft
  const node_id = migrationTarget(process, task)
  if (node_id === undefined) return false
  if (task.status === 'failed') {
    task.node_prev_id = task.node_id
    task.node_id = node_id
    task.visit++
    recordEntry(tx, task, 'migrate')
  } else enterNode(tx, process, draft, node_id, 'migrate')
  return true
}
