/**
 * The state of the model: processes, tasks, grants, sums, queues, in Maps; and what every change of
 * a task does to them. It has no files, no keys and no slices of memory: a transaction of the model
 * is a record of counts, and is never undone.
 */
import type { OpFaultCode } from '../../../src/core/faults.ts'
import type { HistoryEntry, HistoryWhy, Status, StatusDetails } from '../../../src/core/model.ts'
import type { Data, Json, Plan } from './plan.ts'
import { bytesOf, isObject, sorted } from './values.ts'

export interface ModelLimits {
  readonly moves_per_transaction_max: number
  readonly moves_without_rest_max: number
  readonly task_bytes_max: number
  readonly ended_kept_ms: number
  readonly slice_tasks_max: number
}

export type Waits = 'nothing' | 'callback' | 'reply' | 'queue' | 'work' | 'ready'
export type Ref = string | number

export interface ModelTask {
  readonly obj_id: string
  readonly conv: string
  readonly ref: Ref | undefined
  readonly user: string | undefined
  readonly created_ms: number
  /** Its data as it came in. */
  readonly first: Data
  /** The ended task that had its ref before. */
  readonly former: ModelTask | undefined
  data: Data
  changed_ms: number
  status: Status
  details: StatusDetails | undefined
  node: string
  prev: string
  wait: Waits
  /** The logic at which it waits, or goes on. */
  at: number
  /** 0 where no timer is armed. */
  due_ms: number
  timer_at: number
  /** Of a ready task: the timer of its node, which it keeps. */
  kept_due_ms: number
  moves: number
  /** Each entry of a node and each job is another one. */
  visit: number
  caller: ModelTask | undefined
  called: ModelTask | undefined
  keeps_ended: boolean
  job: Job | undefined
  history: HistoryEntry[]
  /** As it was saved last; undefined before. */
  saved: Saved | undefined
  /** It has come to rest in a queue anew. */
  is_last_in_queue: boolean
  /** Removed, at its end or after its time. */
  is_gone: boolean
}

export interface Saved {
  readonly status: Status
  readonly node: string
  readonly wait: Waits
  readonly due_ms: number
}

/** A job that a task waits for. */
export interface Job {
  readonly task: ModelTask
  readonly type: string
  readonly at: number
  /** Not before this time, as far as the model knows: chance makes it up to twice as long. */
  begins_ms: number
  attempts: number
  /** The same for each attempt, and for no other job. */
  readonly key: string
  /** What the task had as its data since the job was listed. */
  readonly seen: Data[]
}

export interface ModelProcess {
  plan: Plan
  is_paused: boolean
  version: number
  /** Dropped nodes with tasks, and where they go. */
  moves: Map<string, string>
}

/** What a transaction counts. */
interface Counts {
  moves_left: number
  moves_made: number
  chain_moves: number
  ready: ModelTask[]
  unanswered: { readonly caller: ModelTask; readonly called: ModelTask; readonly moves: number }[]
  /** The nodes with count semaphors whose number was touched: how many tasks were told. */
  touched: Map<string, { readonly conv: string; readonly node: string; told: number }>
  timers: Map<string, number>
  has_ended: boolean
}

export interface Refusal {
  readonly code: OpFaultCode
  readonly says: string
  readonly task?: ModelTask
}

export type World = ReturnType<typeof newWorld>

export const isLive = ({ status }: Pick<ModelTask, 'status'>): boolean =>
  status !== 'processed' && status !== 'canceled'
const isOver = ({ status }: ModelTask): boolean => !isLive({ status }) || status === 'failed'
const history_max = 64

export function newWorld(limits: ModelLimits, handled_title: string) {
  const processes = new Map<string, ModelProcess>()
  const tasks = new Map<string, ModelTask>()
  const refs = new Map<string, ModelTask>()
  /** `user conv` → the types of op that are granted. */
  const grants = new Map<string, readonly string[]>()
  const counts = new Map<string, Record<Status, number>>()
  const sums = new Map<string, number>()
  /** `conv node` → in the order in which they came. */
  const queues = new Map<string, ModelTask[]>()
  /** Each save of a task, in order: what the feed of changes tells. */
  const feed: string[] = []
  /** What was met, for the figures. */
  const met = new Map<string, number>()
  let last_id = { seconds: -1, n: 0 }
  const world = {
    ...{ limits, handled_title, processes, tasks, refs, grants, counts, sums, queues, feed, met },
    now_ms: 0,
    id_middle: '',
    tx: newCounts(),
    /** How often something was changed that is stored. */
    writes: 0,

    meet(what: string): void {
      met.set(what, (met.get(what) ?? 0) + 1)
    },
    begin(): void {
      world.tx = newCounts()
    },
    /** Before each request of a transaction. */
    beginRequest(): void {
      world.tx.moves_made = 0
    },
    beginOp(): void {
      const { moves_per_transaction_max: each } = limits
      world.tx.moves_left = Math.min(each, 10 * each - world.tx.moves_made)
      world.tx.chain_moves = 0
    },
    planOf: (conv: string): Plan | undefined => processes.get(conv)?.plan,
    live: (conv: string): ModelTask[] =>
      [...tasks.values()].filter((task) => task.conv === conv && isLive(task)),
    liveCount(conv: string, node: string): number {
      const { processing = 0, delayed = 0, failed = 0 } = counts.get(`${conv} ${node}`) ?? {}
      return processing + delayed + failed
    },
    holder: (conv: string, ref: Ref): ModelTask | undefined => refs.get(`${conv} ${ref}`),
    /** Ids ascend also where the clock goes back: a second has as many as are asked for. */
    nextId(): string {
      const now_s = Math.floor(world.now_ms / 1_000)
      last_id =
        now_s > last_id.seconds
          ? { seconds: now_s, n: 0 }
          : { seconds: last_id.seconds, n: last_id.n + 1 }
      const { seconds, n } = last_id
      return (
        seconds.toString(16).padStart(8, '0') + world.id_middle + n.toString(16).padStart(6, '0')
      )
    },
    newTask(
      given: Pick<ModelTask, 'conv' | 'ref' | 'user' | 'data' | 'former' | 'caller'>,
    ): ModelTask {
      const { now_ms } = world
      return {
        ...given,
        ...{ obj_id: world.nextId(), created_ms: now_ms, first: given.data },
        changed_ms: Math.max(now_ms, given.former?.changed_ms ?? 0),
        ...{ status: 'processing', details: undefined, node: '', prev: '', wait: 'nothing', at: 0 },
        ...{ due_ms: 0, timer_at: 0, kept_due_ms: 0, moves: 0, visit: 0, called: undefined },
        ...{ keeps_ended: true, job: undefined, history: [], saved: undefined, is_gone: false },
        is_last_in_queue: false,
      }
    },
    note(
      task: ModelTask,
      why: HistoryWhy,
      more: { by?: string | undefined; tag?: string } = {},
    ): void {
      const { by, tag } = more
      world.meet(`why ${why}`)
      if (tag !== undefined) world.meet(`tag ${tag}`)
      task.history.push({
        ...{ node_id: task.node, at_ms: Math.max(world.now_ms, task.changed_ms), why },
        ...(by === undefined ? {} : { by }),
        ...(tag === undefined ? {} : { tag }),
      })
      if (task.history.length > history_max) task.history.shift()
    },
    save(task: ModelTask): void {
      world.writes++
      const { tx, now_ms } = world
      const { saved, conv } = task
      const live = isLive(task)
      const was_live = saved !== undefined && isLive(saved)
      if (!live) task.due_ms = 0
      task.changed_ms = Math.max(now_ms, task.changed_ms)
      const keeps = live || task.keeps_ended
      if (saved?.status !== task.status || saved.node !== task.node) {
        if (saved !== undefined && was_live) countTask(conv, saved.node, saved.status, -1)
        if (keeps) countTask(conv, task.node, task.status, 1)
      }
      if (task.due_ms !== 0 && task.due_ms !== (saved?.due_ms ?? 0)) {
        tx.timers.set(conv, Math.min(task.due_ms, tx.timers.get(conv) ?? Number.POSITIVE_INFINITY))
      }
      saveQueue(task)
      if (task.wait !== 'work') task.job = undefined
      if (task.ref !== undefined) {
        const key = `${conv} ${task.ref}`
        if (saved === undefined && keeps) refs.set(key, task)
        if (was_live && !keeps) {
          if (task.former !== undefined && !task.former.is_gone) refs.set(key, task.former)
          else refs.delete(key)
        }
      }
      if (task.caller !== undefined && isOver(task)) {
        tx.unanswered.push({ caller: task.caller, called: task, moves: task.moves })
        task.caller = undefined
      }
      tasks.set(task.obj_id, task)
      if (!keeps) remove(task)
      else if (!live) tx.has_ended = true
      world.meet(`${saved?.status ?? 'new'} → ${task.status}`)
      task.saved = { status: task.status, node: task.node, wait: task.wait, due_ms: task.due_ms }
      feed.push(`${task.obj_id} ${conv} ${task.status} ${task.node}`)
    },
    /** Removes an ended task after its time. */
    sweep(task: ModelTask): void {
      world.writes++
      countTask(task.conv, task.node, task.status, -1)
      const key = `${task.conv} ${task.ref}`
      if (task.ref !== undefined && refs.get(key) === task) refs.delete(key)
      remove(task)
      world.meet('swept')
    },
    sameData: (one: Data, other: Data): boolean => sorted(one as Json) === sorted(other as Json),
    mayUse(user: string, conv: string, type: string): boolean {
      return grants.get(`${user} ${conv}`)?.includes(type) ?? false
    },
    overSize(data: Data): Refusal | undefined {
      const bytes = bytesOf(data)
      const { task_bytes_max: max } = limits
      if (bytes <= max) return undefined
      const says = `Your task size: ${bytes} bytes, Max available task size: ${max} bytes`
      return { code: 'task_size_overflow_limit', says }
    },
    wrongParam(plan: Plan, data: Data): Refusal | undefined {
      for (const { name, type, is_required } of plan.params) {
        const value = data[name]
        const may_lack = !is_required && (value === undefined || lacks(value, type))
        if (may_lack || isOf(value, type)) continue
        const error = value === undefined ? 'is required' : `is not of type ${type}`
        return { code: 'wrong_validate_params', says: `Param: ${name}, Error: ${error}` }
      }
      return undefined
    },
  }

  function countTask(conv: string, node: string, status: Status, by: 1 | -1): void {
    const key = `${conv} ${node}`
    if (
      !world.tx.touched.has(key) &&
      (world.planOf(conv)?.nodes.get(node)?.counts.length ?? 0) > 0
    ) {
      world.tx.touched.set(key, { conv, node, told: world.liveCount(conv, node) })
    }
    const found = counts.get(key) ?? {
      processing: 0,
      delayed: 0,
      failed: 0,
      processed: 0,
      canceled: 0,
    }
    counts.set(key, { ...found, [status]: found[status] + by })
  }

  function saveQueue(task: ModelTask): void {
    const { saved, conv } = task
    const before = saved?.wait === 'queue' ? `${conv} ${saved.node}` : undefined
    const now = isLive(task) && task.wait === 'queue' ? `${conv} ${task.node}` : undefined
    if (before !== undefined && (before !== now || task.is_last_in_queue)) {
      queues.set(
        before,
        (queues.get(before) ?? []).filter((one) => one !== task),
      )
    }
    if (now !== undefined && (before !== now || task.is_last_in_queue)) {
      queues.set(now, [...(queues.get(now) ?? []), task])
    }
    task.is_last_in_queue = false
  }

  function remove(task: ModelTask): void {
    task.is_gone = true
    tasks.delete(task.obj_id)
  }
  return world
}

function newCounts(): Counts {
  return {
    ...{ moves_left: 0, moves_made: 0, chain_moves: 0, ready: [], unanswered: [] },
    ...{ touched: new Map(), timers: new Map(), has_ended: false },
  }
}

function isOf(value: Json | undefined, type: string): boolean {
  if (type === 'array') return Array.isArray(value)
  return type === 'object' ? isObject(value) : typeof value === type
}

const lacks = (value: Json, type: string): boolean =>
  (type === 'array' || type === 'object') && (value === '' || value === null)
