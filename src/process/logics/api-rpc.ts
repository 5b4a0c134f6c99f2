/**
 * `api_rpc`: creates a task of the called process and waits until it replies; then the next logic
 * runs. The called task gets `extra`, over the whole data of this task where `group` is `all`. An
 * exception, and an end without a reply, lead to `err_node_id`.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { assignedData, readAssignments } from './assignments.ts'
import { failedExpansion } from './failures.ts'
import { readErrorNode } from './members.ts'
import { readTargetProcess } from './target.ts'

const tags = { convert: 'rpc_task_wrong_convert_param' }

export const apiRpc: LogicKind = {
  type: 'api_rpc',
  waits_for: 'reply',
  compile(raw, report) {
    const sends_all = raw.group === 'all'
    const assignments = readAssignments(raw, 'extra', 'extra_type', report)
    const err_node_id = readErrorNode(raw, report)
    const convOf = readTargetProcess(raw, report)
    return {
      err_node_id,
      run(context) {
        const expansion = expansionOf(context)
        const conv = convOf(expansion)
        const data = assignedData(assignments, expansion, sends_all ? objectOf(context.doc) : {})
        if (data === undefined || conv === undefined) {
          return failedExpansion('rpc', expansion, err_node_id, tags)
        }
        return { command: 'call', conv, doc: docOfValue(data), err_node_id }
      },
    }
  },
}
