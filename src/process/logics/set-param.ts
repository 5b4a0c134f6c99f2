/**
 * `set_param`: sets keys of the task's data (assignments.ts). A list that fails sets nothing.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { type Assignment, assignedData, readAssignments } from './assignments.ts'
import { failedExpansion } from './failures.ts'
import { readErrorNode } from './members.ts'

interface SetParam {
  readonly assignments: readonly Assignment[]
  readonly err_node_id: string | undefined
}

export const setParam: LogicKind<SetParam> = {
  type: 'set_param',
  parse: (raw, report) => ({
    assignments: readAssignments(raw, 'extra', 'extra_type', report),
    err_node_id: readErrorNode(raw, report),
  }),
  run({ assignments, err_node_id }, context) {
    const expansion = expansionOf(context)
    const data = assignedData(assignments, expansion, objectOf(context.doc))
    if (data === undefined) return failedExpansion('set_param', expansion, err_node_id)
    return { command: 'set', doc: docOfValue(data), err_node_id }
  },
}
