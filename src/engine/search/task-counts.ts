/**
 * Counts tasks by process, node and status (`tasks.count`) from the counters of the nodes, which
 * every change of a task keeps. No task is read, however many there are.
 */
import { countsOf, nodeCountOfKey, processKey } from '../../codec/keys.ts'
import { decodeCounts, decodeRecord, type ProcessRecord } from '../../codec/records.ts'
import { nextTurn } from '../../core/clock.ts'
import type { Caller, Status } from '../../core/model.ts'
import type { View } from '../../store/store.ts'
import type { CountFilter, CountRow, TaskCounts } from '../api/search-api.ts'
import type { Parts } from '../transactions/parts.ts'
import { type Scope, scopeOf } from './search-scope.ts'
import { badFilter, checkFilter } from './task-filter.ts'

const counted: readonly string[] = ['conv_id', 'node_id', 'status']

/** Rejects with `bad_filter`, `conv_not_found` or `node_not_found`. */
export async function countTasks(
  parts: Parts,
  given: CountFilter,
  caller: Caller = {},
): Promise<TaskCounts> {
  const { store, catalog, limits } = parts
  // Without a status all are counted: it costs the same.
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

/** The nodes of a process that have such tasks. */
function nodeRows(
  view: View,
  conv_id: string,
  scope: Scope,
  wanted: readonly Status[],
): CountRow[] {
  const nodes = scope.nodes?.get(conv_id)
  const rows: CountRow[] = []
  for (const { key, value } of view.scan({ ...countsOf(conv_id), limit: Infinity })) {
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

/** The rows as one. */
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
