/**
 * `api_copy`: creates a task (`mode` create), or merges data into the task of a ref (`mode` modify;
 * with `is_sync` that task must wait for a callback), and continues. The other task gets `data`,
 * over the data of this task where `send_parent_data` is set or, without that member, `group` is
 * `all`.
 */
import { docOfValue } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { Command, LogicKind } from '../logic.ts'
import type { Report } from '../report.ts'
import type { Expansion } from '../templates/parser.ts'
import { assignedData, readAssignments } from './assignments.ts'
import { expanding, fail } from './failures.ts'
import {
  isAbsent,
  readErrorNode,
  readFlag,
  readId,
  readTargetProcess,
  readWord,
} from './members.ts'

const kind = 'copy_task'
const tags = { overflow: 'copy_task_size_overflow_limit' }
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
      if (ref === undefined) return fail(kind, no_task, err_node_id)
      return { command: 'copy_modify', conv, ref, doc, is_sync, err_node_id }
    }
    return expanding(kind, err_node_id, make, tags)
  },
}

/** Exports write `group` `all` beside a `send_parent_data` of false; the latter counts. */
function readSendsAll(raw: JsonObject, report: Report): boolean {
  const { send_parent_data, group } = raw
  const is_given = send_parent_data !== undefined && send_parent_data !== null
  return is_given ? readFlag(raw, 'send_parent_data', report) : group === 'all'
}
