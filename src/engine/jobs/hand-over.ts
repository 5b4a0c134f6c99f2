/**
 * Hands tasks that wait for a callback to their node's handler, if they waited before the handler
 * was registered, an import changed the title, or an alias was set. Later tasks wait for the
 * handler at once (advance.ts). Each slice is a transaction and reads only nodes that a handler
 * covers. After a crash the rest is found at the next registration; a paused process is read when
 * resumed.
 */
import {
  after,
  type Key,
  type KeyRange,
  processOfKey,
  taskOfKey,
  tasksAtNode,
  tasksAtNodes,
} from '../../codec/keys.ts'
import { isStoreUnavailable } from '../../core/faults.ts'
import { readableTask, saveTask } from '../tasks/task-store.ts'
import { waitLogic } from '../tasks/waits.ts'
import type { Work } from '../transactions/background.ts'
import type { Process } from '../transactions/catalog.ts'
import type { Parts } from '../transactions/parts.ts'
import { eachEntry } from '../transactions/scans.ts'
import type { Transaction } from '../transactions/transaction.ts'
import type { Handlers } from './handlers.ts'

export interface HandOver {
  readonly work: Work
  /** After a handler was registered. */
  onHandler(name: string): void
  /** After a process was imported or resumed, or got an alias. */
  onProcessChanged(conv_id: string): void
}

type Names = Set<string> | 'all'

interface Pending {
  readonly names: Names
  readonly from: Key
}

const slice_processes = 256

export function newHandOver(
  { store, transactions, wake, onBug }: Parts,
  handlers: Pick<Handlers, 'isEmpty'>,
): HandOver {
  /** New handlers whose tasks are not looked up yet. */
  let names: Names = handlers.isEmpty() ? new Set() : 'all'
  const pending = new Map<string, Pending>()

  const hasNames = (): boolean => names === 'all' || names.size > 0

  /** Additions to a pending process restart it. */
  function add(conv_id: string, added: Names, slice_from?: Key): void {
    const known = pending.get(conv_id)
    const start = tasksAtNodes(conv_id).from
    if (known === undefined) pending.set(conv_id, { names: added, from: slice_from ?? start })
    else pending.set(conv_id, { names: union(known.names, added), from: start })
  }

  async function lookEverywhere(): Promise<void> {
    const found = names
    names = new Set()
    await eachEntry(store, 'process', slice_processes, (_view, { key }) =>
      add(processOfKey(key), found),
    )
  }

  async function handOver(conv_id: string, { names, from }: Pending): Promise<void> {
    pending.delete(conv_id)
    try {
      const next = await transactions.run((tx) => handOverSlice(tx, conv_id, names, from))
      if (next !== undefined) add(conv_id, names, next)
    } catch (error) {
      // A bug would repeat; what the store refused is retried later.
      if (!isStoreUnavailable(error)) return onBug(error)
      add(conv_id, names, from)
      throw error
    }
  }

  return {
    work: {
      due_ms: () => (hasNames() || pending.size > 0 ? 0 : Number.POSITIVE_INFINITY),
      async step() {
        const [first] = pending
        if (hasNames()) await lookEverywhere()
        else if (first !== undefined) await handOver(...first)
      },
    },
    onHandler(name) {
      if (names !== 'all') names.add(name)
      wake()
    },
    onProcessChanged(conv_id) {
      if (handlers.isEmpty()) return
      add(conv_id, 'all')
      wake()
    },
  }
}

function union(one: Names, other: Names): Names {
  return one === 'all' || other === 'all' ? 'all' : new Set([...one, ...other])
}

/** Hands over tasks from this key on; returns where the next slice begins, if any. */
function handOverSlice(tx: Transaction, conv_id: string, names: Names, from: Key): Key | undefined {
  const { to } = tasksAtNodes(conv_id)
  const has_tasks = tx.store.scan({ from, to, limit: 1 }).length > 0
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

/** Keys of tasks in nodes that one of the handlers covers, in order. */
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

/** The timer of the node is kept. */
function handOverTask(tx: Transaction, process: Process, obj_id: string): void {
  const draft = readableTask(tx.store, obj_id)
  if (draft === undefined) return
  const { task } = draft
  if (task.status !== 'delayed' || task.wait !== 'callback') return
  task.logic_at = waitLogic(process, task, 'callback')
  task.wait = 'work'
  task.visit++
  task.attempts = 0
  task.at_ms = Math.max(2, tx.now_ms)
  saveTask(tx, draft)
}
