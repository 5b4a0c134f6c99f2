/**
 * `api_queue`: sets `data` and waits in the queue of the node; the logics behind it run when
 * another task takes this one.
 *
 * `api_get_task`: takes the oldest (`order_by` ASC) or newest (DESC) task of a queue. Its data
 * becomes `__queue_task_data__`, its id `__queue_task_id__`.
 */
import { docOfValue } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { LogicKind } from '../logic.ts'
import { quoted, type Report } from '../report.ts'
import { assignedData, readAssignments } from './assignments.ts'
import { expanding, failConversion } from './failures.ts'
import { isAbsent, readErrorNode, readId, readTargetProcess } from './members.ts'

export const apiQueue: LogicKind = {
  type: 'api_queue',
  waits_for: 'queue',
  compile(raw, report) {
    const assignments = readAssignments(raw, 'data', 'data_type', report)
    const err_node_id = readErrorNode(raw, report)
    return expanding('queue', err_node_id, (expansion) => {
      if (assignments.length === 0) return { command: 'queue', doc: undefined, err_node_id }
      const data = assignedData(assignments, expansion, true)
      return data && { command: 'queue', doc: docOfValue(data), err_node_id }
    })
  },
}

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
    return expanding('get_task', err_node_id, (expansion) => {
      const conv = convOf(expansion)
      const node_id = conv && nodeOf(expansion)
      if (conv === undefined || node_id === undefined) {
        return failConversion(expansion, 'node_id', '', 'node_id')
      }
      return { command: 'take', conv, node_id, newest, err_node_id }
    })
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
