/**
 * A model of the engine made of a few Maps: the result of each op and the state after it, written
 * from the contract without code of the engine. It runs the plans of model-graph.
 *
 * A task is named by its number in the order of creation; the comparison maps numbers to the ids of
 * the engine. The model has no transactions, files, slices or keys.
 */

import { end, enter, type ModelContext, run, setChangeTime, waitOf } from './model-advance.ts'
import { definitionOf, type Plan } from './model-graph.ts'
import {
  type Answer,
  isLive,
  type ModelData,
  type ModelLimits,
  type ModelTask,
  overSize,
  sameData,
  sameRef,
} from './model-task.ts'

interface ModelProcess {
  readonly plan: Plan
  readonly is_paused: boolean
  /** Nodes that are gone and where their tasks go. */
  readonly moves: ReadonlyMap<string, string>
}

export type Target = { readonly ref: string | number } | { readonly n: number }
export type Model = ReturnType<typeof newModel>

export function newModel(limits: ModelLimits) {
  const processes = new Map<string, ModelProcess>()
  const tasks: ModelTask[] = []
  /** `user conv` → the types of op that are granted. */
  const grants = new Map<string, readonly string[]>()
  let now_ms = 0

  const contextOf = ({ plan }: ModelProcess): ModelContext => ({ plan, limits, now_ms })
  const liveOf = (conv: string): ModelTask[] =>
    tasks.filter((task) => task.conv === conv && isLive(task))

  function access(type: string, conv: string, user?: string): ModelProcess | Answer {
    const process = processes.get(conv)
    if (user !== undefined) {
      const is_granted = grants.get(`${user} ${conv}`)?.includes(type) ?? false
      if (is_granted && process !== undefined) return process
      return { code: 'access_denied', says: `user: ${user}, conv_id: ${conv}` }
    }
    const says = `Object conv with id ${conv} does not exist`
    return process ?? { code: 'conv_not_found', says }
  }

  const liveHolder = (conv: string, ref: string | number): ModelTask | undefined =>
    liveOf(conv).find((task) => sameRef(task.ref, ref))
  const endedOf = (conv: string, ref: string | number): ModelTask[] =>
    tasks.filter((task) => task.conv === conv && !isLive(task) && sameRef(task.ref, ref))
  const newestEnded = (conv: string, ref: string | number): ModelTask | undefined =>
    endedOf(conv, ref).findLast(({ gone }) => gone === 'no')

  function find(conv: string, target: Target): ModelTask | undefined {
    if (!('n' in target)) return liveHolder(conv, target.ref) ?? newestEnded(conv, target.ref)
    const task = tasks[target.n]
    return task?.conv === conv && task.gone === 'no' ? task : undefined
  }

  /** A live task that administration or a modify may change. */
  function findLive(conv: string, target: Target): ModelTask | undefined {
    const task = find(conv, target)
    return task !== undefined && isLive(task) ? task : undefined
  }

  function fire(context: ModelContext, task: ModelTask): void {
    task.due_ms = undefined
    setChangeTime(context, task)
    const timers = context.plan.get(task.node)?.timers ?? []
    const timer = timers[task.timer_at] ?? timers[0]
    if (task.wait === 'more') run(context, task, 0)
    else if (timer !== undefined) enter(context, task, timer.to)
  }

  function migrate(context: ModelContext, task: ModelTask, to: string | undefined): void {
    if (to === undefined || context.plan.has(task.node)) return
    if (task.status !== 'failed') enter(context, task, to)
    else {
      Object.assign(task, { prev: task.node, node: to })
      setChangeTime(context, task)
    }
  }

  return {
    processes,
    tasks,
    grants,
    liveOf,
    now(ms: number): void {
      now_ms = ms
    },
    /** Whether an ended task that is to be removed may still be found by this ref. */
    isInDoubt(conv: string, ref: string | number): boolean {
      return (
        find(conv, { ref }) === undefined && endedOf(conv, ref).some((one) => one.gone === 'swept')
      )
    },
    create(conv: string, ref: string | number | undefined, data: ModelData, user?: string): Answer {
      const process = access('create', conv, user)
      if ('code' in process) return process
      const holder = ref === undefined ? undefined : liveHolder(conv, ref)
      if (holder !== undefined && sameData(holder.first, data)) return { code: 'ok', task: holder }
      if (process.is_paused) return not_active
      const over = overSize(data, limits.task_bytes_max)
      if (over !== undefined) return over
      if (holder !== undefined) {
        return { code: 'not_unical_ref', says: 'not unical reference', task: holder }
      }
      const task: ModelTask = {
        ...{ n: tasks.length, conv, ref, user, first: data, data, gone: 'no' },
        ...{ created_ms: now_ms, changed_ms: now_ms, status: 'processing', details: undefined },
        ...{ node: '', prev: '', wait: 'nothing', wait_at: 0 },
        ...{ due_ms: undefined, timer_at: 0, moves: 0 },
      }
      const former = ref === undefined ? undefined : newestEnded(conv, ref)
      task.changed_ms = Math.max(now_ms, former?.changed_ms ?? now_ms)
      tasks.push(task)
      enter(contextOf(process), task, 's')
      return { code: 'ok', task }
    },
    modify(
      conv: string,
      target: Target,
      data: ModelData,
      demand: { readonly is_sync?: boolean; readonly node_id?: string },
      user?: string,
    ): Answer {
      const process = access('modify', conv, user)
      if ('code' in process) return process
      if (process.is_paused) return not_active
      const task = findLive(conv, target)
      if (task === undefined) return not_found
      const waits_at = waitOf(process.plan, task)
      const demands = demand.is_sync === true || demand.node_id !== undefined
      const is_elsewhere = demand.node_id !== undefined && demand.node_id !== task.node
      if (demands && (waits_at === undefined || is_elsewhere)) {
        const says = 'no api callback logic in node with task'
        return { code: 'no_api_callback_in_node_with_task', says, task }
      }
      const merged = { ...task.data, ...data }
      const over = overSize(merged, limits.task_bytes_max)
      if (over !== undefined) return { ...over, task }
      task.data = merged
      if (waits_at === undefined) setChangeTime(contextOf(process), task)
      else run(contextOf(process), task, waits_at + 1)
      return { code: 'ok', task, resumed: waits_at !== undefined }
    },
    show(conv: string, target: Target, user?: string): Answer {
      const process = access('show', conv, user)
      if ('code' in process) return process
      const task = find(conv, target)
      return task === undefined ? not_found : { code: 'ok', task }
    },
    cancel(conv: string, target: Target): Answer {
      const process = access('cancel', conv)
      if ('code' in process) return process
      const task = findLive(conv, target)
      if (task === undefined) return not_found
      end(contextOf(process), task, 'canceled', true)
      return { code: 'ok', task }
    },
    retry(conv: string, target: Target, node: string | undefined): Answer {
      const process = access('retry', conv)
      if ('code' in process) return process
      if (process.is_paused) return not_active
      const task = findLive(conv, target)
      if (task === undefined) return not_found
      if (task.status !== 'failed') return { code: 'error', says: 'the task has not failed', task }
      if (node !== undefined && !process.plan.has(node)) {
        return { code: 'error', says: `Value is not valid. node_id: "${node}" is no node`, task }
      }
      if (node === undefined) run(contextOf(process), task, 0)
      else enter(contextOf(process), task, node)
      return { code: 'ok', task }
    },
    /** What the import answers, or the code it is refused with. */
    deploy(conv: string, plan: Plan, given: ReadonlyMap<string, string>): string {
      const old = processes.get(conv)
      if (old === undefined) {
        processes.set(conv, { plan, is_paused: false, moves: new Map() })
        return 'created'
      }
      if (textOf(old.plan) === textOf(plan)) return 'unchanged'
      if ([...given.values()].some((to) => !plan.has(to))) return 'bad_definition'
      const moves = new Map<string, string>()
      for (const { node } of liveOf(conv)) {
        if (plan.has(node)) continue
        const before = old.moves.get(node) ?? ''
        const to = given.get(node) ?? (plan.has(before) ? before : given.get(before))
        if (to === undefined) return 'tasks_in_node'
        moves.set(node, to)
      }
      processes.set(conv, { plan, is_paused: old.is_paused, moves })
      return 'updated'
    },
    setPaused(conv: string, is_paused: boolean): string {
      const process = processes.get(conv)
      if (process === undefined) return 'conv_not_found'
      processes.set(conv, { ...process, is_paused })
      return 'ok'
    },
    remove(conv: string): string {
      if (!processes.has(conv)) return 'conv_not_found'
      if (liveOf(conv).length > 0) return 'process_has_tasks'
      for (const key of [...grants.keys()]) if (key.endsWith(` ${conv}`)) grants.delete(key)
      processes.delete(conv)
      return 'ok'
    },
    share(conv: string, user: string, can: readonly string[] | undefined): string {
      if (!processes.has(conv)) return 'conv_not_found'
      if (can === undefined) grants.delete(`${user} ${conv}`)
      else grants.set(`${user} ${conv}`, can)
      return 'ok'
    },
    /** Lets happen what has become due, until nothing is left to do at this moment. */
    settle(): void {
      for (const [conv, process] of processes) {
        if (process.is_paused) continue
        const context = contextOf(process)
        for (const task of liveOf(conv)) {
          migrate(context, task, process.moves.get(task.node))
          while (task.due_ms !== undefined && task.due_ms <= now_ms) fire(context, task)
        }
        processes.set(conv, { ...process, moves: new Map() })
      }
      for (const task of tasks) {
        const is_old = task.changed_ms <= now_ms - limits.ended_kept_ms
        if (!isLive(task) && is_old && task.gone === 'no') task.gone = 'swept'
      }
    },
  }
}

const not_active: Answer = { code: 'conveyor_is_not_active', says: 'conveyor is not active' }
const not_found: Answer = { code: 'not_found_task', says: 'not found task' }
const textOf = (plan: Plan): string => JSON.stringify(definitionOf('', plan))
