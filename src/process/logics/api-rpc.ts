/**
 * `api_rpc`: makes a task of the called process and rests until it replies, then goes on with the
 * logic behind. The called task gets `extra`, laid over the whole data of this one where `group` is
 * `all`. An exception, and an end without a reply, lead to `err_node_id`.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { LogicKind, TargetProcess } from '../logic.ts'
import { type Expansion, expansionOf } from '../templates/parser.ts'
import {
  type Assignment,
  applyAssignments,
  failedExpansion,
  readAssignments,
  readErrNode,
} from './assignments.ts'
import { readTargetProcess } from './target.ts'

interface ApiRpc {
  readonly sends_all: boolean
  readonly assignments: readonly Assignment[]
  readonly err_node_id: string | undefined
  conv(run: Expansion): TargetProcess | undefined
}

const tags = { convert: 'rpc_task_wrong_convert_param' }

export const apiRpc: LogicKind<ApiRpc> = {
  type: 'api_rpc',
  waits_for: 'reply',
  parse: (raw, report) => ({
    sends_all: raw.group === 'all',
    assignments: readAssignments(raw, 'extra', 'extra_type', report),
    err_node_id: readErrNode(raw, report),
    conv: readTargetProcess(raw, report),
  }),
  run({ sends_all, assignments, err_node_id, conv: readConv }, context) {
    const run = expansionOf(context)
    const conv = readConv(run)
    const data: JsonObject = sends_all ? { ...objectOf(context.doc) } : {}
    if (!applyAssignments(assignments, run, data) || conv === undefined) {
      return failedExpansion('rpc', run, context, err_node_id, tags)
    }
    return { command: 'call', conv, doc: docOfValue(data), err_node_id }
  },
  errorNode: ({ err_node_id }) => err_node_id,
}
