/**
 * `api_queue`: the task waits in the queue of its node until another task takes it; then the logics
 * after this one run. `data` is set in the task when it enters the queue.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { assignedData, readAssignments } from './assignments.ts'
import { failedExpansion } from './failures.ts'
import { readErrorNode } from './members.ts'

export const apiQueue: LogicKind = {
  type: 'api_queue',
  waits_for: 'queue',
  compile(raw, report) {
    const assignments = readAssignments(raw, 'data', 'data_type', report)
    const err_node_id = readErrorNode(raw, report)
    return {
      err_node_id,
      run(context) {
        if (assignments.length === 0) return { command: 'queue', doc: undefined, err_node_id }
        const expansion = expansionOf(context)
        const data = assignedData(assignments, expansion, objectOf(context.doc))
        if (data === undefined) return failedExpansion('queue', expansion, err_node_id)
        return { command: 'queue', doc: docOfValue(data), err_node_id }
      },
    }
  },
}
