/**
 * The steps of a bulk job: reads the next tasks in durable state, in id order, and changes them in
 * a transaction. If the filter's own index (ref, due, failed) has at most 100,000 entries, the ids
 * are read from it and sorted at the start, so a few failed tasks among millions are found quickly.
 */
import { idBytes, idHex } from '../../codec/ids.ts'
import type { BulkRecord } from '../../codec/records.ts'
import { nextTurn } from '../../core/clock.ts'
import { fault, isStoreUnavailable } from '../../core/faults.ts'
import type { ModifyOp, OpResult } from '../../core/model.ts'
import type { BulkAction } from '../api/search-api.ts'
import { applyOps } from '../tasks/ops.ts'
import { cancelTask, moveTask, retryTask } from '../tasks/task-actions.ts'
import { loadTask } from '../tasks/task-store.ts'
import type { Parts } from '../transactions/parts.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { type CheckedWork, putJob, readJob } from './bulk-input.ts'
import { search } from './search.ts'
import { type Place, type Run, runsById, runsOf, type Source, sourceOf } from './search-order.ts'
import { isInScope } from './search-scope.ts'
import { isWanted } from './task-filter.ts'

/** Per transaction, which then takes a few milliseconds. */
const step_tasks = 64
const listed_max = 100_000
const listed_slice = 1_024

export interface Batch {
  readonly obj_ids: readonly string[]
  readonly damaged: readonly string[]
  readonly scanned: number
  readonly last_id: string
  readonly is_last: boolean
}

export async function newBulkSource(
  parts: Parts,
  checked: CheckedWork,
  { until_id }: BulkRecord,
): Promise<Source> {
  const end = idBytes(until_id)
  const ids = await listedIds(parts, checked)
  if (ids !== undefined) return listedSource(ids.filter((id) => id < end).sort())
  const until = (run: Run): Run => {
    const to = run.prefix + end
    return to < run.to ? { ...run, to } : run
  }
  const { filter, scope } = checked
  return sourceOf((view) => runsById(view, filter, scope).map(until), false)
}

/** Ids of the filter's index; undefined without one, or for too many. */
async function listedIds(
  { store }: Parts,
  { filter, scope }: CheckedWork,
): Promise<string[] | undefined> {
  if (filter.sorted_by === 'created') return undefined
  const source = sourceOf((view) => runsOf(view, filter, scope), false)
  const ids = new Set<string>()
  let last: Place | undefined
  for (;;) {
    const has_more = await store.view((view) => {
      const found = source.next(view, last, listed_slice)
      for (const { id } of found.entries) ids.add(id)
      last = found.entries.at(-1) ?? last
      return found.has_more
    })
    if (ids.size > listed_max) return undefined
    if (!has_more) return [...ids]
    await nextTurn()
  }
}

function listedSource(ids: readonly string[]): Source {
  return {
    next(_view, last, entries_max) {
      let from = 0
      if (last !== undefined) {
        for (let to = ids.length; from < to; ) {
          const middle = (from + to) >>> 1
          if ((ids[middle] as string) <= last.place) from = middle + 1
          else to = middle
        }
      }
      const found = ids.slice(from, from + entries_max)
      const entries = found.map((id) => ({ prefix: '', place: id, id }))
      return { entries, has_more: from + found.length < ids.length }
    },
  }
}

export async function batchOf(
  parts: Parts,
  { filter, scope }: CheckedWork,
  source: Source,
  { last_id, until_id }: BulkRecord,
): Promise<Batch> {
  const obj_ids: string[] = []
  const from = last_id === '' ? undefined : { prefix: '', place: idBytes(last_id) }
  const end = await search(parts, { filter, scope, source, from }, ({ task }) => {
    obj_ids.push(task.obj_id)
    return obj_ids.length < step_tasks
  })
  const { scanned, damaged, last } = end
  const is_last = last === undefined
  return { obj_ids, damaged, scanned, is_last, last_id: is_last ? until_id : idHex(last.place) }
}

/** What one step has done: the record after it, and the ids of the tasks it changed. */
export interface Step {
  readonly record: BulkRecord
  readonly changed_ids: readonly string[]
}

/** Changes a batch. A task on which the engine throws is refused; the others continue. */
export async function takeStep(
  { transactions, onBug }: Parts,
  id: string,
  checked: CheckedWork,
  record: BulkRecord,
  batch: Batch,
): Promise<Step> {
  const step = (part: Batch, since: BulkRecord, is_bad = false): Promise<Step> =>
    transactions.run((tx) => deal(tx, id, checked, since, part, is_bad))
  try {
    return await step(batch, record)
  } catch (error) {
    if (isStoreUnavailable(error)) throw error
    onBug(error)
  }
  let state: Step = { record, changed_ids: [] }
  for (const [at, obj_id] of batch.obj_ids.entries()) {
    const is_end = at === batch.obj_ids.length - 1
    const scanned = at === 0 ? batch.scanned : 0
    const last_id = is_end ? batch.last_id : obj_id
    const is_last = is_end && batch.is_last
    const one = { obj_ids: [obj_id], damaged: batch.damaged, scanned, last_id, is_last }
    const { record: since, changed_ids } = state
    const { record: next, changed_ids: more } = await step(one, since).catch((error: unknown) => {
      if (isStoreUnavailable(error)) throw error
      return step(one, since, true)
    })
    state = { record: next, changed_ids: [...changed_ids, ...more] }
  }
  return state
}

const actions: Readonly<
  Record<BulkAction, (tx: Transaction, op: ModifyOp, work: CheckedWork) => OpResult>
> = {
  cancel: (tx, op) => cancelTask(tx, op),
  retry: (tx, op, { to_node_id }) => retryTask(tx, op, to_node_id),
  move: (tx, op, { to_node_id = '' }) => moveTask(tx, op, to_node_id),
  modify: (tx, op) => applyOps(tx, [op], {})[0] as OpResult,
}

/** One transaction; `is_bad` refuses the tasks with `internal_error`. */
function deal(
  tx: Transaction,
  id: string,
  checked: CheckedWork,
  since: BulkRecord,
  batch: Batch,
  is_bad: boolean,
): Step {
  // The record was removed, or another call has continued.
  if (readJob(tx.view, id)?.last_id !== since.last_id) {
    throw fault('not_possible', `bulk job ${id} was changed meanwhile`)
  }
  const { moves_per_transaction_max } = tx.engine.limits
  const refused = { ...since.refused }
  const refuse = (code: string): void => {
    refused[code] = (refused[code] ?? 0) + 1
  }
  let { matched, changed, skipped } = since
  const changed_ids: string[] = []
  let { last_id, is_last } = batch
  for (const [at, obj_id] of batch.obj_ids.entries()) {
    if (tx.moves_made >= moves_per_transaction_max) {
      last_id = batch.obj_ids[at - 1] ?? since.last_id
      is_last = false
      break
    }
    matched++
    const result = is_bad ? 'internal_error' : act(tx, checked, obj_id)
    if (result === 'ok') {
      changed++
      changed_ids.push(obj_id)
    } else if (result === 'skipped') skipped++
    else refuse(result)
  }
  for (const damaged of batch.damaged) {
    if (damaged > since.last_id && damaged <= last_id) refuse('task_damaged')
  }
  const scanned = since.scanned + batch.scanned
  const progress = { scanned, matched, changed, skipped, refused }
  const record = { ...since, ...progress, last_id, is_done: is_last, changed_ms: tx.now_ms }
  putJob(tx, id, record)
  return { record, changed_ids }
}

function act(tx: Transaction, checked: CheckedWork, obj_id: string): string {
  const { filter, scope, work, data } = checked
  const draft = loadTask(tx.view, obj_id)
  if (draft === 'damaged') return 'task_damaged'
  if (draft === undefined || !isInScope(scope, draft.task) || !isWanted(filter, draft.task)) {
    return 'skipped'
  }
  const { conv_id } = draft.task
  const target = { conv_id, ref: undefined, obj_id, node_id: undefined }
  const op: ModifyOp = { type: 'modify', id_text: undefined, ...target, data, is_sync: false }
  return actions[work.action](tx, op, checked).proc
}
