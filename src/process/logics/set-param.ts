/**
 * `set_param`: sets keys of the task's data (assignments.ts). A list that fails sets nothing.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { assignedData, readAssignments } from './assignments.ts'
import { failedExpansion } from './failures.ts'
import { readErrorNode } from './members.ts'

export const setParam: LogicKind = {
  type: 'set_param',
  compile(raw, report) {
    const assignments = readAssignments(raw, 'extra', 'extra_type', report)
    const err_node_id = readErrorNode(raw, report)
    return {
      err_node_id,
      run(context) {
        const expansion = expansionOf(context)
        const data = assignedData(assignments, expansion, objectOf(context.doc))
        if (data === undefined) return failedExpansion('set_param', expansion, err_node_id)
        return { command: 'set', doc: docOfValue(data), err_node_id }
      },
    }
  },
}
