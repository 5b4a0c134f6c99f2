/**
 * The logics that hand data to other tasks, or take them. `api_copy` creates a task or merges data
 * into the task of a ref (with `is_sync` that task must wait for a callback), and continues.
 * `api_queue` waits in the queue of its node, until `api_get_task` takes the oldest or newest task
 * there: its data becomes `__queue_task_data__`, its id `__queue_task_id__`.
 */
import { docOfValue } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { Command, LogicKind } from '../logic.ts'
import { expected, quoted, type Report } from '../report.ts'
import type { Expansion } from '../templates/parser.ts'
import { assignedData, readAssignments } from './assignments.ts'
import { expanding, fail, failConversion } from './failures.ts'
import {
  isAbsent,
  readErrorNode,
  readFlag,
  readId,
  readTargetProcess,
  readWord,
} from './members.ts'

const copy_tags = { overflow: 'copy_task_size_overflow_limit' }
const no_task = { tag: 'not_found_task', description: 'not found task' }

export const apiCopy: LogicKind = {
  type: 'api_copy',
  compile(raw, report) {
    const is_modify = readWord(raw, 'mode', ['create', 'modify'], report) === 'modify'
    if (is_modify && isAbsent(raw.ref)) {
      report.mistake('ref is missing, a modify finds its task by it')
    }
    const is_sync = readFlag(raw, 'is_sync', report)
    const sends_all = readSendsAll(raw, report)
    const assignments = readAssignments(raw, 'data', 'data_type', report)
    const err_node_id = readErrorNode(raw, report)
    const convOf = readTargetProcess(raw, report)
    const refOf = readId(raw, 'ref', report)
    const make = (expansion: Expansion): Command | undefined => {
      const conv = convOf(expansion)
      const ref = refOf(expansion)
      const data = assignedData(assignments, expansion, sends_all)
      if (data === undefined || conv === undefined) return undefined
      const doc = docOfValue(data)
      if (!is_modify) return { command: 'copy_create', conv, ref, doc, err_node_id }
      if (ref === undefined) return fail('copy_task', no_task, err_node_id)
      return { command: 'copy_modify', conv, ref, doc, is_sync, err_node_id }
    }
    return expanding('copy_task', err_node_id, make, copy_tags)
  },
}

/** Exports write `group` `all` beside a `send_parent_data` of false; the latter counts. */
function readSendsAll(raw: JsonObject, report: Report): boolean {
  const { send_parent_data, group } = raw
  const is_given = send_parent_data !== undefined && send_parent_data !== null
  return is_given ? readFlag(raw, 'send_parent_data', report) : group === 'all'
}

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
    if (isAbsent(raw.node_id)) expected(report, 'node_id', raw.node_id, 'the node of a queue')
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
