/**
 * What a waiting task waits for, and where it migrates, by the current graph of its process, which
 * may have changed since the wait began. Changes nothing.
 */
import {
  keysOfType,
  limitKey,
  outboxOfKey,
  slotOfKey,
  slotsFrom,
  taskSlotOfKey,
  taskSlotsOf,
} from '../../codec/keys.ts'
import { decodeNumbers, decodeTaskSlot } from '../../codec/records.ts'
import type { TaskRecord } from '../../codec/task-record.ts'
import { defined } from '../../core/defined.ts'
import type { StatusDetails } from '../../core/model.ts'
import { steps_max } from '../../process/definition-limits.ts'
import type { GraphNode, Rate } from '../../process/graph.ts'
import type { WaitReason } from '../../process/logic.ts'
import type { Process } from '../transactions/catalog.ts'
import type { ReadContext } from '../transactions/transaction.ts'
import { evaluationContextOf } from './evaluation-context.ts'
import { readableTask } from './task-store.ts'

/**
 * The logic at which the task waits for a callback, or -1. In a state process a task past its node
 * waits for the callback again; so does one whose handler is not registered.
 */
export function callbackLogic(context: ReadContext, process: Process, task: TaskRecord): number {
  if (task.status !== 'delayed') return -1
  const { node_id, logic_at } = task
  if (task.wait === 'callback') return waitLogic(process, task, 'callback')
  if (task.wait === 'nothing' && process.graph.kind === 'state') {
    return waitLogic(process, task, 'callback')
  }
  if (task.wait !== 'work') return -1
  const node = process.graph.nodes.get(node_id)
  if (node?.logics[logic_at]?.waits_for !== 'callback') return -1
  const handler = context.engine.handlerName(context.view, process.conv_id, node.title)
  return handler === undefined ? logic_at : -1
}

/** -1 if the graph has none in the task's node. */
export function waitLogic(process: Process, task: TaskRecord, waits_for: WaitReason): number {
  const logics = process.graph.nodes.get(task.node_id)?.logics ?? []
  if (logics[task.logic_at]?.waits_for === waits_for) return task.logic_at
  return logics.findIndex((one) => one.waits_for === waits_for)
}

export function isIdle(task: TaskRecord): boolean {
  return task.status === 'delayed' && task.wait === 'nothing'
}

/** Where a task in a dropped node migrates; undefined for others. */
export function migrationTarget(
  { graph, record }: Process,
  { node_id }: TaskRecord,
): string | undefined {
  if (graph.nodes.has(node_id)) return undefined
  return migrationOf(record.moves, node_id) ?? graph.start_id
}

/** Where tasks of `node_id` migrate. A node may be called `constructor`. */
export function migrationOf(
  migrations: Readonly<Record<string, string>>,
  node_id: string,
): string | undefined {
  return Object.hasOwn(migrations, node_id) ? migrations[node_id] : undefined
}

export interface TaskWait {
  /**
   * `callback`: a modify; `turn`: the engine's next turn; `reply`: the task `obj_id`; `queue`:
   * another task that takes it; `slot`: its turn at the limit `limit`; `timer`: `due_ms`;
   * `handler`, `call`, `db` and `code`: their answer.
   */
  readonly for:
    | 'callback'
    | 'turn'
    | 'reply'
    | 'queue'
    | 'slot'
    | 'timer'
    | 'handler'
    | 'call'
    | 'db'
    | 'code'
    | 'nothing'
  readonly due_ms?: number
  readonly obj_id?: string
  /** The handler, or the title or type that lacks one. */
  readonly handler?: string
  /** Absent if this process does no jobs. */
  readonly has_handler?: boolean
  readonly host?: string
  /** Of the next or current attempt, from 1. */
  readonly attempt?: number
  readonly next_ms?: number
  readonly last_error?: StatusDetails
  /** Its key as the definition has it; only that where the definition has dropped it. */
  readonly limit?: {
    readonly key: string
    readonly at_once?: number
    readonly rate?: Rate
    readonly ahead_max: number
  }
  readonly is_paused?: true
}

export function nodeWaits({ limits, logics, time_semaphors }: GraphNode): string[] {
  const waits = logics.flatMap(({ type, waits_for, job }) => {
    if (waits_for !== undefined) return [waits_for]
    if (job === undefined) return []
    if (job.instance !== undefined) return ['db']
    return [type === 'api' ? 'call' : type === 'api_code' ? 'code' : `handler ${type}`]
  })
  if (limits !== undefined) waits.push('slot')
  return time_semaphors.length === 0 ? waits : [...waits, 'timer']
}

/** In order; undefined for a task that is over, damaged or gone. */
export function waitsOf(
  context: ReadContext,
  obj_ids: readonly string[],
  does_jobs: boolean,
): (TaskWait | undefined)[] {
  return obj_ids.map((obj_id) => {
    const draft = readableTask(context.view, obj_id)
    if (draft === undefined) return undefined
    const { task } = draft
    const process = context.process(task.conv_id)
    if (process === undefined) return undefined
    if (task.status !== 'delayed' && task.wait !== 'ready') return undefined
    const wait = waitOf(context, process, task, does_jobs)
    const host = wait.for === 'call' && obj_ids.length === 1 ? hostOf(context, process, task) : ''
    return {
      ...wait,
      ...(host === '' ? {} : { host }),
      ...(task.due_ms > 0 && task.wait !== 'ready' ? { due_ms: task.due_ms } : {}),
      ...(process.record.status === 'paused' ? { is_paused: true } : {}),
    }
  })
}

function waitOf(
  context: ReadContext,
  process: Process,
  task: TaskRecord,
  does_jobs: boolean,
): TaskWait {
  const { wait, called_id } = task
  if (wait === 'work') return jobWait(context, process, task, does_jobs)
  if (wait === 'ready') return { for: 'turn' }
  if (wait === 'queue') return { for: 'queue' }
  if (wait === 'slot') return slotWait(context, process, task)
  if (wait === 'reply') return { for: 'reply', ...defined({ obj_id: called_id }) }
  if (callbackLogic(context, process, task) >= 0) return { for: 'callback' }
  return { for: task.due_ms > 0 ? 'timer' : 'nothing' }
}

/** At most so many are ahead in line: a canceled task may still be counted. */
function slotWait({ view }: ReadContext, process: Process, task: TaskRecord): TaskWait {
  const own = view.scan({ ...taskSlotsOf(task.obj_id), limit: slots_shown_max })
  for (const { key: own_key, value: bytes } of own) {
    const { value, n } = decodeTaskSlot(bytes)
    if (n === 0) continue
    const { node, name } = taskSlotOfKey(own_key)
    const place = { conv: task.conv_id, node, name, value }
    // From there on, so that the scan passes no keys deleted before.
    const numbers = decodeNumbers(view.get(limitKey(place)))
    const [first] = view.scan({ ...slotsFrom(place, numbers.first), limit: 1 })
    const ahead_max = first === undefined ? 0 : n - slotOfKey(first.key).n
    const limits = process.graph.nodes.get(node)?.limits
    const limit = limits?.find((limit) => limit.name === name)
    const { text: key = name, rate } = limit ?? {}
    const how = rate === undefined ? { at_once: limit?.at_once } : { rate }
    return { for: 'slot', limit: { key, ...defined(how), ahead_max } }
  }
  return { for: 'slot' }
}

const slots_shown_max = 2_048

function jobWait(
  { engine, view }: ReadContext,
  process: Process,
  { node_id, logic_at, attempts, at_ms, details }: TaskRecord,
  does_jobs: boolean,
): TaskWait {
  const node = process.graph.nodes.get(node_id)
  const logic = node?.logics[logic_at]
  const attempt = {
    attempt: attempts + 1,
    ...defined({ next_ms: attempts > 0 ? at_ms : undefined, last_error: details }),
  }
  if (logic?.type === 'api') return { for: 'call', ...attempt }
  const title = (logic?.waits_for === 'callback' ? node?.title : logic?.type) ?? '-'
  const handler = engine.handlerName(view, process.conv_id, title)
  if (logic?.type === 'api_code' && handler === undefined) return { for: 'code', ...attempt }
  if (logic?.job?.instance !== undefined && handler === undefined) return { for: 'db', ...attempt }
  return {
    for: 'handler',
    handler: handler ?? title,
    ...(does_jobs ? { has_handler: handler !== undefined } : {}),
    ...attempt,
  }
}

export interface MissingHandler {
  readonly conv_id: string
  readonly handler: string
  readonly tasks: number
}

const missing_jobs_max = 200

/** Unregistered handlers that the first listed jobs wait for. */
export function missingHandlers(context: ReadContext): MissingHandler[] {
  const { view } = context
  const found = new Map<string, MissingHandler>()
  for (const { key } of view.scan({ ...keysOfType('outbox'), limit: missing_jobs_max })) {
    const draft = readableTask(view, outboxOfKey(key).obj_id)
    if (draft?.task.wait !== 'work') continue
    const { conv_id } = draft.task
    const process = context.process(conv_id)
    if (process === undefined) continue
    const { has_handler, handler = '' } = jobWait(context, process, draft.task, true)
    if (has_handler !== false) continue
    const { tasks } = found.get(`${conv_id}/${handler}`) ?? { tasks: 0 }
    found.set(`${conv_id}/${handler}`, { conv_id, handler, tasks: tasks + 1 })
  }
  return [...found.values()]
}

/** The host of the call; empty if the order cannot be made. */
function hostOf(context: ReadContext, process: Process, task: TaskRecord): string {
  const logic = process.graph.nodes.get(task.node_id)?.logics[task.logic_at]
  context.steps.left = steps_max
  try {
    const order = logic?.job?.order(evaluationContextOf(context, process, task))
    if (order === undefined || !('job' in order) || order.job !== 'call') return ''
    return URL.canParse(order.request.url) ? new URL(order.request.url).host : ''
  } catch {
    return ''
  }
}
