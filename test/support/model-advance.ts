/**
 * How the model advances a task through a plan until it waits, ends, fails, or has used up its
 * moves.
 */
import type { Plan, PlanCondition, PlanSetting, PlanStep, PlanTimer } from './model-graph.ts'
import {
  type ModelData,
  type ModelLimits,
  type ModelTask,
  numberOf,
  overSize,
} from './model-task.ts'

export interface ModelContext {
  readonly plan: Plan
  readonly limits: ModelLimits
  readonly now_ms: number
}

export function enter(context: ModelContext, task: ModelTask, node: string): void {
  moveToNode(task, node)
  run(context, task, 0, 1)
}

/** Runs the node of the task from its logic `from` on. */
export function run(context: ModelContext, task: ModelTask, from: number, already = 0): void {
  const { limits, now_ms, plan } = context
  Object.assign(task, { status: 'processing', details: undefined, wait: 'nothing' })
  setChangeTime(context, task)
  let at = from
  for (let moved = already; ; ) {
    const node = plan.get(task.node)
    if (node === undefined) throw new Error(`the model went to ${task.node}, which is no node`)
    const logic = node.steps[at]
    if (task.moves >= limits.moves_without_rest_max) {
      fail(task, 'loop', `${limits.moves_without_rest_max} moves without coming to rest`)
    } else if (node.kind === 'end') end(context, task, 'processed', node.save)
    else if (moved >= limits.moves_per_transaction_max) {
      Object.assign(task, { wait: 'more', due_ms: now_ms })
    } else if (logic === undefined) startWait(context, task, undefined)
    else if (logic.does === 'wait') startWait(context, task, at)
    else {
      const to = runLogic(task, logic, limits.task_bytes_max)
      if (to === 'failed') return
      at = to === 'next' ? at + 1 : 0
      if (to !== 'next') {
        moveToNode(task, to.to)
        moved++
      }
      continue
    }
    return
  }
}

/** What a logic does to the data, and where it sends the task. */
function runLogic(
  task: ModelTask,
  logic: Exclude<PlanStep, { does: 'wait' }>,
  bytes_max: number,
): { readonly to: string } | 'next' | 'failed' {
  if (logic.does === 'go') return logic
  if (logic.does === 'if') return holds(logic.condition, task.data) ? logic : 'next'
  const failure = set(task, logic.setting, bytes_max)
  if (failure === undefined) return 'next'
  if (logic.err === undefined) {
    fail(task, failure.tag, failure.says)
    return 'failed'
  }
  setErrorFields(task, failure, bytes_max)
  return { to: logic.err }
}

export function end(
  context: ModelContext,
  task: ModelTask,
  status: 'processed' | 'canceled',
  is_kept: boolean,
): void {
  Object.assign(task, { status, details: undefined, wait: 'nothing', due_ms: undefined })
  if (!is_kept) task.gone = 'unsaved'
  setChangeTime(context, task)
}

export function setChangeTime({ now_ms }: ModelContext, task: ModelTask): void {
  task.changed_ms = Math.max(now_ms, task.changed_ms)
}

/** The logic at which a task waits for a callback; undefined where it does not. */
export function waitOf(plan: Plan, task: ModelTask): number | undefined {
  if (task.status !== 'delayed' || task.wait !== 'callback') return undefined
  const steps = plan.get(task.node)?.steps ?? []
  if (steps[task.wait_at]?.does === 'wait') return task.wait_at
  const at = steps.findIndex((one) => one.does === 'wait')
  return at === -1 ? undefined : at
}

function moveToNode(task: ModelTask, node: string): void {
  Object.assign(task, { prev: task.node, node, due_ms: undefined, moves: task.moves + 1 })
}

function startWait(context: ModelContext, task: ModelTask, wait_at: number | undefined): void {
  const { now_ms, plan } = context
  task.status = 'delayed'
  task.wait = wait_at === undefined ? 'nothing' : 'callback'
  task.wait_at = wait_at ?? 0
  if (task.due_ms === undefined) {
    for (const [timer_at, timer] of (plan.get(task.node)?.timers ?? []).entries()) {
      const due_ms = dueOf(timer, task.data, now_ms)
      if (due_ms === undefined) {
        const says = `time semaphor: Value: ${task.data.when ?? 'missing'}, Try convert to: Unix time`
        fail(task, 'semaphor_wrong_convert_param', says)
        return
      }
      if (task.due_ms !== undefined && task.due_ms <= due_ms) continue
      Object.assign(task, { due_ms, timer_at })
    }
  }
  if (task.due_ms === undefined || task.due_ms > now_ms) task.moves = 0
}

function dueOf({ s }: PlanTimer, data: ModelData, now_ms: number): number | undefined {
  if (s !== 'when') return now_ms + s * 1000
  const second = numberOf(data.when)
  return second === undefined ? undefined : second * 1000
}

function fail(task: ModelTask, tag: string, description: string): void {
  Object.assign(task, { status: 'failed', details: { tag, description } })
  Object.assign(task, { wait: 'nothing', due_ms: undefined, moves: 0 })
}

interface SetFailure {
  readonly tag: string
  readonly says: string
}

function setErrorFields(task: ModelTask, { tag, says }: SetFailure, bytes_max: number): void {
  const data = {
    ...task.data,
    __conveyor_set_param_return_type_error__: 'software',
    __conveyor_set_param_return_type_tag__: tag,
    __conveyor_set_param_return_description__: says,
  }
  if (overSize(data, bytes_max) === undefined) task.data = data
}

/** Sets a value, or says why it cannot and changes nothing. */
function set(
  task: ModelTask,
  { key, text, from, type }: PlanSetting,
  bytes_max: number,
): SetFailure | undefined {
  const found = from === undefined ? text : task.data[from]
  const value = type === undefined ? found : numberOf(found)
  if (value === undefined) {
    if (type === undefined) return undefined
    const says = `Param: ${key}, Value: ${found ?? `{{${from}}}`}, Try convert to: ${type}`
    return { tag: 'set_param_wrong_convert_param', says }
  }
  const data = { ...task.data, [key]: value }
  const over = overSize(data, bytes_max)
  if (over !== undefined) return { tag: 'set_param_task_size_overflow', says: over.says ?? '' }
  task.data = data
  return undefined
}

function holds({ key, fun, cast, value }: PlanCondition, data: ModelData): boolean {
  const found = data[key]
  const left = cast === 'number' ? numberOf(found) : String(found ?? '')
  const right = cast === 'number' ? Number(value) : value
  if (left === undefined) return fun === 'not_eq'
  return fun === 'eq' ? left === right : fun === 'less' ? left < right : left !== right
}
