/**
 * The commands of calls between processes: `call` creates a task that must reply, `reply` and
 * `reply_exception` send the reply. A caller whose called task ends or fails without a reply goes
 * to its error node.
 */
import { mergeDocs } from '../../codec/doc-text.ts'
import type { TaskRecord } from '../../codec/task-record.ts'
import type { Command, FailCommand } from '../../process/logic.ts'
import type { Process } from '../transactions/catalog.ts'
import type { Transaction, UnansweredCaller } from '../transactions/transaction.ts'
import { resolveTarget } from './evaluation-context.ts'
import { recordEvent } from './history.ts'
import { accessDenied, checkNewTask, type OpRefusal, overSize } from './task-rules.ts'
import { readableTask, saveTask, type TaskDraft } from './task-store.ts'
import { failCommand, moveToErrorNode, resume, startTask } from './transitions.ts'
import { migrationTarget, waitLogic } from './waits.ts'

type Call = Extract<Command, { command: 'call' }>
type Reply = Extract<Command, { command: 'reply' | 'reply_exception' }>

export function call(tx: Transaction, process: Process, task: TaskRecord, command: Call): Command {
  const { conv, doc, err_node_id } = command
  const target = resolveTarget(tx, process, task, conv, 'create')
  if (target === undefined) return callFailed(accessDenied(task.user_id, conv.conv_id), err_node_id)
  const check = checkNewTask(tx, target, undefined, doc)
  if ('code' in check) return callFailed(check, err_node_id)
  const { obj_id: caller_id, user_id, moves, trace } = task
  const given = { conv_id: target.conv_id, ref: undefined, user_id, doc, caller_id, trace }
  task.called_id = startTask(tx, given, target.graph.start_id, moves, 'rpc')
  return command
}

export function reply(tx: Transaction, task: TaskRecord, command: Reply): Command {
  const { caller_id, obj_id, moves } = task
  task.caller_id = undefined
  const caller = caller_id === undefined ? undefined : findCaller(tx, caller_id, obj_id)
  if (caller !== undefined) resumeCaller(tx, caller, moves, mergeReply(tx, caller, command))
  return (command.command === 'reply_exception' ? command.failure : undefined) ?? command
}

/** Merges a reply into the caller's data; returns why the call fails, if it does. */
function mergeReply(
  tx: Transaction,
  { draft: { task }, err_node_id }: Caller,
  command: Reply,
): FailCommand | undefined {
  const doc = mergeDocs(task.doc, command.data)
  const over = overSize(tx, doc)
  if (over !== undefined) return callFailed(over, err_node_id)
  task.doc = doc
  if (command.command === 'reply') return undefined
  const tag = 'rpc_reply_exception'
  return failCommand('rpc_reply', 'software', tag, command.reason, err_node_id)
}

/** Resumes callers whose called task ended or failed without a reply. */
export function resumeUnansweredCallers(tx: Transaction): void {
  while (tx.unanswered_callers.length > 0) {
    const { caller_id, called_id, moves } = tx.unanswered_callers.shift() as UnansweredCaller
    const caller = findCaller(tx, caller_id, called_id)
    if (caller === undefined) continue
    const description = 'the called task ended or failed without a reply'
    const { err_node_id } = caller
    const tag = 'rpc_task_fatal_error'
    const failure = failCommand('rpc', 'hardware', tag, description, err_node_id)
    resumeCaller(tx, caller, moves, failure)
  }
}

interface Caller {
  readonly draft: TaskDraft
  /** The logic of its call; -1 if a new definition has none in its node. */
  readonly logic_at: number
  readonly err_node_id: string | undefined
  readonly in_dropped_node: boolean
}

/** The caller, if it still waits for this task's reply. */
function findCaller(tx: Transaction, caller_id: string, called_id: string): Caller | undefined {
  const draft = readableTask(tx.view, caller_id)
  if (draft === undefined) return undefined
  const { task } = draft
  if (task.wait !== 'reply' || task.called_id !== called_id) return undefined
  const process = tx.process(task.conv_id)
  const logic_at = process === undefined ? -1 : waitLogic(process, task, 'reply')
  const logic = process?.graph.nodes.get(task.node_id)?.logics[logic_at]
  const in_dropped_node = process !== undefined && migrationTarget(process, task) !== undefined
  return { draft, logic_at, err_node_id: logic?.err_node_id, in_dropped_node }
}

/**
 * Resumes the caller after its call, or in the error node. A caller in a dropped node migrates,
 * whatever the outcome.
 */
function resumeCaller(
  tx: Transaction,
  { draft, logic_at, in_dropped_node }: Caller,
  moves: number,
  failure: FailCommand | undefined,
): void {
  const { task } = draft
  task.called_id = undefined
  if (failure === undefined || in_dropped_node) {
    recordEvent(tx, task, 'reply')
    resume(tx, task, logic_at + 1, moves)
  } else {
    task.moves = Math.max(task.moves, moves)
    if (moveToErrorNode(tx, task, failure) === 'moved') resume(tx, task, 0, moves)
  }
  saveTask(tx, draft)
}

const tags: Readonly<Record<string, string>> = {
  task_size_overflow_limit: 'rpc_task_size_overflow',
  wrong_validate_params: 'rpc_task_wrong_convert_param',
  access_denied: 'access_denied',
  conv_not_found: 'access_denied',
}

function callFailed(
  { code, description }: OpRefusal,
  err_node_id: string | undefined,
): FailCommand {
  const tag = tags[code]
  const error_type = tag === undefined ? 'hardware' : 'software'
  return failCommand('rpc', error_type, tag ?? 'rpc_task_fatal_error', description, err_node_id)
}
