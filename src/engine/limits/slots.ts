/**
 * The slots of limits: how many tasks at once may be past a logic of a node, for each value of a
 * key. README.md of this folder has the keys and the argument.
 *
 * Invariant: at the end of a transaction no value with a line has a free slot, unless limit_next
 * lists its process. Whoever frees a slot gives it on in the same transaction, so a crash between
 * the two is impossible. Its code is loaded where a task first comes to a limit.
 */
import {
  after,
  type Key,
  keysOfType,
  type LimitPlace,
  limitDueOfKey,
  limitKey,
  limitNextKey,
  limitOfKey,
  limitsDueUpTo,
  limitsOf,
  processOfKey,
  slotKey,
  slotOfKey,
  slotsFrom,
  taskSlotKey,
  taskSlotOfKey,
  taskSlotsOf,
} from '../../codec/keys.ts'
import {
  decodeNumbers,
  decodeTaskSlot,
  encodeNumbers,
  encodeTaskSlot,
  type LimitNumbers,
} from '../../codec/records.ts'
import { isStoreUnavailable } from '../../core/faults.ts'
import { limit_key_chars_max } from '../../process/definition-limits.ts'
import type { NodeLimit } from '../../process/graph.ts'
import type { Command, EvaluationContext, FailCommand } from '../../process/logic.ts'
import { expansionOf } from '../../process/templates/parser.ts'
import type { View } from '../../store/store.ts'
import { drainRunQueue } from '../tasks/run-queue.ts'
import { readableTask, saveTask } from '../tasks/task-store.ts'
import { failCommand, resume } from '../tasks/transitions.ts'
import type { Parts } from '../transactions/parts.ts'
import { allIn } from '../transactions/scans.ts'
import type { Slots, Transaction } from '../transactions/transaction.ts'
import { beginOp } from '../transactions/transaction-queue.ts'
import { arm, pay } from './rates.ts'

const no_value = Buffer.alloc(0)
const wait: Command = { command: 'slot' }

export function newSlots({ store, transactions, limits, wake, onBug }: Parts): Slots {
  const { slice_tasks_max } = limits
  /** Processes whose limits an import has changed: each is in limit_next, or is done. */
  const pending = new Set<string>()
  /** No limit is due before. */
  let next_due_ms = Number.POSITIVE_INFINITY

  async function step(): Promise<void> {
    const [conv_id] = pending
    const due_ms = next_due_ms
    // Before the step: a concurrent import or commit adds it again.
    if (conv_id !== undefined) pending.delete(conv_id)
    else next_due_ms = Number.POSITIVE_INFINITY
    try {
      if (conv_id === undefined) {
        onDue((await transactions.run((tx) => grantDue(tx, slice_tasks_max))) ?? next_due_ms)
      } else if (!(await transactions.run((tx) => grantSlice(tx, conv_id, slice_tasks_max)))) {
        pending.add(conv_id)
      }
    } catch (error) {
      // A bug would repeat; what the store refused is tried again.
      if (!isStoreUnavailable(error)) return onBug(error)
      if (conv_id === undefined) onDue(due_ms)
      else pending.add(conv_id)
      throw error
    }
  }

  function onDue(due_ms: number): void {
    next_due_ms = Math.min(next_due_ms, due_ms)
    wake()
  }

  return {
    take,
    release,
    onDue,
    work: { due_ms: () => (pending.size > 0 ? 0 : next_due_ms), step },
    async read() {
      await store.view((view) => {
        for (const { key } of allIn(view, keysOfType('limit_next'))) pending.add(processOfKey(key))
        next_due_ms = firstDue(view) ?? next_due_ms
      })
    },
    onProcessChanged(conv_id) {
      pending.add(conv_id)
      wake()
    },
  }
}

const take: Slots['take'] = (tx, task, node, logic_at, evaluation) => {
  for (const limit of node.limits ?? []) {
    if (limit.logic_at !== logic_at) continue
    const own_key = taskSlotKey(task.obj_id, node.id, limit.name)
    const own = tx.store.get(own_key)
    if (own !== undefined) {
      if (decodeTaskSlot(own).n === 0) continue
      return wait
    }
    const value = valueFor(limit, evaluation)
    if (typeof value !== 'string') return value
    const place = { conv: task.conv_id, node: node.id, name: limit.name, value }
    const numbers = decodeNumbers(tx.store.get(limitKey(place)))
    const is_free = numbers.waiting === 0 && takeFree(limit, numbers, tx.now_ms)
    if (!is_free) numbers.waiting++
    const n = is_free ? 0 : ++numbers.last
    task.has_slots = true
    write(tx, place, limit, numbers)
    tx.store.put(slotKey(place, n, task.obj_id), no_value)
    tx.store.put(own_key, encodeTaskSlot({ value, n }))
    if (!is_free) return wait
  }
  return undefined
}

function valueFor(limit: NodeLimit, evaluation: EvaluationContext): string | FailCommand {
  const expansion = expansionOf(evaluation)
  const text = limit.key.text(expansion)
  if (text !== undefined && text.length <= limit_key_chars_max && text.isWellFormed()) return text
  const found = text === undefined ? 'a template of it fails' : `it has ${text.length} characters`
  const description = `limit: key ${limit.name}: ${expansion.failure?.description ?? found}`
  return failCommand('limit', 'software', 'limit_wrong_key', description, limit.err_node_id)
}

const release: Slots['release'] = (tx, task) => {
  const { conv_id: conv, obj_id } = task
  task.has_slots = false
  for (const { key, value } of tx.store.scan({ ...taskSlotsOf(obj_id), limit: task_slots_max })) {
    const { node, name } = taskSlotOfKey(key)
    const own = decodeTaskSlot(value)
    const place = { conv, node, name, value: own.value }
    const limit = limitAt(tx, place)
    const numbers = decodeNumbers(tx.store.get(limitKey(place)))
    tx.store.del(key)
    tx.store.del(slotKey(place, own.n, obj_id))
    if (own.n > 0) numbers.waiting--
    else {
      numbers.held--
      grant(tx, place, limit, numbers, 1)
    }
    write(tx, place, limit, numbers)
  }
}

/** A task has slots of one node; a definition has at most this many logics there. */
const task_slots_max = 2_048

/** Gives up to `count` free slots to the first in line. The caller writes the numbers. */
function grant(
  tx: Transaction,
  place: LimitPlace,
  limit: NodeLimit | undefined,
  numbers: LimitNumbers,
  count: number,
): number {
  let granted = 0
  while (granted < count && numbers.waiting > 0) {
    // From the place of the last grant on: a scan would pass all keys deleted before it.
    const [first] = tx.store.scan({ ...slotsFrom(place, numbers.first), limit: 1 })
    if (first === undefined) throw new Error(`limit ${place.name}: its line is shorter than said`)
    const { n, obj_id } = slotOfKey(first.key)
    const own_key = taskSlotKey(obj_id, place.node, place.name)
    const draft = readableTask(tx.view, obj_id)
    if (draft !== undefined && !takeFree(limit, numbers, tx.now_ms)) return granted
    tx.store.del(first.key)
    numbers.first = n + 1
    numbers.waiting--
    if (draft === undefined) {
      // A damaged task leaves the line, so that it does not hold up the others.
      tx.store.del(own_key)
      continue
    }
    tx.store.put(slotKey(place, 0, obj_id), no_value)
    tx.store.put(own_key, encodeTaskSlot({ value: place.value, n: 0 }))
    resume(tx, draft.task, draft.task.logic_at, draft.task.moves)
    saveTask(tx, draft)
    granted++
  }
  return granted
}

/** By the present definition; one that has dropped the limit lets everybody pass. */
function limitAt(tx: Transaction, { conv, node, name }: LimitPlace): NodeLimit | undefined {
  return tx
    .process(conv)
    ?.graph.nodes.get(node)
    ?.limits?.find((limit) => limit.name === name)
}

/** Takes a slot if one is free. */
function takeFree(limit: NodeLimit | undefined, numbers: LimitNumbers, now_ms: number): boolean {
  if (limit?.rate !== undefined && !pay(limit.rate, numbers, now_ms)) return false
  if (limit !== undefined && numbers.held >= limit.at_once) return false
  numbers.held++
  return true
}

function write(
  tx: Transaction,
  place: LimitPlace,
  limit: NodeLimit | undefined,
  numbers: LimitNumbers,
): void {
  arm(tx, place, limit?.rate, numbers)
  const { held, waiting, due_ms } = numbers
  if (held === 0 && waiting === 0 && due_ms === 0) tx.store.del(limitKey(place))
  else tx.store.put(limitKey(place), encodeNumbers(numbers))
}

/** Grants what the rates of limits allow by now; the next due time. */
function grantDue(tx: Transaction, tasks_max: number): number | undefined {
  beginOp(tx)
  let left = tasks_max
  for (const { key } of tx.store.scan({ ...limitsDueUpTo(tx.now_ms), limit: tasks_max })) {
    const { ms, place } = limitDueOfKey(key)
    const limit = limitAt(tx, place)
    const numbers = decodeNumbers(tx.store.get(limitKey(place)))
    tx.store.del(key)
    // Without its limit the key would be due for ever; `check` names it.
    if (numbers.due_ms !== ms) continue
    numbers.due_ms = 0
    left -= grant(tx, place, limit, numbers, left)
    write(tx, place, limit, numbers)
    if (left <= 0) break
  }
  drainRunQueue(tx)
  return firstDue(tx.store)
}

function firstDue(view: View): number | undefined {
  const [first] = view.scan({ ...keysOfType('limit_due'), limit: 1 })
  return first === undefined ? undefined : limitDueOfKey(first.key).ms
}

/** Grants what a new definition of a process allows, piece by piece; true once all is granted. */
function grantSlice(tx: Transaction, conv_id: string, tasks_max: number): boolean {
  const next_key = limitNextKey(conv_id)
  const next = tx.store.get(next_key)
  if (next === undefined) return true
  const range = limitsOf(conv_id)
  const from: Key = next.length === 0 ? range.from : next.toString('latin1')
  const found = tx.store.scan({ from, to: range.to, limit: tasks_max })
  beginOp(tx)
  let left = tasks_max
  let continue_at = found.length < tasks_max ? undefined : after((found.at(-1) as { key: Key }).key)
  for (const { key, value } of found) {
    const numbers = decodeNumbers(value)
    if (numbers.waiting === 0) continue
    const place = limitOfKey(key)
    const limit = limitAt(tx, place)
    left -= grant(tx, place, limit, numbers, left)
    write(tx, place, limit, numbers)
    if (left > 0) continue
    continue_at = key
    break
  }
  if (continue_at === undefined) tx.store.del(next_key)
  else tx.store.put(next_key, Buffer.from(continue_at, 'latin1'))
  drainRunQueue(tx)
  return continue_at === undefined
}
