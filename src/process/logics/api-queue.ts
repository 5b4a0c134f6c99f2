/**
 * `api_queue`: rests the task in the queue of its node until another task takes it; then the logics
 * behind it run. `data` is set in the task as it comes in.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import {
  type Assignment,
  applyAssignments,
  failedExpansion,
  readAssignments,
  readErrNode,
} from './assignments.ts'

interface ApiQueue {
  readonly assignments: readonly Assignment[]
  readonly err_node_id: string | undefined
}

export const apiQueue: LogicKind<ApiQueue> = {
  type: 'api_queue',
  waits_for: 'queue',
  parse: (raw, report) => ({
    assignments: readAssignments(raw, 'data', 'data_type', report),
    err_node_id: readErrNode(raw, report),
  }),
  run({ assignments, err_node_id }, context) {
    if (assignments.length === 0) return { command: 'queue', doc: undefined, err_node_id }
    const run = expansionOf(context)
    const data: JsonObject = { ...objectOf(context.doc) }
    if (!applyAssignments(assignments, run, data))
      return failedExpansion('queue', run, context, err_node_id)
    return { command: 'queue', doc: docOfValue(data), err_node_id }
  },
  errorNode: ({ err_node_id }) => err_node_id,
}
