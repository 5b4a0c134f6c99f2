/**
 * `set_param`: sets keys of the data, each value converted to the type that `extra_type` has for
 * its key (process/logics/assignments). A list that fails sets nothing.
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

interface SetParam {
  readonly assignments: readonly Assignment[]
  readonly err_node_id: string | undefined
}

export const setParam: LogicKind<SetParam> = {
  type: 'set_param',
  parse: (raw, report) => ({
    assignments: readAssignments(raw, 'extra', 'extra_type', report),
    err_node_id: readErrNode(raw, report),
  }),
  run({ assignments, err_node_id }, context) {
    const run = expansionOf(context)
    const data: JsonObject = { ...objectOf(context.doc) }
    if (!applyAssignments(assignments, run, data))
      return failedExpansion('set_param', run, context, err_node_id)
    return { command: 'set', doc: docOfValue(data), err_node_id }
  },
}
