/**
 * The durable state of bulk jobs (key type bulk). The last 100 are kept, finished ones for a day.
 */
import { canonicalText } from '../../codec/doc-text.ts'
import { parsePlain, parseStored } from '../../codec/json.ts'
import { bulkKey, bulkOfKey, keysOfType } from '../../codec/keys.ts'
import { type BulkRecord, decodeRecord, encodeRecord } from '../../codec/records.ts'
import { fault } from '../../core/faults.ts'
import type { View } from '../../store/store.ts'
import type { BulkJob } from '../api/bulk-api.ts'
import type { TaskFilter } from '../api/search-api.ts'
import type { Transaction } from '../transactions/transaction.ts'

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
  const entries = view.scan({ ...keysOfType('bulk'), limit: Infinity })
  return entries.map(({ key, value }) => [bulkOfKey(key), decodeRecord<BulkRecord>(value)])
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
