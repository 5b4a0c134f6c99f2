/**
 * Moves one task until it rests: the only place where moves of logics are applied (law 6).
 *
 * A task enters a node and its logics run in order. `next` and `set` go on with the next one, `go`
 * enters another node, `rest` waits for a modify, `fail` goes to the error node or stays, failed.
 * Where all fall through, the task rests in the node. As it rests, the earliest time semaphor of
 * the node is armed; one that runs already for this visit keeps its time. An end node ends the
 * task.
 *
 * Moves are bounded twice: so many in one transaction, then the task is `ready` and goes on in the
 * next; so many without rest, then it has failed with tag `loop`. A rest whose timer is already due
 * is none, or a circle of past semaphors would run for ever.
 *
 * `walk` changes the draft alone; saving it is the caller's.
 */
import { bytesOf, docOfValue, objectOf, setMember } from '../bytes/json.ts'
import type { TaskRecord } from '../bytes/task-record.ts'
import type { GraphNode, Move, RootName, Scope } from '../logic/logic.ts'
import type { JsonValue } from '../words/model.ts'
import type { Process } from './catalog.ts'
import type { Draft } from './task-file.ts'
import type { Work } from './work.ts'

/** What became of an ended task's record. */
export interface Walked {
  readonly keep_ended: boolean
}

/** Puts the task into a node and moves it on. */
export function enterNode(work: Work, process: Process, draft: Draft, node_id: string): Walked {
  step(draft.task, node_id)
  return walk(work, process, draft, 0, 1)
}

/** Goes on in the node where the task is, from one of its logics. */
export function walkFrom(work: Work, process: Process, draft: Draft, logic_at: number): Walked {
  return walk(work, process, draft, logic_at, 0)
}

/** The logic at which the task waits for a callback by the present graph; -1 where it does not. */
export function waitingLogic(process: Process, task: TaskRecord): number {
  if (task.status !== 'delayed' || task.wait !== 'callback') return -1
  const logics = process.graph.nodes.get(task.node_id)?.logics ?? []
  return logics[task.logic_at]?.is_wait ? task.logic_at : logics.findIndex((one) => one.is_wait)
}

function walk(work: Work, process: Process, draft: Draft, from: number, moved: number): Walked {
  const { task } = draft
  const { limits } = work.shared
  const scope = scopeOf(work, process, task)
  let at = from
  let moves = moved
  task.status = 'processing'
  task.details = undefined
  task.wait = 'nothing'
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
    const is_out_of_moves = work.moves_made >= limits.moves_per_transaction_max * tasks_worth_max
    if (moves >= limits.moves_per_transaction_max || is_out_of_moves) {
      task.wait = 'ready'
      task.due_ms = work.now_ms
      return { keep_ended: true }
    }
    const logic = node.logics[at]
    const move: Move = logic === undefined ? { move: 'rest' } : logic.run(scope)
    const applied = logic === undefined ? move : withinSize(move, logic.type, limits.task_bytes_max)
    if (applied.move === 'rest') {
      rest(work.now_ms, task, node, logic === undefined ? undefined : at, scope)
      return { keep_ended: true }
    }
    if (applied.move === 'fail' && applied.err_node_id === undefined) {
      fail(task, applied.tag, applied.description)
      return { keep_ended: true }
    }
    if (applied.move === 'set') task.doc = applied.doc
    if (applied.move === 'next' || applied.move === 'set') {
      at++
      continue
    }
    if (applied.move === 'fail') {
      setErrorFields(task, applied, limits.task_bytes_max)
      step(task, applied.err_node_id as string)
    } else step(task, applied.to_node_id)
    at = 0
    moves++
    work.moves_made++
  }
}

/**
 * However many ops a request has, its transaction makes no more moves than so many tasks may; what
 * is left goes on in later ones, with others in between.
 */
const tasks_worth_max = 10

function step(task: TaskRecord, node_id: string): void {
  task.node_prev_id = task.node_id
  task.node_id = node_id
  task.visit++
  task.moves++
  task.due_ms = 0
}

function rest(
  now_ms: number,
  task: TaskRecord,
  node: GraphNode,
  logic_at: number | undefined,
  scope: Scope,
): void {
  task.status = 'delayed'
  task.wait = logic_at === undefined ? 'nothing' : 'callback'
  task.logic_at = logic_at ?? 0
  if (task.due_ms === 0) {
    arm(task, node, scope)
    // A past time rings at once, but behind what has been due by now: else a stream of past ones
    // would keep the timers of other processes waiting for ever.
    if (task.due_ms !== 0) task.due_ms = Math.max(task.due_ms, now_ms)
  }
  if (task.due_ms === 0 || task.due_ms > now_ms) task.moves = 0
}

function arm(task: TaskRecord, node: GraphNode, scope: Scope): void {
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

const description_chars_max = 1_000

function fail(task: TaskRecord, tag: string, description: string): void {
  task.status = 'failed'
  task.details = { tag, description: cut(description) }
  task.wait = 'nothing'
  task.due_ms = 0
  task.moves = 0
}

/** By whole characters: half of one could not be read back. */
function cut(description: string): string {
  if (description.length <= description_chars_max) return description
  return [...description.slice(0, 2 * description_chars_max)]
    .slice(0, description_chars_max)
    .join('')
}

/** Whatever a logic checks itself, no data over the limit is ever kept. */
function withinSize(move: Move, kind: string, task_bytes_max: number): Move {
  if (move.move !== 'set') return move
  const bytes = bytesOf(move.doc.text)
  if (bytes <= task_bytes_max) return move
  return {
    move: 'fail',
    kind,
    error_type: 'software',
    tag: `${kind}_task_size_overflow`,
    description: `Your task size: ${bytes} bytes, Max available task size: ${task_bytes_max} bytes`,
    err_node_id: move.err_node_id,
  }
}

/** The three fields that tell an error node what happened; left out where they would not fit. */
function setErrorFields(
  task: TaskRecord,
  move: Extract<Move, { move: 'fail' }>,
  task_bytes_max: number,
): void {
  const data = { ...objectOf(task.doc) }
  const prefix = `__conveyor_${move.kind}_return`
  setMember(data, `${prefix}_type_error__`, move.error_type)
  setMember(data, `${prefix}_type_tag__`, move.tag)
  setMember(data, `${prefix}_description__`, cut(move.description))
  const doc = docOfValue(data)
  if (bytesOf(doc.text) <= task_bytes_max) task.doc = doc
}

function scopeOf(work: Work, process: Process, task: TaskRecord): Scope {
  return {
    get doc() {
      return task.doc
    },
    now_ms: work.now_ms,
    fraction: work.shared.fraction,
    root: (name) => rootOf(process, task, name),
    task_bytes_max: work.shared.limits.task_bytes_max,
  }
}

function rootOf(process: Process, task: TaskRecord, name: RootName): JsonValue | undefined {
  switch (name) {
    case 'task_id':
      return task.obj_id
    case 'ref':
      return task.ref?.text
    case 'conv_id':
      return digitsAsNumber(task.conv_id)
    case 'node_id':
      return task.node_id
    case 'prev_node_id':
      return task.node_prev_id
    case 'node_name':
      return process.graph.nodes.get(task.node_id)?.title
    case 'prev_node_name':
      return process.graph.nodes.get(task.node_prev_id)?.title
    case 'status':
      return task.status
    case 'create_time':
      return Math.floor(task.create_ms / 1000)
    case 'change_time':
      return Math.floor(task.change_ms / 1000)
    case 'end_time':
      return undefined
    case 'user_id':
      return task.user_id === undefined ? undefined : digitsAsNumber(task.user_id)
  }
}

function digitsAsNumber(id: string): JsonValue {
  const number = Number(id)
  return String(number) === id && Number.isSafeInteger(number) ? number : id
}
