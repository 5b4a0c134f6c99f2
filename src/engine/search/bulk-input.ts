/**
 * Checks a bulk job: the filter narrowed to the tasks that the action takes, the data, the node.
 */
import { bytesOf, docOfText, parseStored } from '../../codec/json.ts'
import { isName } from '../../codec/op.ts'
import { docOfPlain, plainBounds } from '../../codec/plain-value.ts'
import { is_live } from '../../codec/task-record.ts'
import { fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { Doc, JsonObject } from '../../core/model.ts'
import { quoted } from '../../process/report.ts'
import type { BulkAction, BulkInput } from '../api/bulk-api.ts'
import type { TaskFilter } from '../api/search-api.ts'
import type { Parts } from '../transactions/parts.ts'
import type { BulkWork } from './bulk-record.ts'
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

/** Throws `bad_filter`, or a RangeError or TypeError for another member that is malformed. */
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
    ...(doc === undefined ? {} : { data_text: doc.text }),
    ...(to_node_id === undefined ? {} : { to_node_id }),
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

/** Looks the names up. Rejects with `bad_filter`, `conv_not_found` or `node_not_found`. */
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
