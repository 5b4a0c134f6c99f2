/**
 * `api_get_task`: takes the task that has waited longest in a queue (`order_by` ASC) or that came
 * last (DESC). Its data is set as `__queue_task_data__` and its id as `__queue_task_id__`; the
 * taken task continues with the logics after its `api_queue`.
 */
import type { JsonObject } from '../../core/model.ts'
import type { LogicKind } from '../logic.ts'
import { quoted, type Report } from '../report.ts'
import { expansionOf } from '../templates/parser.ts'
import { failConversion, failedExpansion } from './failures.ts'
import { isAbsent, readErrorNode } from './members.ts'
import { readId, readTargetProcess } from './target.ts'

export const apiGetTask: LogicKind = {
  type: 'api_get_task',
  compile(raw, report) {
    if (isAbsent(raw.node_id)) {
      report.mistake(`node_id is ${quoted(raw.node_id)}, the node of a queue was expected`)
    }
    const newest = isNewest(raw, report)
    const err_node_id = readErrorNode(raw, report)
    const convOf = readTargetProcess(raw, report)
    const nodeOf = readId(raw, 'node_id', report)
    return {
      err_node_id,
      run(context) {
        const expansion = expansionOf(context)
        const conv = convOf(expansion)
        const node_id = conv === undefined ? undefined : nodeOf(expansion)
        if (conv !== undefined && node_id !== undefined) {
          return { command: 'take', conv, node_id, newest, err_node_id }
        }
        failConversion(expansion, 'node_id', '', 'node_id')
        return failedExpansion('get_task', expansion, err_node_id)
      },
    }
  },
}

function isNewest({ order_by }: JsonObject, report: Report): boolean {
  if (isAbsent(order_by)) return false
  const order = typeof order_by === 'string' ? order_by.toUpperCase() : undefined
  if (order !== 'ASC' && order !== 'DESC') {
    report.mistake(`order_by ${quoted(order_by)} is neither "ASC" nor "DESC"`)
  }
  return order === 'DESC'
}
