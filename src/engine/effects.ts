/**
 * Moves that touch more than their own task: copies, calls, replies, queues and sums. Each is checked
 * fully before its first write, happens in the transaction of the op that caused it, and never runs
 * another task: that one is made ready and goes on the agenda.
 */
import { docOfValue, mergeDocs, objectOf, setMember } from '../bytes/json.ts'
import { queueOf, queueOfKey, sumKey } from '../bytes/keys.ts'
import { decodeCount, encodeCount } from '../bytes/records.ts'
import type { TaskRecord } from '../bytes/task-record.ts'
import type { ConvReach, Move } from '../logic/logic.ts'
import type { Doc, JsonObject, JsonValue, Ref } from '../words/model.ts'
import type { Process } from './catalog.ts'
import {
  admitTask,
  damaged,
  no_callback,
  not_found_task,
  overSize,
  paused,
  type Refusal,
} from './create.ts'
import { reachOf } from './scope.ts'
import { type FailMove, failInto, makeReady, step } from './steps.ts'
import { holderOf, loadTask, newTask, saveTask } from './task-file.ts'
import { isIdle, newHome, waitingLogic } from './waiting.ts'
import type { Work } from './work.ts'

type Of<Name extends Move['move']> = Extract<Move, { move: Name }>

/** Does what reaches beyond the task, and answers the move that is left for the task itself. */
export function applyEffect(work: Work, process: Process, task: TaskRecord, move: Move): Move {
  switch (move.move) {
    case 'copy_create':
      return copyCreate(work, process, task, move)
    case 'copy_modify':
      return copyModify(work, process, task, move)
    case 'call':
      return call(work, process, task, move)
    case 'reply':
    case 'reply_exception':
      return reply(work, task, move)
    case 'queue':
      if (move.doc !== undefined) task.doc = move.doc
      return move
    case 'take':
      return take(work, process, task, move)
    case 'sum':
      return addSums(work, task, move)
    default:
      return move
  }
}

function copyCreate(work: Work, process: Process, task: TaskRecord, move: Of<'copy_create'>): Move {
  const { err_node_id, doc } = move
  const target = reachOf(work, process, task, move.conv, 'create')
  if (target === undefined) return copyFailed(denied(move.conv, task), err_node_id)
  const ref = move.ref === undefined ? undefined : { text: move.ref, is_number: false }
  const admitted = admitTask(work.view, target, ref, doc, work.shared.limits)
  if (typeof admitted === 'object' && 'code' in admitted) return copyFailed(admitted, err_node_id)
  if (admitted === 'new') startTask(work, target, task, { ref, doc })
  return withMembers(task, { __conveyor_copy_task_result__: 'ok' }, err_node_id)
}

function copyModify(work: Work, process: Process, task: TaskRecord, move: Of<'copy_modify'>): Move {
  const { err_node_id } = move
  const target = reachOf(work, process, task, move.conv, 'modify')
  if (target === undefined) return copyFailed(denied(move.conv, task), err_node_id)
  if (target.head.status === 'paused') return copyFailed(paused, err_node_id)
  const obj_id = holderOf(work.view, move.conv.conv_id, move.ref)
  if (obj_id === task.obj_id || isOwn(task, move)) return modifySelf(task, move)
  const refusal = modifyOther(work, target, obj_id, move)
  if (refusal !== undefined) return copyFailed(refusal, err_node_id)
  return withMembers(task, { __conveyor_copy_task_result__: 'ok' }, err_node_id)
}

/** A task that is not stored yet holds its ref all the same. */
function isOwn(task: TaskRecord, move: Of<'copy_modify'>): boolean {
  return task.conv_id === move.conv.conv_id && task.ref?.text === move.ref
}

/** A task that runs does not wait for a callback. */
function modifySelf(task: TaskRecord, move: Of<'copy_modify'>): Move {
  if (move.is_sync) return copyFailed(no_callback, move.err_node_id)
  const doc = mergeDocs(task.doc, move.doc)
  return withMembers({ ...task, doc }, { __conveyor_copy_task_result__: 'ok' }, move.err_node_id)
}

function modifyOther(
  work: Work,
  target: Process,
  obj_id: string | undefined,
  move: Of<'copy_modify'>,
): Refusal | undefined {
  const found = obj_id === undefined ? undefined : loadTask(work.view, obj_id)
  if (found === 'damaged') return damaged(obj_id as string)
  if (found === undefined) return not_found_task
  const home = newHome(target, found.task)
  if (home !== undefined) step(work, found.task, home)
  const waits_at = home === undefined ? waitingLogic(target, found.task) : -1
  if (move.is_sync && waits_at === -1) return no_callback
  const doc = mergeDocs(found.task.doc, move.doc)
  const over = overSize(doc.text, work.shared.limits.task_bytes_max)
  if (over !== undefined) return over
  found.task.doc = doc
  if (home !== undefined) wakeTask(work, found.task, 0)
  else if (waits_at !== -1) wakeTask(work, found.task, waits_at + 1)
  else if (target.graph.kind === 'state' && isIdle(found.task)) wakeTask(work, found.task, 0)
  saveTask(work, found)
  return undefined
}

function call(work: Work, process: Process, task: TaskRecord, move: Of<'call'>): Move {
  const { err_node_id, doc } = move
  const target = reachOf(work, process, task, move.conv, 'create')
  if (target === undefined) return rpcFailed(denied(move.conv, task), err_node_id)
  const admitted = admitTask(work.view, target, undefined, doc, work.shared.limits)
  if (typeof admitted === 'object' && 'code' in admitted) return rpcFailed(admitted, err_node_id)
  const caller_id = task.obj_id
  task.called_id = startTask(work, target, task, { ref: undefined, doc, caller_id })
  return move
}

function startTask(
  work: Work,
  target: Process,
  maker: TaskRecord,
  given: { ref: Ref | undefined; doc: Doc; caller_id?: string },
): string {
  const { conv_id } = target
  const { user_id, moves } = maker
  const draft = newTask(work, { ...given, conv_id, user_id, moves })
  const moves_left = work.moves_left
  step(work, draft.task, target.graph.start_id)
  work.moves_left = moves_left
  wakeTask(work, draft.task, 0)
  saveTask(work, draft)
  return draft.task.obj_id
}

/** Makes a task go on in this transaction if there are moves left, else in the next. */
function wakeTask(work: Work, task: TaskRecord, logic_at: number): void {
  makeReady(work, task, logic_at)
  work.agenda.push(task.obj_id)
}

function reply(work: Work, task: TaskRecord, move: Of<'reply'> | Of<'reply_exception'>): Move {
  const { caller_id } = task
  if (caller_id === undefined) return { move: 'next' }
  task.caller_id = undefined
  releaseCaller(work, caller_id, task, (caller, err_node_id) => {
    const doc = mergeDocs(caller.doc, move.data)
    const over = overSize(doc.text, work.shared.limits.task_bytes_max)
    if (over !== undefined) return rpcFailed(over, err_node_id)
    caller.doc = doc
    if (move.move === 'reply') return undefined
    return failed('rpc', 'software', 'rpc_reply_exception', move.reason, err_node_id)
  })
  return { move: 'next' }
}

/** Callers of tasks that ended without a reply go to their error node. */
export function releaseOrphans(work: Work): void {
  for (const { caller_id, called_id } of work.orphans.splice(0)) {
    const description = 'the called task ended without a reply'
    releaseCaller(work, caller_id, { obj_id: called_id, moves: 0 }, (_caller, err_node_id) =>
      failed('rpc', 'hardware', 'rpc_task_fatal_error', description, err_node_id),
    )
  }
}

/** Sends the caller on if it still waits for this task: behind its call, or where `judge` says. */
function releaseCaller(
  work: Work,
  caller_id: string,
  called: Pick<TaskRecord, 'obj_id' | 'moves'>,
  judge: (caller: TaskRecord, err_node_id: string | undefined) => FailMove | undefined,
): void {
  const draft = loadTask(work.view, caller_id)
  if (draft === undefined || draft === 'damaged') return
  const { task: caller } = draft
  if (caller.wait !== 'reply' || caller.called_id !== called.obj_id) return
  const process = work.process(caller.conv_id)
  const logic = process?.graph.nodes.get(caller.node_id)?.logics[caller.logic_at]
  caller.called_id = undefined
  caller.moves = Math.max(caller.moves, called.moves)
  const failure = judge(caller, logic?.err_node_id)
  if (failure === undefined) wakeTask(work, caller, caller.logic_at + 1)
  else if (failInto(work, caller, failure) === 'moved') wakeTask(work, caller, 0)
  saveTask(work, draft)
}

function take(work: Work, process: Process, task: TaskRecord, move: Of<'take'>): Move {
  const { node_id, newest, err_node_id } = move
  const target = reachOf(work, process, task, move.conv, 'modify')
  if (target === undefined) {
    return failed(
      'get_task',
      'software',
      'access_denied',
      denied(move.conv, task).description,
      err_node_id,
    )
  }
  if (!target.graph.nodes.get(node_id)?.logics.some(({ type }) => type === 'api_queue')) {
    return failed('get_task', 'software', 'queue_wrong_logic', 'the node has no queue', err_node_id)
  }
  const [first] = work.tx.scan({ ...queueOf(target.conv_id, node_id), limit: 1, reverse: newest })
  const found = first === undefined ? undefined : loadTask(work.view, queueOfKey(first.key).obj_id)
  if (found === undefined) {
    return failed(
      'get_task',
      'software',
      'get_task_executing_error',
      'the queue is empty',
      err_node_id,
    )
  }
  if (found === 'damaged') {
    return failed(
      'get_task',
      'hardware',
      'get_task_fatal_error',
      'the task is damaged',
      err_node_id,
    )
  }
  const given = {
    __queue_task_data__: objectOf(found.task.doc),
    __queue_task_id__: found.task.obj_id,
  }
  wakeTask(work, found.task, found.task.logic_at + 1)
  saveTask(work, found)
  return withMembers(task, given, err_node_id)
}

function addSums(work: Work, task: TaskRecord, move: Of<'sum'>): Move {
  for (const { name, value } of move.terms) {
    const key = sumKey(task.conv_id, task.node_id, name)
    work.tx.put(key, encodeCount(decodeCount(work.tx.get(key)) + value))
  }
  return { move: 'next' }
}

/**
 * Signal tasks of count semaphors: one as the number of tasks in a node comes to the value, one as
 * it falls below.
 */
export function sendSignals(work: Work): void {
  for (const { conv_id, node_id, before, now } of work.takeCounted()) {
    const process = work.process(conv_id)
    for (const { value, esc_node_id } of process?.graph.nodes.get(node_id)?.count_semaphors ?? []) {
      const starts = before < value && now >= value
      if (!starts && !(before >= value && now < value)) continue
      const doc = docOfValue({ start: starts ? 'true' : 'false' })
      const draft = newTask(work, { conv_id, ref: undefined, user_id: undefined, doc })
      step(work, draft.task, esc_node_id)
      wakeTask(work, draft.task, 0)
      saveTask(work, draft)
    }
  }
}

function withMembers(task: TaskRecord, members: JsonObject, err_node_id: string | undefined): Move {
  const data: JsonObject = { ...objectOf(task.doc) }
  for (const key of Object.keys(members)) setMember(data, key, members[key] as JsonValue)
  return { move: 'set', doc: docOfValue(data), err_node_id }
}

function denied({ conv_id }: ConvReach, task: TaskRecord): Refusal {
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
  access_denied: 'access_denied',
  conv_not_found: 'access_denied',
}

function copyFailed({ code, description }: Refusal, err_node_id: string | undefined): FailMove {
  const error_type = code === 'task_damaged' ? 'hardware' : 'software'
  return failed('copy_task', error_type, copy_tags[code] ?? code, description, err_node_id)
}

/** What is none of the tags of a call is a fatal error of it: another try may help. */
function rpcFailed({ code, description }: Refusal, err_node_id: string | undefined): FailMove {
  const tag = rpc_tags[code]
  const error_type = tag === undefined ? 'hardware' : 'software'
  return failed('rpc', error_type, tag ?? 'rpc_task_fatal_error', description, err_node_id)
}

function failed(
  kind: string,
  error_type: FailMove['error_type'],
  tag: string,
  description: string,
  err_node_id: string | undefined,
): FailMove {
  return { move: 'fail', kind, error_type, tag, description, err_node_id }
}
