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
  limitKey,
  limitNextKey,
  limitOfKey,
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
import { drainRunQueue } from '../tasks/run-queue.ts'
import { readableTask, saveTask } from '../tasks/task-store.ts'
import { failCommand, resume } from '../tasks/transitions.ts'
import type { Parts } from '../transactions/parts.ts'
import { allIn } from '../transactions/scans.ts'
import type { Slots, Transaction } from '../transactions/transaction.ts'
import { beginOp } from '../transactions/transaction-queue.ts'

const no_value = Buffer.alloc(0)
const wait: Command = { command: 'slot' }

export function newSlots({ store, transactions, limits, wake, onBug }: Parts): Slots {
  /** Processes whose limits an import has changed: each is in limit_next, or is done. */
  const pending = new Set<string>()

  async function step(): Promise<void> {
    const [conv_id = ''] = pending
    // Before the step: a concurrent import adds it again.
    pending.delete(conv_id)
    try {
      const { slice_tasks_max } = limits
      const is_done = await transactions.run((tx) => grantSlice(tx, conv_id, slice_tasks_max))
      if (!is_done) pending.add(conv_id)
    } catch (error) {
      // A bug would repeat; what the store refused is tried again.
      if (!isStoreUnavailable(error)) return onBug(error)
      pending.add(conv_id)
      throw error
    }
  }

  return {
    take,
    release,
    work: { due_ms: () => (pending.size > 0 ? 0 : Number.POSITIVE_INFINITY), step },
    async read() {
      await store.view((view) => {
        for (const { key } of allIn(view, keysOfType('limit_next'))) pending.add(processOfKey(key))
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
    const is_free = numbers.waiting === 0 && numbers.held < limit.at_once
    if (is_free) numbers.held++
    else numbers.waiting++
    const n = is_free ? 0 : ++numbers.last
    task.has_slots = true
    tx.store.put(limitKey(place), encodeNumbers(numbers))
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
    const numbers = decodeNumbers(tx.store.get(limitKey(place)))
    tx.store.del(key)
    tx.store.del(slotKey(place, own.n, obj_id))
    if (own.n > 0) numbers.waiting--
    else {
      numbers.held--
      grant(tx, place, numbers, 1)
    }
    write(tx, place, numbers)
  }
}

/** A task has slots of one node; a definition has at most this many logics there. */
const task_slots_max = 2_048

/** Gives up to `count` free slots to the first in line. The caller writes the numbers. */
function grant(tx: Transaction, place: LimitPlace, numbers: LimitNumbers, count: number): number {
  const at_once = atOnce(tx, place)
  let granted = 0
  while (granted < count && numbers.waiting > 0 && numbers.held < at_once) {
    // From the place of the last grant on: a scan would pass all keys deleted before it.
    const [first] = tx.store.scan({ ...slotsFrom(place, numbers.first), limit: 1 })
    if (first === undefined) throw new Error(`limit ${place.name}: its line is shorter than said`)
    const { n, obj_id } = slotOfKey(first.key)
    const own_key = taskSlotKey(obj_id, place.node, place.name)
    tx.store.del(first.key)
    numbers.first = n + 1
    numbers.waiting--
    const draft = readableTask(tx.view, obj_id)
    if (draft === undefined) {
      // A damaged task leaves the line, so that it does not hold up the others.
      tx.store.del(own_key)
      continue
    }
    numbers.held++
    tx.store.put(slotKey(place, 0, obj_id), no_value)
    tx.store.put(own_key, encodeTaskSlot({ value: place.value, n: 0 }))
    resume(tx, draft.task, draft.task.logic_at, draft.task.moves)
    saveTask(tx, draft)
    granted++
  }
  return granted
}

/** By the present definition; one that has dropped the limit lets everybody pass. */
function atOnce(tx: Transaction, { conv, node, name }: LimitPlace): number {
  const limits = tx.process(conv)?.graph.nodes.get(node)?.limits
  return limits?.find((limit) => limit.name === name)?.at_once ?? Number.POSITIVE_INFINITY
}

function write(tx: Transaction, place: LimitPlace, numbers: LimitNumbers): void {
  if (numbers.held === 0 && numbers.waiting === 0) tx.store.del(limitKey(place))
  else tx.store.put(limitKey(place), encodeNumbers(numbers))
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
    left -= grant(tx, place, numbers, left)
    write(tx, place, numbers)
    if (left > 0) continue
    continue_at = key
    break
  }
  if (continue_at === undefined) tx.store.del(next_key)
  else tx.store.put(next_key, Buffer.from(continue_at, 'latin1'))
  drainRunQueue(tx)
  return continue_at === undefined
}
