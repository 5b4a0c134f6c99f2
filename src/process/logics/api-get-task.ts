/**
 * `api_get_task`: takes the task that has been longest in a queue (`order_by` ASC) or came last
 * (DESC). Its data comes in as `__queue_task_data__` and its id as `__queue_task_id__`; the taken
 * task goes on with what stands behind its `api_queue`.
 */
import type { JsonObject } from '../../core/model.ts'
import type { LogicKind, TargetProcess } from '../logic.ts'
import type { Report } from '../report.ts'
import { quoted } from '../report.ts'
import { type Expansion, expansionOf } from '../templates/parser.ts'
import { failConversion, failedExpansion, readErrNode } from './assignments.ts'
import { readTargetName, readTargetProcess, type TargetName } from './target.ts'

interface ApiGetTask {
  readonly newest: boolean
  readonly err_node_id: string | undefined
  conv(run: Expansion): TargetProcess | undefined
  readonly node_id: TargetName
}

export const apiGetTask: LogicKind<ApiGetTask> = {
  type: 'api_get_task',
  parse(raw, report) {
    const { node_id } = raw
    if (node_id === undefined || node_id === null || node_id === '') {
      report.mistake(`node_id is ${quoted(node_id)}, the node of a queue was expected`)
    }
    return {
      newest: isNewest(raw, report),
      err_node_id: readErrNode(raw, report),
      conv: readTargetProcess(raw, report),
      node_id: readTargetName(raw, 'node_id', report),
    }
  },
  run({ newest, err_node_id, conv: readConv, node_id: readNode }, context) {
    const run = expansionOf(context)
    const conv = readConv(run)
    const node_id = conv === undefined ? undefined : readNode(run)
    if (conv !== undefined && node_id !== undefined) {
      return { command: 'take', conv, node_id, newest, err_node_id }
    }
    failConversion(run, 'node_id', '', 'node_id')
    return failedExpansion('get_task', run, context, err_node_id)
  },
}

function isNewest({ order_by }: JsonObject, report: Report): boolean {
  if (order_by === undefined || order_by === null || order_by === '') return false
  const order = typeof order_by === 'string' ? order_by.toUpperCase() : undefined
  if (order !== 'ASC' && order !== 'DESC') {
    report.mistake(`order_by ${quoted(order_by)} is neither "ASC" nor "DESC"`)
  }
  return order === 'DESC'
}
