/**
 * The state shared within one transaction: the store's transaction, node counters, the last task
 * id, the run queue, and the effects to publish after the commit. An engine reuses one Transaction;
 * `begin` resets it, also after a throw. Records that change with every op are read and written
 * once, by `end`.
 */
import { grantKey, type Key } from '../../codec/keys.ts'
import type { PackedData } from '../../codec/task-bytes.ts'
import type { TaskRecord } from '../../codec/task-record.ts'
import type { CountedTasks } from '../../core/counters.ts'
import type { Limits } from '../../core/limits.ts'
import type { Status, Task } from '../../core/model.ts'
import type { TraceContext } from '../../core/tracing.ts'
import { type Steps, steps_max } from '../../process/definition-limits.ts'
import type { GraphNode } from '../../process/graph.ts'
import type { Command, DbCallKinds, EvaluationContext } from '../../process/logic.ts'
import type { Tx, View } from '../../store/store.ts'
import type { Work } from './background.ts'
import type { Catalog, Process } from './catalog.ts'
import { type ChangeEntry, newChangeLog } from './change-log.ts'
import type { FlowEffects, FlowNotes } from './flow-notes.ts'
import { type CountChange, liveTasksAt, newNodeCounters } from './node-counters.ts'
import { newShapes } from './shapes.ts'
import { newTaskIds } from './task-ids.ts'
import { newTaskRuns, type TaskRun, type TaskRuns } from './task-spans.ts'
import type { Variables } from './variables.ts'

export interface EngineContext {
  readonly catalog: Catalog
  readonly limits: Limits
  /** The middle of each task id: the file's 5 random bytes, in hex. */
  readonly id_middle: string
  fraction(): number
  readonly variables: Variables
  handlerName(view: View, conv_id: string, title: string): string | undefined
  callbackUrl(process: Process, node_id: string): string | undefined
  areEndsWatched(): boolean
  /** They get the key of each changed node_count, before its commit. */
  readonly count_listeners: ReadonlySet<(key: Key) => void>
  readonly is_traced: boolean
  /** Of an engine with databases. */
  readonly db_call: DbCallKinds | undefined
  /** Undefined until a task comes to a limit, or the file has one that did. */
  readonly slots: Slots | undefined
  loadSlots(): Promise<void>
  /** Notes for the next transaction; undefined while flow is not watched. */
  readonly flow: { notes(now_ms: number): FlowNotes | undefined }
}

/** The slots of limits (engine/limits). */
export interface Slots {
  /** The `slot` command if the task must wait, a failure, or undefined if it may pass. */
  take(
    tx: Transaction,
    task: TaskRecord,
    node: GraphNode,
    logic_at: number,
    evaluation: EvaluationContext,
  ): Command | undefined
  /** Lets tasks go on where a definition has changed a limit, or its rate allows it. */
  readonly work: Work
  /** Reads the processes whose limits have changed, and what is due. */
  read(): Promise<void>
  onProcessChanged(conv_id: string): void
  /** A commit has made a limit due. */
  onDue(due_ms: number): void
  /** Gives back all that the task holds, or leaves the line; the next one in line goes on. */
  release(tx: Transaction, task: TaskRecord): void
}

export interface ReadContext {
  readonly view: View
  readonly now_ms: number
  readonly engine: EngineContext
  /** The computation left to the current logic. */
  readonly steps: Steps
  process(conv_id: string): Process | undefined
  /** `grant_bits`; 0 without a grant. */
  grantBits(user: string, conv_id: string): number
  /** Live tasks, with the changes of this transaction. */
  nodeCount(conv_id: string, node_id: string): number
}

export interface Transaction extends ReadContext {
  readonly store: Tx
  /** 24 hex digits, above every id given before. */
  newTaskId(): string
  /** Data of a record, if they have a shape. */
  packData(task: TaskRecord): PackedData | undefined
  /** Ended tasks count while kept. */
  countTask(conv_id: string, node_id: string, status: Status, by: 1 | -1): void
  /** For one more live task; if not, `full` has the process after the commit. */
  hasRoom(conv_id: string): boolean
  /** Call after a change of a process or its grants, which are cached. */
  forgetProcess(conv_id: string): void
  takeCountChanges(): readonly CountChange[]
  moves_left: number
  /** The longest chain of moves without a wait in the current op. */
  chain_moves: number
  readonly run_queue: string[]
  readonly unanswered_callers: UnansweredCaller[]
  readonly passed: PassedNodes
  /** The span of the current request; undefined without a trace. */
  cause: TraceContext | undefined
  readonly runs: TaskRuns | undefined
  /** Undefined without a watcher. */
  readonly flow: FlowNotes | undefined
  moves_made: number
  shown_bytes: number
  recordTimer(conv_id: string, due_ms: number): void
  recordJob(at_ms: number): void
  recordEnded(): void
  recordCount(what: keyof CountedTasks): void
  recordChange(task: TaskRecord): void
  recordNeedOfSlots(): void
  recordLimitDue(due_ms: number): void
  recordEnd(task: Task): void
  recordFailure(failure: TaskFailure): void
}

/** Fields of the event `task_failed`; `code` is the failure's tag. */
export interface TaskFailure {
  readonly conv_id: string
  readonly obj_id: string
  readonly node_id: string
  readonly code: string
  readonly trace_id?: string
}

export interface UnansweredCaller {
  readonly caller_id: string
  readonly called_id: string
  readonly moves: number
}

/** Nodes entered by `go` since the task's last history entry. */
export interface PassedNodes {
  task: TaskRecord | undefined
  /** A ring of the size of a history. */
  readonly node_ids: string[]
  next: number
  count: number
}

export interface CommitEffects extends CountedTasks {
  /** Timers set: conv_id → the earliest due time. */
  timers: Map<string, number> | undefined
  job_ms: number | undefined
  has_ended: boolean
  needs_slots: boolean
  limit_ms: number | undefined
  entry: ChangeEntry | undefined
  /** Tasks that ended or failed, also those not kept. */
  ends: Task[] | undefined
  failures: TaskFailure[] | undefined
  full: Set<string> | undefined
  runs: readonly TaskRun[] | undefined
  flow: FlowEffects | undefined
}

export interface ReusableTransaction {
  begin(tx: Tx, now_ms: number): Transaction
  /** Writes counters and the last id. Undefined without anything to publish. */
  end(): CommitEffects | undefined
}

export function newReadContext(view: View, engine: EngineContext, now_ms: number): ReadContext {
  return {
    view,
    now_ms,
    engine,
    steps: { left: steps_max },
    process: (conv_id) => engine.catalog.find(view, conv_id),
    grantBits: (user, conv_id) => view.get(grantKey(user, conv_id))?.[0] ?? 0,
    nodeCount: (conv_id, node_id) => liveTasksAt(view, conv_id, node_id),
  }
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

export function newReusableTransaction(engine: EngineContext): ReusableTransaction {
  let processes = new Map<string, Process>()
  const ids = newTaskIds(no_tx, engine.id_middle)
  const tasks_max = engine.limits.process_tasks_max || Number.POSITIVE_INFINITY
  const counters = newNodeCounters(no_tx, processOf, engine.count_listeners, tasks_max)
  const changes = newChangeLog(no_tx)
  const shapes = newShapes(no_tx)
  const runs = engine.is_traced ? newTaskRuns(processOf) : undefined
  let grant: { user: string; conv_id: string; bits: number } | undefined
  let effects: CommitEffects | undefined

  function processOf(conv_id: string): Process | undefined {
    const known = processes.get(conv_id)
    if (known !== undefined) return known
    const found = engine.catalog.find(transaction.store, conv_id)
    if (found !== undefined) processes.set(conv_id, found)
    return found
  }

  const recorded = (): CommitEffects => {
    effects ??= {
      created: 0,
      failed: 0,
      processed: 0,
      canceled: 0,
      timers_fired: 0,
      timers: undefined,
      job_ms: undefined,
      has_ended: false,
      needs_slots: false,
      limit_ms: undefined,
      entry: undefined,
      ends: undefined,
      failures: undefined,
      full: undefined,
      runs: undefined,
      flow: undefined,
    }
    return effects
  }

  const transaction: Writable<Transaction> = {
    store: no_tx,
    view: no_tx,
    now_ms: 0,
    engine,
    steps: { left: steps_max },
    moves_left: 0,
    chain_moves: 0,
    run_queue: [],
    unanswered_callers: [],
    passed: {
      task: undefined,
      node_ids: new Array<string>(engine.limits.history_max).fill(''),
      next: 0,
      count: 0,
    },
    cause: undefined,
    runs,
    flow: undefined,
    moves_made: 0,
    shown_bytes: 0,
    process: processOf,
    grantBits(user, conv_id) {
      if (grant?.user !== user || grant.conv_id !== conv_id) {
        grant = { user, conv_id, bits: transaction.store.get(grantKey(user, conv_id))?.[0] ?? 0 }
      }
      return grant.bits
    },
    newTaskId: () => ids.next(transaction.now_ms),
    packData: shapes.pack,
    countTask: counters.add,
    nodeCount: counters.of,
    hasRoom(conv_id) {
      if (counters.hasRoom(conv_id)) return true
      const effects = recorded()
      effects.full ??= new Set()
      effects.full.add(conv_id)
      return false
    },
    forgetProcess(conv_id) {
      processes.delete(conv_id)
      grant = undefined
    },
    takeCountChanges: counters.takeChanges,
    recordTimer(conv_id, due_ms) {
      const effects = recorded()
      effects.timers ??= new Map()
      const { timers } = effects
      if (due_ms < (timers.get(conv_id) ?? Number.POSITIVE_INFINITY)) timers.set(conv_id, due_ms)
    },
    recordJob(at_ms) {
      const effects = recorded()
      effects.job_ms = Math.min(effects.job_ms ?? at_ms, at_ms)
    },
    recordEnded() {
      recorded().has_ended = true
    },
    recordNeedOfSlots() {
      recorded().needs_slots = true
    },
    recordLimitDue(due_ms) {
      const effects = recorded()
      effects.limit_ms = Math.min(effects.limit_ms ?? due_ms, due_ms)
    },
    recordCount(what) {
      recorded()[what]++
    },
    recordChange: engine.limits.changes_bytes_max === 0 ? () => {} : changes.add,
    recordEnd(task) {
      const effects = recorded()
      effects.ends ??= []
      effects.ends.push(task)
    },
    recordFailure(failure) {
      const effects = recorded()
      effects.failures ??= []
      effects.failures.push(failure)
    },
  }

  return {
    begin(tx, now_ms) {
      // A new map: a cleared one may keep its largest storage, with values.
      processes = new Map()
      ids.begin(tx)
      counters.begin(tx)
      changes.begin(tx)
      shapes.begin(tx)
      runs?.begin()
      transaction.flow = engine.flow.notes(now_ms)
      grant = undefined
      effects = undefined
      transaction.store = tx
      transaction.view = tx
      transaction.now_ms = now_ms
      transaction.steps.left = steps_max
      transaction.moves_left = engine.limits.moves_per_transaction_max
      transaction.chain_moves = 0
      transaction.moves_made = 0
      transaction.run_queue = []
      transaction.unanswered_callers = []
      transaction.passed.task = undefined
      return transaction
    },
    end() {
      counters.end(transaction.flow)
      ids.end()
      const entry = changes.end(transaction.now_ms)
      if (entry !== undefined) recorded().entry = entry
      const noted = runs?.end()
      if (noted !== undefined) recorded().runs = noted
      const flow = transaction.flow?.end()
      if (flow !== undefined) recorded().flow = flow
      transaction.store = no_tx
      transaction.view = no_tx
      return effects
    },
  }
}

function closed(): never {
  throw new Error('a transaction was used outside its time')
}

const no_tx: Tx = { get: closed, scan: closed, put: closed, del: closed }
