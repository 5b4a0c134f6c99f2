/**
 * Administration of tasks: list, retry, cancel. Retry and cancel return results as ops do, because
 * they change tasks under the same rules.
 */
import {
  after,
  atNodeKey,
  endedKey,
  endedOf,
  type KeyRange,
  taskOfKey,
  tasksAtNode,
  tasksAtNodes,
} from '../codec/keys.ts'
import type { TaskRecord } from '../codec/task-record.ts'
import { nextTurn } from '../core/clock.ts'
import type { Caller, ModifyOp, OpResult, ShowOp, Task } from '../core/model.ts'
import type { Store } from '../store/store.ts'
import { advance, enterNode } from './advance.ts'
import type { TaskFilter } from './api.ts'
import type { Catalog } from './catalog.ts'
import { recordEvent } from './history.ts'
import { migrateTask } from './migrate.ts'
import { accepted, findLive, findProcess, refused } from './ops.ts'
import { requireProcess } from './processes.ts'
import { beginOp, saveAndDrain } from './run-queue.ts'
import { paused } from './task-rules.ts'
import { loadTask } from './task-store.ts'
import { viewTask } from './task-view.ts'
import type { Transaction } from './transaction.ts'

const default_tasks_max = 100
const page_keys = 256

/**
 * Lists live tasks by node and age, or ended ones, oldest first. Reads in pages and yields between
 * them, so a long list does not block ops. Rejects with `conv_not_found`.
 */
export async function listTasks(
  store: Store,
  catalog: Catalog,
  conv_id: string,
  filter: TaskFilter,
): Promise<Task[]> {
  const { limit = default_tasks_max } = filter
  let { from, to } = rangeOf(conv_id, filter)
  const found: Task[] = []
  for (;;) {
    const last = await store.view((view) => {
      requireProcess(view, catalog, conv_id)
      const keys = view.scan({ from, to, limit: page_keys })
      for (const { key } of keys) {
        if (found.length >= limit) return undefined
        const draft = loadTask(view, taskOfKey(key))
        if (draft !== undefined && draft !== 'damaged' && isWanted(draft.task, filter)) {
          found.push(viewTask(draft.task))
        }
      }
      return keys[page_keys - 1]?.key
    })
    if (last === undefined) return found
    from = after(last)
    await nextTurn()
  }
}

function isWanted(task: TaskRecord, { node_id, status }: TaskFilter): boolean {
  return (
    (status === undefined || task.status === status) &&
    (node_id === undefined || task.node_id === node_id)
  )
}

function rangeOf(conv_id: string, { node_id, status, after: last }: TaskFilter): KeyRange {
  if (status === 'processed' || status === 'canceled') {
    const { from, to } = endedOf(conv_id)
    if (last === undefined) return { from, to }
    return { from: after(endedKey(conv_id, last.change_time_ms, last.obj_id)), to }
  }
  const { from, to } = node_id === undefined ? tasksAtNodes(conv_id) : tasksAtNode(conv_id, node_id)
  if (last === undefined) return { from, to }
  return { from: after(atNodeKey(conv_id, last.node_id, last.obj_id)), to }
}

/** Runs a failed task again, from its node or from `node_id`. */
export function retryTask(
  tx: Transaction,
  op: ModifyOp | ShowOp,
  node_id: string | undefined,
  caller: Caller = {},
): OpResult {
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  beginOp(tx)
  if (process.record.status === 'paused') return refused(op, paused)
  const draft = findLive(tx.store, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  if (task.status !== 'failed') {
    return refused(op, { code: 'error', description: 'the task has not failed', task })
  }
  migrateTask(tx, process, draft)
  if (node_id !== undefined && !process.graph.nodes.has(node_id)) {
    const description = `Value is not valid. node_id: "${node_id}" is no node`
    return refused(op, { code: 'error', description, task })
  }
  task.moves = 0
  if (node_id === undefined) {
    recordEvent(tx, task, 'retry')
    advance(tx, process, draft, 0)
  } else enterNode(tx, process, draft, node_id, 'retry')
  saveAndDrain(tx, draft)
  return accepted(op, task)
}

/** Ends a live task as `canceled`. */
export function cancelTask(tx: Transaction, op: ModifyOp | ShowOp, caller: Caller = {}): OpResult {
  const process = findProcess(tx, op, caller)
  if ('code' in process) return refused(op, process)
  const draft = findLive(tx.store, op)
  if ('code' in draft) return refused(op, draft)
  const { task } = draft
  recordEvent(tx, task, 'cancel')
  task.status = 'canceled'
  task.details = undefined
  task.wait = 'nothing'
  saveAndDrain(tx, draft)
  return accepted(op, task)
}
