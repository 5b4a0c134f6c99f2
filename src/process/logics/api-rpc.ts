/**
 * `api_rpc`: makes a task of the called process and rests until it replies, then goes on with the
 * logic behind. The called task gets `extra`, laid over the whole data of this one where `group` is
 * `all`. An exception, and an end without a reply, lead to `err_node_id`.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { ConvReach, LogicKind } from '../logic.ts'
import { type Expansion, expansionOf } from '../templates/parser.ts'
import { applySettings, failedRun, readErrNode, readSettings, type Setting } from './assignments.ts'
import { readReach } from './target.ts'

interface ApiRpc {
  readonly sends_all: boolean
  readonly settings: readonly Setting[]
  readonly err_node_id: string | undefined
  conv(run: Expansion): ConvReach | undefined
}

const tags = { convert: 'rpc_task_wrong_convert_param' }

export const apiRpc: LogicKind<ApiRpc> = {
  type: 'api_rpc',
  rests_for: 'reply',
  parse: (raw, report) => ({
    sends_all: raw.group === 'all',
    settings: readSettings(raw, 'extra', 'extra_type', report),
    err_node_id: readErrNode(raw, report),
    conv: readReach(raw, report),
  }),
  run({ sends_all, settings, err_node_id, conv: readConv }, scope) {
    const run = expansionOf(scope)
    const conv = readConv(run)
    const data: JsonObject = sends_all ? { ...objectOf(scope.doc) } : {}
    if (!applySettings(settings, run, data) || conv === undefined) {
      return failedRun('rpc', run, scope, err_node_id, tags)
    }
    return { move: 'call', conv, doc: docOfValue(data), err_node_id }
  },
  errNode: ({ err_node_id }) => err_node_id,
}
