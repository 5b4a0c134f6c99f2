/**
 * `set_param`: sets keys of the data, each value converted to the type that `extra_type` has for
 * its key (process/logics/assignments). A list that fails sets nothing.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { applySettings, failedRun, readErrNode, readSettings, type Setting } from './assignments.ts'

interface SetParam {
  readonly settings: readonly Setting[]
  readonly err_node_id: string | undefined
}

export const setParam: LogicKind<SetParam> = {
  type: 'set_param',
  parse: (raw, report) => ({
    settings: readSettings(raw, 'extra', 'extra_type', report),
    err_node_id: readErrNode(raw, report),
  }),
  run({ settings, err_node_id }, scope) {
    const run = expansionOf(scope)
    const data: JsonObject = { ...objectOf(scope.doc) }
    if (!applySettings(settings, run, data)) return failedRun('set_param', run, scope, err_node_id)
    return { move: 'set', doc: docOfValue(data), err_node_id }
  },
}
