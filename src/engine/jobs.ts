/**
 * Work outside the transaction: code, calls and handlers, each begun after the commit that asked for
 * it, at least once. The store lists what is to be done and not before when (family outbox); here is
 * only what is under way.
 *
 * The life of a piece of work: a task comes to rest with wait `work` and is listed. When its time has
 * come and there is room, its order is made from the data as it then is, done, and its outcome
 * applied in a transaction, if the task still rests for it in the same node and visit. A failure of
 * the hardware kind is listed again, later; the last one goes the way of the software kind. A crash
 * in between begins the work anew, under the same key.
 *
 * The outcome for a paused process waits here until it is resumed, or is done again if the process
 * ends before.
 */
import { familySpan, outboxKey, outboxOfKey } from '../bytes/keys.ts'
import type { TaskRecord } from '../bytes/task-record.ts'
import type { Move, WorkOrder, WorkOutcome } from '../logic/logic.ts'
import type { Clock } from '../words/clock.ts'
import type { Limits } from '../words/limits.ts'
import type { Task } from '../words/model.ts'
import { beginOp, settle } from './agenda.ts'
import { scopeOf } from './scope.ts'
import { loadTask, saveTask } from './task-file.ts'
import { viewTask } from './task-view.ts'
import { walkFrom } from './walk.ts'
import type { Reader, Work } from './work.ts'

/** What can be ordered, each done by a file of its own. None of them rejects. */
export interface Doers {
  code(order: Extract<WorkOrder, { work: 'code' }>): Promise<WorkOutcome>
  call(order: Extract<WorkOrder, { work: 'call' }>, job: Job): Promise<WorkOutcome>
  handler(order: Extract<WorkOrder, { work: 'handler' }>, job: Job): Promise<WorkOutcome>
  /** How often an order is tried before a failure is final. */
  attemptsMax(order: WorkOrder): number
  /** Whether there is room for this order now; takes it, and the answer gives it back. */
  enter(order: WorkOrder, job: Job): (() => void) | undefined
  close(): Promise<void>
}

export interface Job {
  readonly task: Task
  /** The same for each try of one piece of work, and for no other. */
  readonly key: string
  readonly signal: AbortSignal
  /** Place of the logic: conv_id, node_id and the logic's number. */
  readonly place: string
}

export interface JobsPort {
  readonly clock: Clock
  readonly limits: Limits
  fraction(): number
  transact<T>(fn: (work: Work) => T): Promise<T>
  /** Reads durable state. */
  read<T>(fn: (reader: Reader) => T): Promise<T>
  readonly doers: Doers
  onError(error: unknown): void
}

export interface Jobs {
  start(): void
  /** A commit listed work that may begin at this time. */
  note(at_ms: number): void
  /** A process was resumed: outcomes that waited for it are applied. */
  noteProcess(): void
  /** Begins nothing more and ends what is under way; it will be begun again when opened next. */
  stop(): Promise<void>
}

/** A task that rests for work, as it was when its order was made. */
interface Taken {
  readonly obj_id: string
  readonly visit: number
  readonly logic_at: number
  readonly at_ms: number
  readonly attempts: number
  readonly order: WorkOrder | { readonly work: 'none'; readonly move: Move }
  readonly task: Task
  readonly place: string
}

const backoff_ms_min = 1_000
const backoff_ms_max = 300_000
/** Listed work looked at for each piece that may begin: what has no room now is passed over. */
const looked_at_per_place = 16

export function newJobs(port: JobsPort): Jobs {
  const under_way = new Map<string, AbortController>()
  const waiting: (() => void)[] = []
  let cancel: (() => void) | undefined
  let running: Promise<void> | undefined
  let again = false
  let started = false
  let stopped = false

  function pump(): void {
    if (!started || stopped) return
    again = true
    running ??= look()
      .catch((error: unknown) => port.onError(error))
      .finally(() => {
        running = undefined
        if (again) pump()
      })
  }

  /** Begins what may begin now, and sets the clock for what may begin later. */
  async function look(): Promise<void> {
    again = false
    const room = port.limits.jobs_max - under_way.size
    if (room <= 0) return
    const now_ms = port.clock.now_ms()
    const found = await port.read((reader) => listWork(reader, now_ms, room, under_way))
    cancel?.()
    if (found.next_ms !== undefined) cancel = port.clock.wake_at(found.next_ms, pump)
    for (const taken of found.due) if (under_way.size < port.limits.jobs_max) begin(taken)
  }

  function begin(taken: Taken): void {
    const abort = new AbortController()
    const { obj_id, visit, task, place } = taken
    const job = { task, key: `${obj_id}-${visit}`, signal: abort.signal, place }
    const leave = taken.order.work === 'none' ? () => {} : port.doers.enter(taken.order, job)
    if (leave === undefined) return
    under_way.set(obj_id, abort)
    run(taken, job)
      .catch((error: unknown) => port.onError(error))
      .finally(() => {
        leave()
        under_way.delete(obj_id)
        pump()
      })
  }

  async function run(taken: Taken, job: Job): Promise<void> {
    const { order } = taken
    if (order.work === 'none') return finish(taken, undefined)
    const outcome = await doOrder(order, job)
    if (stopped) return
    const is_final =
      outcome.outcome === 'done' ||
      outcome.error_type === 'software' ||
      taken.attempts + 1 >= port.doers.attemptsMax(order)
    return is_final ? finish(taken, outcome) : postpone(taken)
  }

  function doOrder(order: WorkOrder, job: Job): Promise<WorkOutcome> {
    if (order.work === 'code') return port.doers.code(order)
    return order.work === 'call' ? port.doers.call(order, job) : port.doers.handler(order, job)
  }

  async function finish(taken: Taken, outcome: WorkOutcome | undefined): Promise<void> {
    for (;;) {
      const state = await port.transact((work) => applyOutcome(work, taken, outcome))
      if (state === 'applied' || stopped) return
      await new Promise<void>((resolve) => waiting.push(resolve))
    }
  }

  async function postpone(taken: Taken): Promise<void> {
    const wait_ms = Math.min(backoff_ms_min * 2 ** taken.attempts, backoff_ms_max)
    const at_ms = port.clock.now_ms() + Math.ceil(wait_ms * (0.5 + port.fraction() / 2))
    await port.transact((work) => {
      const draft = stillRests(work, taken)
      if (draft === undefined) return
      draft.task.at_ms = at_ms
      draft.task.attempts++
      saveTask(work, draft)
    })
  }

  return {
    start() {
      started = true
      pump()
    },
    note(at_ms) {
      if (at_ms <= port.clock.now_ms()) pump()
      else cancel = rearm(port.clock, cancel, at_ms, pump)
    },
    noteProcess() {
      for (const resume of waiting.splice(0)) resume()
      pump()
    },
    async stop() {
      stopped = true
      cancel?.()
      for (const abort of under_way.values()) abort.abort()
      for (const resume of waiting.splice(0)) resume()
      await running
      await port.doers.close()
    },
  }
}

/** A second alarm does no harm: a look that finds nothing sets the clock anew. */
function rearm(
  clock: Clock,
  cancel: (() => void) | undefined,
  at_ms: number,
  fn: () => void,
): () => void {
  const cancelThis = clock.wake_at(at_ms, fn)
  return () => {
    cancel?.()
    cancelThis()
  }
}

function listWork(
  reader: Reader,
  now_ms: number,
  room: number,
  under_way: ReadonlyMap<string, unknown>,
): { due: Taken[]; next_ms: number | undefined } {
  const due: Taken[] = []
  const { from, to } = familySpan('outbox')
  const limit = (under_way.size + room) * looked_at_per_place
  for (const { key } of reader.view.scan({ from, to: outboxKey(now_ms + 1, ''), limit })) {
    const { obj_id } = outboxOfKey(key)
    if (under_way.has(obj_id)) continue
    const taken = takeOrder(reader, obj_id)
    if (taken !== undefined) due.push(taken)
  }
  const [next] = reader.view.scan({ from: outboxKey(now_ms + 1, ''), to, limit: 1 })
  return { due, next_ms: next && outboxOfKey(next.key).ms }
}

/** Undefined where the process is paused or the task is damaged: both stay listed. */
function takeOrder(reader: Reader, obj_id: string): Taken | undefined {
  const draft = loadTask(reader.view, obj_id)
  if (draft === undefined || draft === 'damaged') return undefined
  const { task } = draft
  const process = reader.process(task.conv_id)
  if (process === undefined || process.head.status === 'paused') return undefined
  const logic = process.graph.nodes.get(task.node_id)?.logics[task.logic_at]
  const made = logic?.work?.order(scopeOf(reader, process, task)) ?? { move: 'next' as const }
  const { visit, logic_at, at_ms, attempts } = task
  const order = 'work' in made ? made : { work: 'none' as const, move: made }
  const place = `${task.conv_id} ${task.node_id} ${logic_at}`
  return { obj_id, visit, logic_at, at_ms, attempts, order, task: viewTask(task), place }
}

/** The task, if it still rests for this very piece of work. */
function stillRests(work: Work, taken: Taken): ReturnType<typeof asDraft> {
  const draft = asDraft(loadTask(work.view, taken.obj_id))
  if (draft === undefined) return undefined
  const { task } = draft
  const same = (name: 'visit' | 'logic_at' | 'at_ms'): boolean => task[name] === taken[name]
  return task.wait === 'work' && same('visit') && same('logic_at') && same('at_ms')
    ? draft
    : undefined
}

function asDraft(loaded: ReturnType<typeof loadTask>) {
  return loaded === 'damaged' ? undefined : loaded
}

function applyOutcome(
  work: Work,
  taken: Taken,
  outcome: WorkOutcome | undefined,
): 'applied' | 'paused' {
  const draft = stillRests(work, taken)
  const process = draft === undefined ? undefined : work.process(draft.task.conv_id)
  if (draft === undefined || process === undefined) return 'applied'
  if (process.head.status === 'paused') return 'paused'
  const { task }: { task: TaskRecord } = draft
  const logic = process.graph.nodes.get(task.node_id)?.logics[task.logic_at]
  const { order } = taken
  const next: Move = { move: 'next' }
  let move = order.work === 'none' ? order.move : next
  if (order.work !== 'none' && outcome !== undefined) {
    move = logic?.work?.finish(scopeOf(work, process, task), order.doc, outcome) ?? next
  }
  beginOp(work)
  const { keep_ended } = walkFrom(work, process, draft, task.logic_at, move)
  saveTask(work, draft, keep_ended)
  settle(work)
  return 'applied'
}
