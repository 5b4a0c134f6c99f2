/**
 * Finds tasks by a filter, page by page (`tasks.list`), and counts them (`tasks.count`). A call
 * reads at most `search_tasks_max` tasks, in slices of one durable state each. A task that matches
 * all the time is found exactly once; one that changes is judged when the search passes its place.
 * By time or ref a task that changes its place may be found twice or not at all. Counts come from
 * node counters.
 */
import { createHash } from 'node:crypto'
import { idHex } from '../../codec/ids.ts'
import { countsOf, nodeCountOfKey, processKey, timeOfKey } from '../../codec/keys.ts'
import { decodeCounts, decodeRecord, type ProcessRecord } from '../../codec/records.ts'
import { nextTurn } from '../../core/clock.ts'
import { defined } from '../../core/defined.ts'
import { fault } from '../../core/faults.ts'
import type { Caller, Status, Task } from '../../core/model.ts'
import type { View } from '../../store/store.ts'
import type { CountFilter, CountRow, TaskCounts, TaskPage, TaskQuery } from '../api/search-api.ts'
import { loadTask, type TaskDraft } from '../tasks/task-store.ts'
import { viewTask } from '../tasks/task-view.ts'
import type { Parts } from '../transactions/parts.ts'
import { allIn } from '../transactions/scans.ts'
import { type Place, runsOf, type Source, sourceOf } from './search-order.ts'
import { isInScope, type Scope, scopeOf } from './search-scope.ts'
import { badFilter, type CheckedFilter, checkFilter, isWanted, secondsOfId } from './task-filter.ts'

export const default_tasks_max = 100
const slice_tasks = 256
const slice_chars_max = 1024 * 1024

/** Rejects with `bad_filter`, `bad_cursor`, `conv_not_found` or `node_not_found`. */
export async function listTasks(
  parts: Parts,
  query: TaskQuery,
  caller: Caller = {},
): Promise<TaskPage> {
  const { limits } = parts
  const { newest_first = false, limit = default_tasks_max, cursor, ...given } = query
  if (!Number.isInteger(limit) || limit < 1) throw badFilter('limit is no whole number above 0')
  const filter = checkFilter(given, limits)
  const from = cursor === undefined ? undefined : placeOfCursor(cursor, filter, newest_first)
  const scope = await scopeOf(parts.store, parts.catalog, filter, caller)
  const tasks: Task[] = []
  let chars = 0
  const source = sourceOf((view) => runsOf(view, filter, scope), newest_first)
  const end = await search(parts, { filter, scope, source, from }, ({ task }) => {
    tasks.push(viewTask(task))
    chars += task.doc.text.length
    return tasks.length < limit && chars < limits.answer_bytes_max
  })
  const { scanned, damaged, last } = end
  // A damaged record's process is unknown, so only the embedder sees it.
  const named = caller.user === undefined ? damaged : []
  const page = { tasks, scanned, sorted_by: filter.sorted_by, damaged: named }
  if (last === undefined) return page
  const next = { cursor: cursorOf(last, filter, newest_first) }
  return { ...page, ...next, ...defined({ reached_ms: timeOfPlace(last, filter) }) }
}

export interface Search {
  readonly filter: CheckedFilter
  readonly scope: Scope
  readonly source: Source
  readonly from: Place | undefined
}

export interface SearchEnd {
  readonly scanned: number
  readonly damaged: readonly string[]
  /** The place to continue after; undefined at the end. */
  readonly last: Place | undefined
}

/**
 * Calls `take` with each match until it returns false, `search_tasks_max` tasks are read, or none
 * are left.
 */
export async function search(
  { store, limits }: Parts,
  { filter, scope, source, from }: Search,
  take: (draft: TaskDraft) => boolean,
): Promise<SearchEnd> {
  const damaged: string[] = []
  let scanned = 0
  let last = from
  for (;;) {
    const state = await store.view((view) => {
      const entries_max = Math.min(limits.search_tasks_max - scanned, slice_tasks)
      const { entries, has_more } = source.next(view, last, entries_max)
      let chars_left = slice_chars_max
      for (const [at, entry] of entries.entries()) {
        scanned++
        last = entry
        const draft = loadTask(view, idHex(entry.id))
        if (draft === 'damaged') damaged.push(idHex(entry.id))
        if (draft === undefined || draft === 'damaged') continue
        chars_left -= draft.task.doc.text.length
        const is_last = at === entries.length - 1 && !has_more
        const is_found = isInScope(scope, draft.task) && isWanted(filter, draft.task)
        if (is_found && !take(draft)) return is_last ? 'end' : 'stop'
        if (chars_left < 0 && !is_last) return 'go_on'
      }
      return has_more ? 'go_on' : 'end'
    })
    if (state === 'end') return { scanned, damaged, last: undefined }
    if (state === 'stop' || scanned >= limits.search_tasks_max) return { scanned, damaged, last }
    await nextTurn()
  }
}

/** Undefined if the search sorts by ref. */
function timeOfPlace({ prefix, place }: Place, { sorted_by }: CheckedFilter): number | undefined {
  if (sorted_by === 'ref') return undefined
  if (sorted_by === 'created') return secondsOfId(idHex(place)) * 1_000
  return timeOfKey(prefix + place).ms
}

// A cursor: its version (1 byte), digest of filter and order (8), length of the prefix (2), prefix
// and place.
const cursor_version = 1
const prefix_at = 11

function digestOf({ identity }: CheckedFilter, newest_first: boolean): Buffer {
  return createHash('sha256').update(`${newest_first} ${identity}`).digest().subarray(0, 8)
}

export function cursorOf(
  { prefix, place }: Place,
  filter: CheckedFilter,
  newest_first: boolean,
): string {
  const head = Buffer.alloc(prefix_at)
  head[0] = cursor_version
  head.set(digestOf(filter, newest_first), 1)
  head.writeUInt16BE(prefix.length, prefix_at - 2)
  return Buffer.concat([head, Buffer.from(prefix + place, 'latin1')]).toString('base64url')
}

export function placeOfCursor(cursor: string, filter: CheckedFilter, newest_first: boolean): Place {
  const bytes = Buffer.from(String(cursor), 'base64url')
  const is_whole = bytes.length > prefix_at && bytes.toString('base64url') === cursor
  if (!is_whole || bytes[0] !== cursor_version) {
    throw fault('bad_cursor', 'cursor: it is none that a page has given')
  }
  if (!bytes.subarray(1, prefix_at - 2).equals(digestOf(filter, newest_first))) {
    throw fault('bad_cursor', 'cursor: it belongs to a search by another filter or order')
  }
  const place_at = prefix_at + bytes.readUInt16BE(prefix_at - 2)
  const text = bytes.toString('latin1')
  return { prefix: text.slice(prefix_at, place_at), place: text.slice(place_at) }
}

const counted: readonly string[] = ['conv_id', 'node_id', 'status']

/** Rejects with `bad_filter`, `conv_not_found` or `node_not_found`. */
export async function countTasks(
  parts: Parts,
  given: CountFilter,
  caller: Caller = {},
): Promise<TaskCounts> {
  const { store, catalog, limits } = parts
  // Without a status all are counted, at the same cost.
  const filter = checkFilter({ ...given, status: given.status ?? 'any' }, limits)
  const other = Object.keys(given).find((name) => !counted.includes(name))
  if (other !== undefined) {
    throw badFilter(`tasks are counted by conv_id, node_id and status only, not by ${other}`)
  }
  const scope = await scopeOf(store, catalog, filter, caller)
  const by_node = filter.conv_id !== undefined || filter.node !== undefined
  const rows: CountRow[] = []
  for (const conv_id of scope.conv_ids) {
    const found = await store.view((view) => {
      const nodes = nodeRows(view, conv_id, scope, filter.statuses)
      if (nodes.length === 0) return []
      const record = view.get(processKey(conv_id))
      const title = record && decodeRecord<ProcessRecord>(record).title
      if (!by_node) return [{ conv_id, title: title ?? '', ...sumOf(filter.statuses, nodes) }]
      const titles = catalog.find(view, conv_id)?.graph.nodes
      return nodes.map((row) => ({ ...row, title: titles?.get(row.node_id ?? '')?.title ?? '' }))
    })
    rows.push(...found)
    await nextTurn()
  }
  return { ...sumOf(filter.statuses, rows), rows }
}

function nodeRows(
  view: View,
  conv_id: string,
  scope: Scope,
  wanted: readonly Status[],
): CountRow[] {
  const nodes = scope.nodes?.get(conv_id)
  const rows: CountRow[] = []
  for (const { key, value } of allIn(view, countsOf(conv_id))) {
    const { node: node_id } = nodeCountOfKey(key)
    if (scope.nodes !== undefined && nodes?.includes(node_id) !== true) continue
    const counts = decodeCounts(value)
    const by_status = Object.fromEntries(wanted.map((status) => [status, counts[status]]))
    const row = { conv_id, title: '', node_id, total: totalOf(by_status), by_status }
    if (row.total > 0) rows.push(row)
  }
  return rows
}

function totalOf(by_status: TaskCounts['by_status']): number {
  return Object.values(by_status).reduce((sum, count) => sum + count, 0)
}

function sumOf(
  wanted: readonly Status[],
  rows: readonly Pick<CountRow, 'by_status'>[],
): Pick<TaskCounts, 'total' | 'by_status'> {
  const by_status: Partial<Record<Status, number>> = {}
  for (const status of wanted) {
    by_status[status] = rows.reduce((sum, row) => sum + (row.by_status[status] ?? 0), 0)
  }
  return { total: totalOf(by_status), by_status }
}
