/**
 * Moves that touch more than their own task: copies, calls, replies, queues and sums. Each is
 * checked fully before its first write, happens in the transaction of the op that caused it, and
 * never runs another task: that one is made ready and goes on the agenda.
 */
import { docOfValue, mergeDocs, objectOf, setMember } from '../codec/json.ts'
import { queueOf, queueOfKey, sumKey } from '../codec/keys.ts'
import { decodeCount, encodeCount } from '../codec/records.ts'
import type { TaskRecord } from '../codec/task-record.ts'
import type { Doc, JsonObject, JsonValue, Ref } from '../core/model.ts'
import type { Command, TargetProcess } from '../process/logic.ts'
import type { Process } from './catalog.ts'
import { resolveTarget } from './evaluation-context.ts'
import {
  checkNewTask,
  damaged,
  no_callback,
  not_found_task,
  type OpRefusal,
  overSize,
  paused,
} from './task-rules.ts'
import { type Draft, loadTask, newTask, refHolder, saveTask } from './task-store.ts'
import type { TransactionContext, UnansweredCaller } from './transaction-context.ts'
import { type FailCommand, moveToErrorNode, wake } from './transitions.ts'
import { callbackLogic, isIdle, migrationTarget, waitLogic } from './waits.ts'

type Of<Name extends Command['command']> = Extract<Command, { command: Name }>

/** Does what reaches beyond the task, and answers the command that is left for the task itself. */
export function applyEffect(
  context: TransactionContext,
  process: Process,
  task: TaskRecord,
  command: Command,
): Command {
  switch (command.command) {
    case 'copy_create':
      return copyCreate(context, process, task, command)
    case 'copy_modify':
      return copyModify(context, process, task, command)
    case 'call':
      return call(context, process, task, command)
    case 'reply':
    case 'reply_exception':
      return reply(context, task, command)
    case 'queue':
      return queue(context, task, command)
    case 'take':
      return take(context, process, task, command)
    case 'sum':
      return addSums(context, task, command)
    default:
      return command
  }
}

function copyCreate(
  context: TransactionContext,
  process: Process,
  task: TaskRecord,
  command: Of<'copy_create'>,
): Command {
  const { err_node_id, doc } = command
  const target = resolveTarget(context, process, task, command.conv, 'create')
  if (target === undefined) return copyFailed(denied(command.conv, task), err_node_id)
  const ref = command.ref === undefined ? undefined : { text: command.ref, is_number: false }
  // This task holds its own ref, stored yet or not.
  const is_own = isOwnRef(task, command.conv, command.ref)
  if (is_own && target.head.status !== 'paused') return copyFailed(ref_taken, err_node_id)
  const admitted = checkNewTask(context.view, target, ref, doc, context.engine.limits)
  if (typeof admitted === 'object' && 'code' in admitted) return copyFailed(admitted, err_node_id)
  const copied = copyDone(context, task.doc, err_node_id)
  if (admitted === 'new' && copied.command === 'set') startTask(context, target, task, { ref, doc })
  return copied
}

function copyModify(
  context: TransactionContext,
  process: Process,
  task: TaskRecord,
  command: Of<'copy_modify'>,
): Command {
  const { err_node_id } = command
  const target = resolveTarget(context, process, task, command.conv, 'modify')
  if (target === undefined) return copyFailed(denied(command.conv, task), err_node_id)
  if (target.head.status === 'paused') return copyFailed(paused, err_node_id)
  const obj_id = refHolder(context.view, target.conv_id, command.ref)
  if (obj_id === task.obj_id || isOwnRef(task, command.conv, command.ref)) {
    // A task that runs does not wait for a callback.
    if (command.is_sync) return copyFailed(no_callback, err_node_id)
    return copyDone(context, mergeDocs(task.doc, command.doc), err_node_id)
  }
  const copied = copyDone(context, task.doc, err_node_id)
  if (copied.command !== 'set') return copied
  const refusal = modifyOther(context, target, task, obj_id, command)
  return refusal === undefined ? copied : copyFailed(refusal, err_node_id)
}

function isOwnRef(task: TaskRecord, { conv_id }: TargetProcess, ref: string | undefined): boolean {
  return task.conv_id === conv_id && ref !== undefined && task.ref?.text === ref
}

function modifyOther(
  context: TransactionContext,
  target: Process,
  maker: TaskRecord,
  obj_id: string | undefined,
  command: Of<'copy_modify'>,
): OpRefusal | undefined {
  const found = obj_id === undefined ? undefined : loadTask(context.view, obj_id)
  if (found === 'damaged') return damaged(obj_id as string)
  if (found === undefined) return not_found_task
  const { task } = found
  const is_homeless = migrationTarget(target, task) !== undefined
  const waits_at = is_homeless ? -1 : callbackLogic(target, task)
  if (command.is_sync && waits_at === -1) return no_callback
  const doc = mergeDocs(task.doc, command.doc)
  const over = overSize(doc.text, context.engine.limits.task_bytes_max)
  if (over !== undefined) return over
  task.doc = doc
  if (waits_at !== -1) wake(context, task, waits_at + 1, maker.moves)
  else if (target.graph.kind === 'state' && isIdle(task)) wake(context, task, 0, maker.moves)
  saveTask(context, found)
  return undefined
}

function call(
  context: TransactionContext,
  process: Process,
  task: TaskRecord,
  command: Of<'call'>,
): Command {
  const { err_node_id, doc } = command
  const target = resolveTarget(context, process, task, command.conv, 'create')
  if (target === undefined) return rpcFailed(denied(command.conv, task), err_node_id)
  const admitted = checkNewTask(context.view, target, undefined, doc, context.engine.limits)
  if (typeof admitted === 'object' && 'code' in admitted) return rpcFailed(admitted, err_node_id)
  const caller_id = task.obj_id
  task.called_id = startTask(context, target, task, { ref: undefined, doc, caller_id })
  return command
}

function startTask(
  context: TransactionContext,
  target: Process,
  maker: TaskRecord,
  given: { ref: Ref | undefined; doc: Doc; caller_id?: string },
): string {
  const { conv_id } = target
  const { user_id, moves } = maker
  const draft = newTask(context, { ...given, conv_id, user_id })
  standAtStart(context, draft, target.graph.start_id, moves)
  return draft.task.obj_id
}

/** Puts a new task into its first node, ready to run in its turn. */
function standAtStart(
  context: TransactionContext,
  draft: Draft,
  node_id: string,
  moves: number,
): void {
  const { task } = draft
  task.node_id = node_id
  task.visit++
  wake(context, task, 0, moves)
  saveTask(context, draft)
}

function reply(
  context: TransactionContext,
  task: TaskRecord,
  command: Of<'reply'> | Of<'reply_exception'>,
): Command {
  const { caller_id } = task
  if (caller_id === undefined) return { command: 'next' }
  task.caller_id = undefined
  resumeCaller(context, caller_id, task, (caller, err_node_id) => {
    const doc = mergeDocs(caller.doc, command.data)
    const over = overSize(doc.text, context.engine.limits.task_bytes_max)
    if (over !== undefined) return rpcFailed(over, err_node_id)
    caller.doc = doc
    if (command.command === 'reply') return undefined
    return failed('rpc_reply', 'software', 'rpc_reply_exception', command.reason, err_node_id)
  })
  return { command: 'next' }
}

/** Callers of tasks that ended or failed without a reply go to their error node. */
export function resumeUnansweredCallers(context: TransactionContext): void {
  while (context.unanswered_callers.length > 0) {
    const { caller_id, called_id, moves } = context.unanswered_callers.shift() as UnansweredCaller
    const description = 'the called task ended or failed without a reply'
    resumeCaller(context, caller_id, { obj_id: called_id, moves }, (_caller, err_node_id) =>
      failed('rpc', 'hardware', 'rpc_task_fatal_error', description, err_node_id),
    )
  }
}

/** Sends the caller on if it still waits for this task: behind its call, or where `judge` says. */
function resumeCaller(
  context: TransactionContext,
  caller_id: string,
  called: Pick<TaskRecord, 'obj_id' | 'moves'>,
  judge: (caller: TaskRecord, err_node_id: string | undefined) => FailCommand | undefined,
): void {
  const draft = loadTask(context.view, caller_id)
  if (draft === undefined || draft === 'damaged') return
  const { task: caller } = draft
  if (caller.wait !== 'reply' || caller.called_id !== called.obj_id) return
  const process = context.process(caller.conv_id)
  const is_homeless = process !== undefined && migrationTarget(process, caller) !== undefined
  const logic_at = process === undefined ? -1 : waitLogic(process, caller, 'reply')
  const logic = process?.graph.nodes.get(caller.node_id)?.logics[logic_at]
  caller.called_id = undefined
  const failure = judge(caller, logic?.err_node_id)
  // A task whose node is gone goes where the import says, whatever came of its call.
  if (failure === undefined || is_homeless) wake(context, caller, logic_at + 1, called.moves)
  else {
    caller.moves = Math.max(caller.moves, called.moves)
    if (moveToErrorNode(context, caller, failure) === 'moved')
      wake(context, caller, 0, called.moves)
  }
  saveTask(context, draft)
}

function queue(context: TransactionContext, task: TaskRecord, command: Of<'queue'>): Command {
  const { doc, err_node_id } = command
  if (doc === undefined) return command
  const over = overSize(doc.text, context.engine.limits.task_bytes_max)
  if (over !== undefined) return tooLarge('queue', 'queue_task_size_overflow', over, err_node_id)
  task.doc = doc
  return command
}

/** Damaged tasks are passed over, so that one does not keep a queue shut; `check` names them. */
const looked_at_max = 64

function take(
  context: TransactionContext,
  process: Process,
  task: TaskRecord,
  command: Of<'take'>,
): Command {
  const { node_id, newest, err_node_id } = command
  const notTaken = (description: string): FailCommand =>
    failed('get_task', 'software', 'get_task_executing_error', description, err_node_id)
  const target = resolveTarget(context, process, task, command.conv, 'modify')
  if (target === undefined) return notTaken('access_denied')
  if (target.head.status === 'paused') return notTaken(paused.description)
  const { logics = [] } = target.graph.nodes.get(node_id) ?? {}
  if (!logics.some(({ waits_for }) => waits_for === 'queue')) {
    const description = `No queue logic in conv_id: ${target.conv_id}`
    return failed('queue', 'software', 'queue_wrong_logic', description, err_node_id)
  }
  const found = firstInQueue(context, target.conv_id, task.obj_id, node_id, newest)
  if (found === undefined) return notTaken('not_found_task')
  if (found === 'damaged') {
    const description = 'the tasks in the queue are damaged'
    return failed('get_task', 'hardware', 'get_task_fatal_error', description, err_node_id)
  }
  const given = {
    __queue_task_data__: objectOf(found.task.doc),
    __queue_task_id__: found.task.obj_id,
  }
  const doc = withMembers(task.doc, given)
  const over = overSize(doc.text, context.engine.limits.task_bytes_max)
  if (over !== undefined) return tooLarge('get_task', 'get_task_size_overflow', over, err_node_id)
  wake(context, found.task, waitLogic(target, found.task, 'queue') + 1, task.moves)
  saveTask(context, found)
  return { command: 'set', doc, err_node_id }
}

function firstInQueue(
  context: TransactionContext,
  conv_id: string,
  taker_id: string,
  node_id: string,
  newest: boolean,
): Draft | 'damaged' | undefined {
  let is_damaged = false
  const span = queueOf(conv_id, node_id)
  for (const { key } of context.tx.scan({ ...span, limit: looked_at_max, reverse: newest })) {
    const { obj_id } = queueOfKey(key)
    // One that a timer has just taken out of this queue is still listed until it is saved.
    if (obj_id === taker_id) continue
    const found = loadTask(context.view, obj_id)
    if (found !== undefined && found !== 'damaged') return found
    is_damaged = true
  }
  return is_damaged ? 'damaged' : undefined
}

function addSums(context: TransactionContext, task: TaskRecord, command: Of<'sum'>): Command {
  for (const { name, value } of command.terms) {
    const key = sumKey(task.conv_id, task.node_id, name)
    const sum = decodeCount(context.tx.get(key)) + value
    // A sum stays a number of JSON, however much is added.
    const bounded = Math.max(-Number.MAX_VALUE, Math.min(sum, Number.MAX_VALUE))
    context.tx.put(key, encodeCount(bounded))
  }
  return { command: 'next' }
}

/**
 * Signal tasks of count semaphors: one as the number of tasks in a node comes to the value, one as
 * it falls below.
 */
export function sendSignals(context: TransactionContext): void {
  for (const { conv_id, node_id, before, now } of context.takeCountChanges()) {
    const process = context.process(conv_id)
    for (const { value, esc_node_id } of process?.graph.nodes.get(node_id)?.count_semaphors ?? []) {
      const starts = before < value && now >= value
      if (!starts && !(before >= value && now < value)) continue
      const doc = docOfValue({ start: starts ? 'true' : 'false' })
      const draft = newTask(context, { conv_id, ref: undefined, user_id: undefined, doc })
      standAtStart(context, draft, esc_node_id, context.chain_moves)
    }
  }
}

function copyDone(context: TransactionContext, doc: Doc, err_node_id: string | undefined): Command {
  const done = withMembers(doc, { __conveyor_copy_task_result__: 'ok' })
  const over = overSize(done.text, context.engine.limits.task_bytes_max)
  return over === undefined
    ? { command: 'set', doc: done, err_node_id }
    : copyFailed(over, err_node_id)
}

function withMembers(doc: Doc, members: JsonObject): Doc {
  const data: JsonObject = { ...objectOf(doc) }
  for (const key of Object.keys(members)) setMember(data, key, members[key] as JsonValue)
  return docOfValue(data)
}

function tooLarge(
  kind: string,
  tag: string,
  { description }: OpRefusal,
  err_node_id: string | undefined,
): FailCommand {
  return failed(kind, 'software', tag, description, err_node_id)
}

const ref_taken: OpRefusal = { code: 'not_unical_ref', description: 'not unical reference' }

function denied({ conv_id }: TargetProcess, task: TaskRecord): OpRefusal {
  const description = `user: ${task.user_id ?? '-'}, conv_id: ${conv_id}`
  return { code: 'access_denied', description }
}

/** Codes whose tag has another name. */
const copy_tags: Readonly<Record<string, string>> = {
  task_size_overflow_limit: 'copy_task_size_overflow_limit',
  conv_not_found: 'access_denied',
  task_damaged: 'copy_task_fatal_error',
}

const rpc_tags: Readonly<Record<string, string>> = {
  task_size_overflow_limit: 'rpc_task_size_overflow',
  wrong_validate_params: 'rpc_task_wrong_convert_param',
  access_denied: 'access_denied',
  conv_not_found: 'access_denied',
}

function copyFailed(
  { code, description }: OpRefusal,
  err_node_id: string | undefined,
): FailCommand {
  const error_type = code === 'task_damaged' ? 'hardware' : 'software'
  return failed('copy_task', error_type, copy_tags[code] ?? code, description, err_node_id)
}

/** What is none of the tags of a call is a fatal error of it: another try may help. */
function rpcFailed({ code, description }: OpRefusal, err_node_id: string | undefined): FailCommand {
  const tag = rpc_tags[code]
  const error_type = tag === undefined ? 'hardware' : 'software'
  return failed('rpc', error_type, tag ?? 'rpc_task_fatal_error', description, err_node_id)
}

function failed(
  kind: string,
  error_type: FailCommand['error_type'],
  tag: string,
  description: string,
  err_node_id: string | undefined,
): FailCommand {
  return { command: 'fail', kind, error_type, tag, description, err_node_id }
}
