/**
 * A transaction's workspace: what its ops share. Begun at the start of an update and ended with it,
 * so that a counter or the last id that changes with every op is written once.
 *
 * An engine has one, for its transactions run one after the other; each begins with it empty, also
 * after one that threw. Only what `end` hands over outlives a transaction, to be told once the
 * commit is on disk.
 */
import { grantKey, nodeCountKey } from '../codec/keys.ts'
import { decodeCount } from '../codec/records.ts'
import type { Limits } from '../core/limits.ts'
import type { Change, JsonValue } from '../core/model.ts'
import type { Tx, View } from '../store/store.ts'
import type { Catalog, Process } from './catalog.ts'
import { type CountChange, newNodeCounters } from './node-counters.ts'
import { newTaskIds } from './task-ids.ts'

/** What all transactions of an engine share. */
export interface EngineContext {
  readonly catalog: Catalog
  readonly limits: Limits
  /** The file's own 5 random bytes, in hex: the middle of each task id. */
  readonly id_middle: string
  fraction(): number
  /** Variables given to the engine, by name. */
  readonly variables: Readonly<Record<string, JsonValue>>
  /** Whether the embedder runs code of its own for a kind or a node title. */
  isHandled(name: string): boolean
  /** Whether anybody watches; without one, changes are not collected. */
  isWatched(): boolean
}

/** What logics may read besides their own task; a transaction's Work is one. */
export interface ReadContext {
  readonly view: View
  readonly now_ms: number
  readonly engine: EngineContext
  process(conv_id: string): Process | undefined
  /** What a user may do with tasks of a process: `grant_bits`, 0 without a grant. */
  granted(user: string, conv_id: string): number
  /** Live tasks in a node, with what this transaction changed. */
  nodeCount(conv_id: string, node_id: string): number
}

export interface TransactionContext extends ReadContext {
  readonly tx: Tx
  /** 24 hex digits, above every id given before. */
  newTaskId(): string
  /** Adds to the number of live tasks in a node. */
  countTask(conv_id: string, node_id: string, by: 1 | -1): void
  /** Nodes with count semaphors whose number changed since the last call: before and now. */
  takeCountChanges(): readonly CountChange[]
  /** Moves that may still be made for the present op; the rest goes on in the next transaction. */
  moves_left: number
  /** The longest chain of moves without rest that the present op has come to. */
  chain_moves: number
  /** Ready tasks to go on with in this transaction, first come first. */
  readonly run_queue: string[]
  readonly unanswered_callers: UnansweredCaller[]
  /** Moves of all tasks so far, for the present request. */
  moves_made: number
  /** Of the tasks that the present request has shown so far. */
  shown_bytes: number
  /** A timer was set. */
  recordTimer(conv_id: string, due_ms: number): void
  /** Work was put down that may begin at this time. */
  recordJob(at_ms: number): void
  /** A task has ended and is kept. */
  recordEnded(): void
  recordChange(change: Omit<Change, 'seq'>): void
}

/** A task that ended owing a reply, with the caller that waits for it. */
export interface UnansweredCaller {
  readonly caller_id: string
  readonly called_id: string
  readonly moves: number
}

/** What a transaction leaves to be told once it is on disk. */
export interface CommitEvents {
  /** Due times that were set: conv_id → the earliest. */
  readonly timers: Map<string, number>
  /** When the earliest work put down may begin. */
  job_ms: number | undefined
  has_ended: boolean
  readonly changes: Omit<Change, 'seq'>[]
}

export interface ReusableContext {
  /** Good until `end`, or until the next one begins. */
  begin(tx: Tx, now_ms: number): TransactionContext
  /** Writes what was gathered. Undefined where there is nothing to tell. */
  end(): CommitEvents | undefined
}

/** A Reader of a view, for work outside transactions. */
export function newReadContext(view: View, engine: EngineContext, now_ms: number): ReadContext {
  return {
    view,
    now_ms,
    engine,
    process: (conv_id) => engine.catalog.find(view, conv_id),
    granted: (user, conv_id) => view.get(grantKey(user, conv_id))?.[0] ?? 0,
    nodeCount: (conv_id, node_id) => decodeCount(view.get(nodeCountKey(conv_id, node_id))),
  }
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

export function newTransactionContext(engine: EngineContext): ReusableContext {
  let processes = new Map<string, Process>()
  const ids = newTaskIds(no_tx, engine.id_middle)
  const counters = newNodeCounters(no_tx, processOf)
  let grant: { user: string; conv_id: string; bits: number } | undefined
  let events: CommitEvents | undefined

  function processOf(conv_id: string): Process | undefined {
    const known = processes.get(conv_id)
    if (known !== undefined) return known
    const found = engine.catalog.find(context.tx, conv_id)
    if (found !== undefined) processes.set(conv_id, found)
    return found
  }

  const eventsToRecord = (): CommitEvents => {
    events ??= { timers: new Map(), job_ms: undefined, has_ended: false, changes: [] }
    return events
  }

  const context: Writable<TransactionContext> = {
    tx: no_tx,
    view: no_tx,
    now_ms: 0,
    engine,
    moves_left: 0,
    chain_moves: 0,
    run_queue: [],
    unanswered_callers: [],
    moves_made: 0,
    shown_bytes: 0,
    process: processOf,
    granted(user, conv_id) {
      if (grant?.user !== user || grant.conv_id !== conv_id) {
        grant = { user, conv_id, bits: context.tx.get(grantKey(user, conv_id))?.[0] ?? 0 }
      }
      return grant.bits
    },
    newTaskId: () => ids.next(context.now_ms),
    countTask: counters.add,
    nodeCount: counters.of,
    takeCountChanges: counters.take,
    recordTimer(conv_id, due_ms) {
      const { timers } = eventsToRecord()
      if (due_ms < (timers.get(conv_id) ?? Number.POSITIVE_INFINITY)) timers.set(conv_id, due_ms)
    },
    recordJob(at_ms) {
      const noted = eventsToRecord()
      noted.job_ms = Math.min(noted.job_ms ?? at_ms, at_ms)
    },
    recordEnded() {
      eventsToRecord().has_ended = true
    },
    recordChange(change) {
      eventsToRecord().changes.push(change)
    },
  }

  return {
    begin(tx, now_ms) {
      // A new one: what a map held before it was cleared may live on with those it held later.
      processes = new Map()
      ids.begin(tx)
      counters.begin(tx)
      grant = undefined
      events = undefined
      context.tx = tx
      context.view = tx
      context.now_ms = now_ms
      context.moves_left = engine.limits.moves_per_transaction_max
      context.chain_moves = 0
      context.moves_made = 0
      context.run_queue = []
      context.unanswered_callers = []
      return context
    },
    end() {
      counters.end()
      ids.end()
      context.tx = no_tx
      context.view = no_tx
      return events
    },
  }
}

function closed(): never {
  throw new Error('a transaction was used outside its time')
}

/** In the place of a transaction while none is under way. */
const no_tx: Tx = { get: closed, scan: closed, put: closed, del: closed }
