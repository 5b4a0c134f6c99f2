/**
 * Records task events in the history (codec/task-history): one entry each, with the node entered,
 * else the current one. Moves by `go` become text only when the task is saved, so a long chain
 * builds no dropped entries.
 */
import { byText, dropEntries, entryText, keepNodes, tagText } from '../../codec/task-history.ts'
import { placeOf, type TaskRecord } from '../../codec/task-record.ts'
import type { HistoryWhy } from '../../core/model.ts'
import type { Transaction } from '../transactions/transaction.ts'

export function recordGo({ passed }: Transaction, task: TaskRecord): void {
  const { node_ids } = passed
  if (node_ids.length === 0) return
  if (passed.task !== task) {
    passed.task = task
    passed.next = 0
    passed.count = 0
  }
  node_ids[passed.next] = task.node_id
  passed.next = passed.next + 1 < node_ids.length ? passed.next + 1 : 0
  passed.count++
}

/** An event that leaves the task in its node. `by`: the user of the op. */
export function recordEvent(
  tx: Transaction,
  task: TaskRecord,
  why: HistoryWhy,
  by?: string,
  tag?: string,
): void {
  record(tx, task, why, task.history_count === 0 ? task.node_id : undefined, by, tag)
}

/** An event that has moved the task. */
export function recordEntry(
  tx: Transaction,
  task: TaskRecord,
  why: HistoryWhy,
  by?: string,
  tag?: string,
): void {
  record(tx, task, why, task.node_id, by, tag)
}

function record(
  tx: Transaction,
  task: TaskRecord,
  why: HistoryWhy,
  node_id: string | undefined,
  by: string | undefined,
  tag: string | undefined,
): void {
  if (tx.passed.node_ids.length === 0) return
  writePassed(tx, task)
  append(tx, task, why, node_id)
  if (by !== undefined) task.history += byText(by, task.user_id)
  if (tag !== undefined) task.history += tagText(tag)
}

/** Completes the text and drops the oldest entries, before the task is saved. */
export function completeHistory(tx: Transaction, task: TaskRecord): void {
  writePassed(tx, task)
  const history_max = tx.passed.node_ids.length
  if (task.history_count > history_max) {
    const dropped = task.history_count - history_max
    task.history = history_max === 0 ? '' : dropEntries(task.history, dropped)
    task.history_count = history_max
  }
  if (task.nodes.length <= history_max + unused_nodes_max) return
  const kept: string[] = []
  task.history = keepNodes(task.history, task.nodes, kept)
  task.nodes = kept
}

/** Nodes in the list of a record that its history no longer names, about. */
const unused_nodes_max = 16

function writePassed(tx: Transaction, task: TaskRecord): void {
  const { passed } = tx
  if (passed.task !== task || passed.count === 0) return
  const { node_ids, count, next } = passed
  if (count >= node_ids.length) {
    task.history = ''
    task.history_count = 0
    for (let n = next; n < node_ids.length; n++) append(tx, task, 'go', node_ids[n])
  }
  for (let n = 0; n < next; n++) append(tx, task, 'go', node_ids[n])
  passed.next = 0
  passed.count = 0
}

function append(
  tx: Transaction,
  task: TaskRecord,
  why: HistoryWhy,
  node_id: string | undefined,
): void {
  // Like the change time, history times never go back.
  const at_ms = Math.max(tx.now_ms, task.change_ms)
  const is_new_time = task.history_count === 0 || task.history_ms !== at_ms
  const since_ms = is_new_time ? Math.floor(at_ms - task.create_ms) : -1
  const place = node_id === undefined ? undefined : placeOf(task.nodes, node_id)
  task.history += entryText(why, since_ms, place)
  task.history_ms = at_ms
  task.history_count++
}
