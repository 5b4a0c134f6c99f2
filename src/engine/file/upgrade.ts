/**
 * Brings a file of an earlier format to the present one, when it is opened and before anything else
 * happens to it.
 *
 * In format 2 task records had versions 1 to 3 alone. They stay as they are until they are next
 * written, as version 4 (codec/task-bytes), so the upgrade changes nothing but the format.
 * Format 1 counted only the live tasks of a node, listed no failed ones, and freed the ref of every
 * ended task. The work is one pass over the counters and one over the tasks, in slices: each is a
 * transaction that also stores how far it came, so after a crash the next opening goes on there.
 * The format is set first, where earlier programs look for it, so that none opens a file half way.
 */
import {
  after,
  failedKey,
  idValue,
  type Key,
  keysOfType,
  metaKey,
  nodeCountKey,
  refKey,
  taskKey,
  taskOfKey,
} from '../../codec/keys.ts'
import { decodeCounts, decodeSum, encodeCounts, noTasks } from '../../codec/records.ts'
import { decodeTask, encodeTask } from '../../codec/task-bytes.ts'
import { is_live, type TaskRecord } from '../../codec/task-record.ts'
import { type Emit, emitNothing } from '../../core/events.ts'
import type { Status } from '../../core/model.ts'
import type { Store, Tx } from '../../store/store.ts'
import { loadTask, taskIdOfRef } from '../tasks/task-store.ts'

/** Files of a higher format were written by a newer program. */
export const format = 3
export const format_key = metaKey('format')
/** Whether reads understand it: the upgrade of format 2 changes nothing else. */
export const isReadAsItIs = (found: number): boolean => found === 2 || found === format
/** While an upgrade is under way: the key with which its next slice begins. */
const upgrade_key = metaKey('upgrade')

const slice_tasks_max = 2_000
const slice_bytes_max = 4 * 1024 * 1024
const page_keys = 50
/** Of an upgrade with more slices the beginning is told too. */
const told_slices = 10
const no_value = Buffer.alloc(0)

export interface UpgradeOptions {
  /** Tells of an upgrade that takes more than a moment. */
  readonly emit?: Emit
  readonly slice_tasks?: number
}

/**
 * What begins the upgrade of a file of an earlier format; one that was broken off goes on where
 * it stopped. It belongs into the data file itself before anything is in its commit log: an earlier
 * program reads the format before it recovers a commit log.
 */
export function beginUpgrade(changes: Pick<Tx, 'put'>, found: Pick<Tx, 'get'>): void {
  const found_format = found.get(format_key)?.toString('utf8')
  changes.put(format_key, Buffer.from(String(format)))
  if (found.get(upgrade_key) !== undefined) return
  // Past the tasks no slice has work left.
  putCursor(changes, found_format === '1' ? keysOfType('node_count').from : keysOfType('task').to)
}

/** Goes on with an upgrade that has begun. Rejects as `Store.update` does. */
export async function upgradeFile(
  store: Store,
  { emit = emitNothing, slice_tasks = slice_tasks_max }: UpgradeOptions = {},
): Promise<void> {
  const has_begun = await store.view((view) => view.get(upgrade_key) !== undefined)
  if (!has_begun) return
  const began_ms = performance.now()
  let tasks = 0
  for (let slices = 0; ; slices++) {
    const slice = await store.update((tx) => upgradeSlice(tx, slice_tasks))
    tasks += slice.tasks
    if (slice.is_last) break
    if (slices === told_slices) emit('upgrade_begun', {})
  }
  emit('upgraded', { tasks, ms: Math.round(performance.now() - began_ms) })
}

function putCursor(changes: Pick<Tx, 'put'>, key: Key): void {
  changes.put(upgrade_key, Buffer.from(key, 'latin1'))
}

function upgradeSlice(
  tx: Tx,
  slice_tasks: number,
): { readonly tasks: number; readonly is_last: boolean } {
  const cursor = tx.get(upgrade_key)?.toString('latin1') ?? ''
  const counters = keysOfType('node_count')
  if (cursor >= counters.from) {
    const read = tx.scan({ from: cursor, to: counters.to, limit: slice_tasks })
    // All tasks of the node, until they are read.
    for (const { key, value } of read) {
      tx.put(key, encodeCounts({ ...noTasks(), processing: decodeSum(value) }))
    }
    const last = read[slice_tasks - 1]
    putCursor(tx, last === undefined ? keysOfType('task').from : after(last.key))
    return { tasks: 0, is_last: false }
  }
  const nodes = newCountChanges()
  const { to } = keysOfType('task')
  let from = cursor
  let tasks = 0
  let bytes = 0
  let is_last = false
  while (!is_last && tasks < slice_tasks && bytes < slice_bytes_max) {
    const limit = Math.min(page_keys, slice_tasks - tasks)
    const page = tx.scan({ from, to, limit })
    for (const { key, value } of page) {
      const task = decodeTask(taskOfKey(key), value)
      // A damaged one is counted as before, and `check` names it.
      if (task !== 'damaged') upgradeTask(tx, task, nodes.add)
      from = after(key)
      bytes += value.length
    }
    tasks += page.length
    is_last = page.length < limit
  }
  nodes.write(tx)
  if (is_last) tx.del(upgrade_key)
  else putCursor(tx, from)
  return { tasks, is_last }
}

type Count = (task: TaskRecord, status: Status, by: 1 | -1) => void

function upgradeTask(tx: Tx, task: TaskRecord, count: Count): void {
  const { conv_id, obj_id, status, change_ms, ref } = task
  if (is_live[status]) count(task, 'processing', -1)
  count(task, status, 1)
  if (status === 'failed') tx.put(failedKey(conv_id, change_ms, obj_id), no_value)
  if (is_live[status] || ref === undefined) return
  const holder_id = taskIdOfRef(tx, conv_id, ref.text)
  const holder = holder_id === undefined ? undefined : loadTask(tx, holder_id)
  if (holder === 'damaged') return
  if (holder === undefined || !is_live[holder.task.status]) {
    const is_newest = holder === undefined || holder.task.change_ms <= change_ms
    if (is_newest) tx.put(refKey(conv_id, ref.text), idValue(obj_id))
    return
  }
  const { former_id } = holder.task
  const former = former_id === undefined ? undefined : loadTask(tx, former_id)
  if (former === 'damaged' || (former !== undefined && former.task.change_ms > change_ms)) return
  tx.put(taskKey(holder.task.obj_id), encodeTask({ ...holder.task, former_id: obj_id }))
}

/** The changes of the counters in one slice. */
function newCountChanges(): { add: Count; write(tx: Tx): void } {
  const nodes = new Map<Key, ReturnType<typeof noTasks>>()
  return {
    add({ conv_id, node_id }, status, by) {
      const key = nodeCountKey(conv_id, node_id)
      const changes = nodes.get(key) ?? noTasks()
      changes[status] += by
      nodes.set(key, changes)
    },
    write(tx) {
      for (const [key, changes] of nodes) {
        const counts = decodeCounts(tx.get(key))
        for (const status of Object.keys(changes) as Status[]) counts[status] += changes[status]
        const value = encodeCounts(counts)
        if (value.length === 0) tx.del(key)
        else tx.put(key, value)
      }
    },
  }
}
