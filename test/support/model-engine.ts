/**
 * The engine once more, as a few Maps: what each op must answer and what is left behind, told from the
 * contract alone and written without a word of the engine's code. It knows the plans of model-graph.
 *
 * A task is called by its number in the order of creation; whoever compares binds numbers to the ids
 * that the engine gives. Nothing here knows of transactions, files, slices or keys.
 */
import type { OpFaultCode } from '../../src/words/faults.ts'
import type { Status, StatusDetails } from '../../src/words/model.ts'
import type { Plan, PlanCondition, PlanSetting } from './model-graph.ts'

export type ModelData = Readonly<Record<string, string | number>>

export interface ModelTask {
  readonly n: number
  readonly conv: string
  readonly ref: string | number | undefined
  readonly user: string | undefined
  readonly created_ms: number
  changed_ms: number
  status: Status
  details: StatusDetails | undefined
  node: string
  prev: string
  /** What a task that is live and rests is waiting at; `more`: it goes on in the next transaction. */
  wait: 'no' | 'callback' | 'more'
  wait_at: number
  due_ms: number | undefined
  timer_at: number
  moves: number
  readonly first: string
  data: ModelData
}

export interface ModelProcess {
  plan: Plan
  is_paused: boolean
  version: number
  /** Nodes that are gone → where their tasks go. */
  moves: Map<string, string>
}

export interface ModelLimits {
  readonly moves_per_transaction_max: number
  readonly moves_without_rest_max: number
  readonly task_bytes_max: number
}

/** An answer: `task` where one is known, `says` where it is a refusal. */
export interface Answer {
  readonly code: 'ok' | OpFaultCode
  readonly says?: string
  readonly task?: ModelTask
}

export type Model = ReturnType<typeof newModel>
export type Target = { readonly ref: string | number } | { readonly n: number }

export function newModel(limits: ModelLimits) {
  const processes = new Map<string, ModelProcess>()
  /** Live ones, and ended ones that are kept. */
  const tasks = new Map<number, ModelTask>()
  /** user → conv → what is granted. */
  const grants = new Map<string, Map<string, readonly string[]>>()
  let now_ms = 0
  let created = 0

  const isLive = (task: ModelTask): boolean =>
    task.status !== 'processed' && task.status !== 'canceled'
  const liveOf = (conv: string): ModelTask[] =>
    [...tasks.values()].filter((task) => task.conv === conv && isLive(task))

  function access(verb: string, conv: string, user: string | undefined): ModelProcess | Answer {
    const process = processes.get(conv)
    if (user !== undefined) {
      const may = grants.get(user)?.get(conv)?.includes(verb) ?? false
      if (may && process !== undefined) return process
      return { code: 'access_denied', says: `user: ${user}, conv_id: ${conv}` }
    }
    if (process !== undefined) return process
    return { code: 'conv_not_found', says: `Object conv with id ${conv} does not exist` }
  }

  function find(conv: string, target: Target): ModelTask | undefined {
    if ('n' in target) {
      const task = tasks.get(target.n)
      return task?.conv === conv ? task : undefined
    }
    return liveOf(conv).find((task) => sameRef(task.ref, target.ref))
  }

  function create(
    conv: string,
    ref: string | number | undefined,
    data: ModelData,
    user?: string,
  ): Answer {
    const process = access('create', conv, user)
    if ('code' in process) return process
    const holder = ref === undefined ? undefined : find(conv, { ref })
    const first = canonical(data)
    if (holder?.first === first) return { code: 'ok', task: holder }
    if (process.is_paused) return not_active
    const over = overSize(data)
    if (over !== undefined) return over
    if (holder !== undefined) {
      return { code: 'not_unical_ref', says: 'not unical reference', task: holder }
    }
    const task: ModelTask = {
      n: created++,
      ...{ conv, ref, user, first, data, created_ms: now_ms, changed_ms: now_ms },
      ...{ status: 'processing', details: undefined, node: '', prev: '' },
      ...{ wait: 'no', wait_at: 0, due_ms: undefined, timer_at: 0, moves: 0 },
    }
    tasks.set(task.n, task)
    enter(process, task, 's')
    return { code: 'ok', task }
  }

  function modify(
    conv: string,
    target: Target,
    data: ModelData,
    demand: { is_sync?: boolean; node_id?: string },
    user?: string,
  ): Answer {
    const process = access('modify', conv, user)
    if ('code' in process) return process
    if (process.is_paused) return not_active
    const task = find(conv, target)
    if (task === undefined || !isLive(task)) return not_found
    const waits_at = waitOf(process, task)
    const demands = demand.is_sync === true || demand.node_id !== undefined
    const elsewhere = demand.node_id !== undefined && demand.node_id !== task.node
    if (demands && (waits_at === undefined || elsewhere)) {
      const code = 'no_api_callback_in_node_with_task'
      return { code, says: 'no api callback logic in node with task', task }
    }
    const merged = { ...task.data, ...data }
    const over = overSize(merged)
    if (over !== undefined) return { ...over, task }
    task.data = merged
    task.changed_ms = Math.max(now_ms, task.changed_ms)
    if (waits_at !== undefined) run(process, task, waits_at + 1)
    return { code: 'ok', task }
  }

  function show(conv: string, target: Target, user?: string): Answer {
    const process = access('show', conv, user)
    if ('code' in process) return process
    const task = find(conv, target)
    return task === undefined ? not_found : { code: 'ok', task }
  }

  function cancel(conv: string, target: Target): Answer {
    const process = access('', conv, undefined)
    if ('code' in process) return process
    const task = find(conv, target)
    if (task === undefined || !isLive(task)) return not_found
    end(task, 'canceled')
    return { code: 'ok', task }
  }

  function retry(conv: string, target: Target, node: string | undefined): Answer {
    const process = access('', conv, undefined)
    if ('code' in process) return process
    if (process.is_paused) return not_active
    const task = find(conv, target)
    if (task === undefined || !isLive(task)) return not_found
    if (task.status !== 'failed') {
      return { code: 'error', says: 'the task has not failed', task }
    }
    if (node !== undefined && !process.plan.has(node)) {
      return { code: 'error', says: `Value is not valid. node_id: "${node}" is no node`, task }
    }
    if (node === undefined) run(process, task, 0)
    else enter(process, task, node)
    return { code: 'ok', task }
  }

  function deploy(conv: string, plan: Plan, moves: ReadonlyMap<string, string>): string {
    const old = processes.get(conv)
    if (old === undefined) {
      processes.set(conv, { plan, is_paused: false, version: 1, moves: new Map() })
      return 'created'
    }
    if (sameOf(old.plan) === sameOf(plan)) return 'unchanged'
    if ([...moves.values()].some((to) => !plan.has(to))) return 'bad_definition'
    const next = new Map<string, string>()
    for (const { node } of liveOf(conv)) {
      if (plan.has(node)) continue
      const before = old.moves.get(node)
      const stays = before !== undefined && plan.has(before) ? before : undefined
      const to = moves.get(node) ?? stays ?? moves.get(before ?? '')
      if (to === undefined) return 'tasks_in_node'
      next.set(node, to)
    }
    Object.assign(old, { plan, version: old.version + 1, moves: next })
    return 'updated'
  }

  function remove(conv: string): string {
    if (liveOf(conv).length > 0) return 'process_has_tasks'
    for (const of_user of grants.values()) of_user.delete(conv)
    return processes.delete(conv) ? 'ok' : 'conv_not_found'
  }

  /** Lets happen what has become due, until nothing is left to do at this moment. */
  function settle(): void {
    for (const [conv, process] of processes) {
      if (process.is_paused) continue
      for (const task of liveOf(conv)) {
        moveOver(process, task)
        while (isLive(task) && task.due_ms !== undefined && task.due_ms <= now_ms) {
          ring(process, task)
        }
      }
      process.moves.clear()
    }
  }

  function moveOver(process: ModelProcess, task: ModelTask): void {
    const to = process.moves.get(task.node)
    if (to === undefined || process.plan.has(task.node)) return
    if (task.status !== 'failed') return enter(process, task, to)
    Object.assign(task, { prev: task.node, node: to })
    task.changed_ms = Math.max(now_ms, task.changed_ms)
  }

  function ring(process: ModelProcess, task: ModelTask): void {
    task.due_ms = undefined
    task.changed_ms = Math.max(now_ms, task.changed_ms)
    if (task.wait === 'more') return run(process, task, 0)
    const timers = process.plan.get(task.node)?.timers ?? []
    const timer = timers[task.timer_at] ?? timers[0]
    if (timer !== undefined) enter(process, task, timer.to)
  }

  function step(task: ModelTask, node: string): void {
    Object.assign(task, { prev: task.node, node, due_ms: undefined, moves: task.moves + 1 })
  }

  function enter(process: ModelProcess, task: ModelTask, node: string): void {
    step(task, node)
    run(process, task, 0, 1)
  }

  function run(process: ModelProcess, task: ModelTask, from: number, already = 0): void {
    Object.assign(task, { status: 'processing', details: undefined, wait: 'no' })
    task.changed_ms = Math.max(now_ms, task.changed_ms)
    let at = from
    for (let moved = already; ; ) {
      const node = process.plan.get(task.node)
      if (node === undefined) throw new Error(`the model went to ${task.node}, which is no node`)
      if (task.moves >= limits.moves_without_rest_max) {
        return fail(task, 'loop', `${limits.moves_without_rest_max} moves without coming to rest`)
      }
      if (node.kind === 'end') {
        end(task, 'processed')
        if (!node.save) tasks.delete(task.n)
        return
      }
      if (moved >= limits.moves_per_transaction_max) {
        task.wait = 'more'
        task.due_ms = now_ms
        return
      }
      const logic = node.steps[at]
      if (logic === undefined || logic.does === 'wait') {
        return rest(process, task, logic === undefined ? undefined : at)
      }
      let to: string | undefined
      if (logic.does === 'go') to = logic.to
      else if (logic.does === 'if') to = holds(logic.condition, task.data) ? logic.to : undefined
      else {
        const says = set(task, logic.setting)
        if (says !== undefined && logic.err === undefined) return fail(task, set_tag, says)
        if (says !== undefined) tellError(task, says)
        to = says === undefined ? undefined : logic.err
      }
      if (to === undefined) at++
      else {
        step(task, to)
        moved++
        at = 0
      }
    }
  }

  function rest(process: ModelProcess, task: ModelTask, wait_at: number | undefined): void {
    task.status = 'delayed'
    task.wait = wait_at === undefined ? 'no' : 'callback'
    task.wait_at = wait_at ?? 0
    if (task.due_ms === undefined) {
      for (const [at, timer] of (process.plan.get(task.node)?.timers ?? []).entries()) {
        const due_ms = dueOf(timer.s, task.data)
        if (due_ms === undefined) {
          const found = 'when' in task.data ? String(task.data.when) : 'missing'
          const says = `time semaphor: Value: ${found}, Try convert to: Unix time`
          return fail(task, 'semaphor_wrong_convert_param', says)
        }
        if (task.due_ms !== undefined && task.due_ms <= due_ms) continue
        Object.assign(task, { due_ms, timer_at: at })
      }
    }
    if (task.due_ms === undefined || task.due_ms > now_ms) task.moves = 0
  }

  function dueOf(s: number | 'when', data: ModelData): number | undefined {
    if (s !== 'when') return now_ms + s * 1000
    const second = numberOf(data.when)
    return second === undefined ? undefined : Math.max(1, second * 1000)
  }

  function tellError(task: ModelTask, says: string): void {
    const told = {
      ...task.data,
      __conveyor_set_param_return_type_error__: 'software',
      __conveyor_set_param_return_type_tag__: set_tag,
      __conveyor_set_param_return_description__: says,
    }
    if (overSize(told) === undefined) task.data = told
  }

  function end(task: ModelTask, status: 'processed' | 'canceled'): void {
    Object.assign(task, { status, details: undefined, wait: 'no', due_ms: undefined })
    task.changed_ms = Math.max(now_ms, task.changed_ms)
  }

  function overSize(data: ModelData): Answer | undefined {
    const bytes = Buffer.byteLength(JSON.stringify(data))
    const max = limits.task_bytes_max
    if (bytes <= max) return undefined
    const says = `Your task size: ${bytes} bytes, Max available task size: ${max} bytes`
    return { code: 'task_size_overflow_limit', says }
  }

  return {
    ...{ processes, tasks, grants, isLive, liveOf },
    ...{ create, modify, show, cancel, retry, deploy, remove, settle },
    now: (ms: number): void => {
      now_ms = ms
    },
  }
}

const not_active: Answer = { code: 'conveyor_is_not_active', says: 'conveyor is not active' }
const not_found: Answer = { code: 'not_found_task', says: 'not found task' }
const set_tag = 'set_param_wrong_convert_param'

function fail(task: ModelTask, tag: string, description: string): void {
  Object.assign(task, { status: 'failed', details: { tag, description } })
  Object.assign(task, { wait: 'no', due_ms: undefined, moves: 0 })
}

/** The logic behind which a callback goes on; undefined where the task does not wait for one. */
function waitOf(process: ModelProcess, task: ModelTask): number | undefined {
  if (task.status !== 'delayed' || task.wait !== 'callback') return undefined
  const steps = process.plan.get(task.node)?.steps ?? []
  if (steps[task.wait_at]?.does === 'wait') return task.wait_at
  const at = steps.findIndex((one) => one.does === 'wait')
  return at === -1 ? undefined : at
}

/** Sets a value, or says why it cannot. */
function set(task: ModelTask, { key, text, from, type }: PlanSetting): string | undefined {
  const value = from === undefined ? text : task.data[from]
  if (type === undefined) {
    if (value !== undefined) task.data = { ...task.data, [key]: value }
    return undefined
  }
  const number = numberOf(value)
  if (number === undefined) {
    return `Param: ${key}, Value: ${value ?? `{{${from}}}`}, Try convert to: ${type}`
  }
  task.data = { ...task.data, [key]: number }
  return undefined
}

function holds({ key, fun, cast, value }: PlanCondition, data: ModelData): boolean {
  const left = cast === 'number' ? numberOf(data[key]) : textOf(data[key])
  const right = cast === 'number' ? Number(value) : value
  if (left === undefined) return fun === 'not_eq'
  return fun === 'eq' ? left === right : fun === 'less' ? left < right : left !== right
}

const textOf = (value: string | number | undefined): string | undefined =>
  value === undefined ? undefined : String(value)

function numberOf(value: string | number | undefined): number | undefined {
  if (typeof value === 'number') return value
  return value !== undefined && /^[0-9]+$/.test(value) ? Number(value) : undefined
}

function sameRef(one: string | number | undefined, other: string | number): boolean {
  return one !== undefined && String(one) === String(other)
}

function canonical(data: ModelData): string {
  return JSON.stringify(Object.entries(data).sort(([one], [other]) => (one < other ? -1 : 1)))
}

function sameOf(plan: Plan): string {
  return JSON.stringify([...plan.values()])
}
