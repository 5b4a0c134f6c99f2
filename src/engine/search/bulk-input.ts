/**
 * The input and durable state (key type bulk) of bulk jobs: checks the filter, narrowed to tasks
 * that the action takes, the data and the node. The last 100 jobs are kept, finished ones for a
 * day.
 */
import { canonicalText } from '../../codec/doc-text.ts'
import { bytesOf, docOfText, parsePlain, parseStored } from '../../codec/json.ts'
import { bulkKey, bulkOfKey, keysOfType } from '../../codec/keys.ts'
import { isName } from '../../codec/op.ts'
import { docOfPlain, plainBounds } from '../../codec/plain-value.ts'
import { type BulkRecord, decodeRecord, encodeRecord } from '../../codec/records.ts'
import { is_live } from '../../codec/task-record.ts'
import { defined } from '../../core/defined.ts'
import { fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { Doc, JsonObject } from '../../core/model.ts'
import { quoted } from '../../process/report.ts'
import type { View } from '../../store/store.ts'
import type { BulkAction, BulkInput, BulkJob, TaskFilter } from '../api/search-api.ts'
import type { Parts } from '../transactions/parts.ts'
import { allIn } from '../transactions/scans.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { nodesNamed, type Scope, scopeOf, unknownNode } from './search-scope.ts'
import { badFilter, type CheckedFilter, checkFilter } from './task-filter.ts'

export interface CheckedWork {
  readonly work: BulkWork
  readonly filter: CheckedFilter
  readonly scope: Scope
  readonly data: Doc
  readonly to_node_id: string | undefined
}

const actions: readonly BulkAction[] = ['cancel', 'retry', 'modify', 'move']
const id_chars_max = 64
const no_data = docOfText('{}')

/** Throws `bad_filter`, or a RangeError or TypeError for other malformed members. */
export function workOf(input: BulkInput, limits: Limits): BulkWork {
  const { action, filter, data, to_node_id } = input
  if (!actions.includes(action)) throw new TypeError(`action is one of ${actions.join(', ')}`)
  if (input.id !== undefined && !(typeof input.id === 'string' && isName(input.id, id_chars_max))) {
    throw new TypeError(`id is a text of 1 to ${id_chars_max} characters`)
  }
  if ((action === 'modify') !== (data !== undefined)) {
    throw new TypeError(
      action === 'modify' ? 'data is missing' : `data does not belong to ${action}`,
    )
  }
  if (to_node_id === undefined ? action === 'move' : !['move', 'retry'].includes(action)) {
    const is_missing = to_node_id === undefined
    throw new TypeError(`to_node_id ${is_missing ? 'is missing' : `does not belong to ${action}`}`)
  }
  const doc = data === undefined ? undefined : dataOf(data, limits)
  return {
    action,
    filter_text: narrowed(action, filter, limits).text,
    ...defined({ data_text: doc?.text, to_node_id }),
  }
}

function dataOf(data: unknown, limits: Limits): Doc {
  const is_object = typeof data === 'object' && data !== null && !Array.isArray(data)
  const doc = is_object ? docOfPlain(data, plainBounds(limits)) : 'data is no object'
  if (typeof doc === 'string') throw new TypeError(doc)
  const bytes = bytesOf(doc.text)
  if (bytes <= limits.task_bytes_max) return doc
  throw new TypeError(`data: ${bytes} bytes, at most ${limits.task_bytes_max} in a task`)
}

/** A retry takes failed tasks; no action takes ended ones. */
function narrowed(action: BulkAction, filter: TaskFilter, limits: Limits): CheckedFilter {
  const { status } = filter ?? {}
  const is_retry = action === 'retry'
  const means_failed = status === undefined || status === 'live'
  const checked = checkFilter(
    is_retry && means_failed ? { ...filter, status: 'failed' } : filter,
    limits,
  )
  if (checked.statuses.some((one) => !is_live[one])) {
    throw badFilter(`${action} takes live tasks: leave out ended ones`)
  }
  if (is_retry && checked.statuses.some((one) => one !== 'failed')) {
    throw badFilter(`retry takes failed tasks, not ${checked.statuses.join(', ')}`)
  }
  return checked
}

/** Resolves names. Rejects with `bad_filter`, `conv_not_found` or `node_not_found`. */
export async function checkWork(parts: Parts, work: BulkWork): Promise<CheckedWork> {
  const { store, catalog, limits } = parts
  const filter = checkFilter(parseStored(work.filter_text) as JsonObject, limits)
  const scope = await scopeOf(store, catalog, filter)
  const data = work.data_text === undefined ? no_data : docOfText(work.data_text)
  const to_node_id =
    work.to_node_id === undefined ? undefined : await targetNode(parts, filter, work.to_node_id)
  return { work, filter, scope, data, to_node_id }
}

async function targetNode(
  { store, catalog }: Parts,
  { conv_id }: CheckedFilter,
  node: string,
): Promise<string> {
  if (conv_id === undefined) throw badFilter('conv_id is missing: a node belongs to one process')
  return store.view((view) => {
    const process = catalog.find(view, conv_id)
    const [found, other] = process === undefined ? [] : nodesNamed(view, process, node)
    if (process === undefined || found === undefined || !process.graph.nodes.has(found)) {
      throw unknownNode(node, process === undefined ? [] : [process])
    }
    if (other === undefined) return found
    throw fault(
      'node_not_found',
      `${quoted(node)} is the title of ${found}, ${other}: name one by its id`,
    )
  })
}

const jobs_max = 100
const finished_kept_ms = 86_400_000

export type BulkWork = Pick<BulkRecord, 'action' | 'filter_text' | 'data_text' | 'to_node_id'>

/** The job of this id, or a new one. Throws `bulk_id_taken`. */
export function beginJob(tx: Transaction, id: string, work: BulkWork): BulkRecord {
  const found = readJob(tx.view, id)
  if (found !== undefined) {
    if (identityOf(found) === identityOf(work)) return found
    throw fault('bulk_id_taken', `bulk job ${id} is another: ${found.action} ${found.filter_text}`)
  }
  makeRoom(tx)
  const record: BulkRecord = {
    ...work,
    until_id: tx.newTaskId(),
    last_id: '',
    started_ms: tx.now_ms,
    changed_ms: tx.now_ms,
    is_done: false,
    ...{ scanned: 0, matched: 0, changed: 0, skipped: 0, refused: {} },
  }
  putJob(tx, id, record)
  return record
}

function identityOf({ action, filter_text, data_text = '{}', to_node_id = '' }: BulkWork): string {
  const texts = [filter_text, data_text].map((text) => canonicalText(parseStored(text)))
  return JSON.stringify([action, ...texts, to_node_id])
}

/** Removes finished jobs after a day, and the least recently used of a hundred. */
function makeRoom(tx: Transaction): void {
  const jobs = readJobs(tx.view).sort(([, a], [, b]) => {
    return Number(b.is_done) - Number(a.is_done) || a.changed_ms - b.changed_ms
  })
  let left = jobs.length
  for (const [id, { is_done, changed_ms }] of jobs) {
    const is_old = is_done && changed_ms < tx.now_ms - finished_kept_ms
    if (!is_old && left < jobs_max) continue
    tx.store.del(bulkKey(id))
    left--
  }
}

export function readJob(view: View, id: string): BulkRecord | undefined {
  const bytes = view.get(bulkKey(id))
  return bytes === undefined ? undefined : decodeRecord<BulkRecord>(bytes)
}

export function putJob(tx: Transaction, id: string, record: BulkRecord): void {
  tx.store.put(bulkKey(id), encodeRecord(record))
}

function readJobs(view: View): [id: string, record: BulkRecord][] {
  return allIn(view, keysOfType('bulk')).map(({ key, value }) => {
    return [bulkOfKey(key), decodeRecord<BulkRecord>(value)]
  })
}

export function listJobs(view: View): BulkJob[] {
  return readJobs(view)
    .sort(([, a], [, b]) => b.started_ms - a.started_ms)
    .map(([id, record]) => jobOf(id, record))
}

export function jobOf(id: string, record: BulkRecord): BulkJob {
  const { action, is_done, started_ms, scanned, matched, changed, skipped, refused } = record
  const filter = parsePlain(record.filter_text) as TaskFilter
  return { id, action, filter, is_done, started_ms, scanned, matched, changed, skipped, refused }
}
