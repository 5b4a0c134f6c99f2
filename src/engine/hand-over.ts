/**
 * Hands tasks that wait for a callback to the handler of their node: those that came before the
 * handler, before a restart, before an import changed the title or before an alias was set. Tasks
 * that come later begin to wait for the handler at once (advance.ts).
 *
 * Each slice is a transaction of its own, between those of callers, and reads only nodes that a
 * handler covers and that have tasks. Memory holds one entry for each process that is still to be
 * looked at. Nothing is stored but the tasks, so after a crash the rest is found again at the next
 * registration. A paused process is looked at when it is resumed.
 */
import {
  after,
  type Key,
  type KeyRange,
  keysOfType,
  processOfKey,
  taskOfKey,
  tasksAtNode,
  tasksAtNodes,
} from '../codec/keys.ts'
import type { Clock } from '../core/clock.ts'
import { isStoreClosed, isStoreUnavailable } from '../core/faults.ts'
import type { Store } from '../store/store.ts'
import { type Admission, full_disk_ms } from './admission.ts'
import type { Process } from './catalog.ts'
import type { Handlers } from './handlers.ts'
import { loadTask, saveTask } from './task-store.ts'
import type { Transaction } from './transaction.ts'
import type { TransactionQueue } from './transaction-queue.ts'
import { waitLogic } from './waits.ts'

export interface HandOverOptions {
  readonly clock: Clock
  readonly store: Store
  readonly transactions: TransactionQueue
  /** On a full disk nothing is handed over. */
  readonly admission: Admission
  /** Without handlers nothing is read. */
  readonly handlers: Pick<Handlers, 'isEmpty'>
  /** Called for a bug: an exception that is no Fault. */
  onError(error: unknown): void
}

export interface HandOver {
  /** Looks at all processes. */
  start(): void
  /** After a handler of this name was registered. */
  onHandler(name: string): void
  /** After a process was imported or resumed, or got an alias. */
  onProcessChanged(conv_id: string): void
  /** Resolves once the slice in flight is done; nothing is handed over after that. */
  stop(): Promise<void>
}

/** The names of new handlers, or `all` of them. */
type Names = Set<string> | 'all'

export function newHandOver(options: HandOverOptions): HandOver {
  const { clock, store, transactions, admission, handlers } = options
  /** Not yet looked up in any process. */
  let names: Names = new Set()
  /** The processes to look at, each with the handlers to look for. */
  const pending = new Map<string, Names>()
  let running: Promise<void> | undefined
  /** Set while a full disk is waited for. */
  let cancel: (() => void) | undefined
  let is_started = false
  let is_stopped = false

  function run(): void {
    if (!is_started || is_stopped || running !== undefined || cancel !== undefined) return
    running = runAll()
      .catch((error: unknown) => {
        if (isStoreClosed(error)) is_stopped = true
        else if (isStoreUnavailable(error)) runLater()
        else options.onError(error)
      })
      .finally(() => {
        running = undefined
        if (hasMore()) run()
      })
  }

  function runLater(): void {
    cancel = clock.wake_at(clock.now_ms() + full_disk_ms, () => {
      cancel = undefined
      run()
    })
  }

  const hasMore = (): boolean => names === 'all' || names.size > 0 || pending.size > 0

  async function runAll(): Promise<void> {
    while (!is_stopped && hasMore()) {
      if (!admission.hasRoom()) return runLater()
      const found = names
      names = new Set()
      if (found === 'all' || found.size > 0) {
        const keys = await store.view((view) =>
          view.scan({ ...keysOfType('process'), limit: Infinity }).map(({ key }) => key),
        )
        for (const key of keys) add(processOfKey(key), found)
      }
      const [first] = pending
      if (first !== undefined) await handOver(...first)
    }
  }

  function add(conv_id: string, more: Names): void {
    const known = pending.get(conv_id)
    const is_all = known === 'all' || more === 'all'
    pending.set(conv_id, is_all ? 'all' : new Set([...(known ?? []), ...more]))
  }

  async function handOver(conv_id: string, wanted: Names): Promise<void> {
    pending.delete(conv_id)
    let from: Key | undefined = tasksAtNodes(conv_id).from
    while (from !== undefined && !is_stopped) {
      const slice_from: Key = from
      from = await transactions
        .run((tx) => handOverSlice(tx, conv_id, wanted, slice_from))
        .catch((error: unknown) => {
          // A bug would come again; what the store did not take is handed over later.
          if (isStoreUnavailable(error)) add(conv_id, wanted)
          throw error
        })
    }
  }

  return {
    start() {
      is_started = true
      if (!handlers.isEmpty()) names = 'all'
      run()
    },
    onHandler(name) {
      if (names !== 'all') names.add(name)
      run()
    },
    onProcessChanged(conv_id) {
      if (handlers.isEmpty()) return
      add(conv_id, 'all')
      run()
    },
    async stop() {
      is_stopped = true
      cancel?.()
      await running
    },
  }
}

/** Hands over tasks of a process from this key on; returns where the next slice begins, if any. */
function handOverSlice(tx: Transaction, conv_id: string, names: Names, from: Key): Key | undefined {
  const { to } = tasksAtNodes(conv_id)
  const has_tasks = tx.store.scan({ from, to, limit: 1 }).length > 0
  // A process without tasks is not even compiled.
  const process = has_tasks ? tx.process(conv_id) : undefined
  if (process === undefined || process.record.status === 'paused') return undefined
  let left = tx.engine.limits.slice_tasks_max
  for (const range of coveredNodes(tx, process, names)) {
    if (range.to <= from) continue
    const first = from > range.from ? from : range.from
    const keys = tx.store.scan({ from: first, to: range.to, limit: left })
    for (const { key } of keys) handOverTask(tx, process, taskOfKey(key))
    left -= keys.length
    if (left === 0) return after((keys.at(-1) as { key: Key }).key)
  }
  return undefined
}

/** The keys of tasks in nodes that one of the handlers covers, in order. */
function coveredNodes(tx: Transaction, { conv_id, graph }: Process, names: Names): KeyRange[] {
  const ranges: KeyRange[] = []
  for (const { id, title, logics } of graph.nodes.values()) {
    if (!logics.some(({ waits_for }) => waits_for === 'callback')) continue
    const name = tx.engine.handlerName(tx.view, conv_id, title)
    if (name === undefined || (names !== 'all' && !names.has(name))) continue
    ranges.push(tasksAtNode(conv_id, id))
  }
  return ranges.sort((one, other) => (one.from < other.from ? -1 : 1))
}

/** The timer of the node goes on, as for a task whose wait for the handler began at once. */
function handOverTask(tx: Transaction, process: Process, obj_id: string): void {
  const draft = loadTask(tx.store, obj_id)
  if (draft === undefined || draft === 'damaged') return
  const { task } = draft
  if (task.status !== 'delayed' || task.wait !== 'callback') return
  task.logic_at = waitLogic(process, task, 'callback')
  task.wait = 'work'
  task.visit++
  task.attempts = 0
  task.at_ms = Math.max(2, tx.now_ms)
  saveTask(tx, draft)
}
