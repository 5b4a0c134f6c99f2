/**
 * `api_queue`: rests the task in the queue of its node until another task takes it; then the logics
 * behind it run. `data` is set in the task as it comes in.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { applySettings, failedRun, readErrNode, readSettings, type Setting } from './assignments.ts'

interface ApiQueue {
  readonly settings: readonly Setting[]
  readonly err_node_id: string | undefined
}

export const apiQueue: LogicKind<ApiQueue> = {
  type: 'api_queue',
  rests_for: 'queue',
  parse: (raw, report) => ({
    settings: readSettings(raw, 'data', 'data_type', report),
    err_node_id: readErrNode(raw, report),
  }),
  run({ settings, err_node_id }, scope) {
    if (settings.length === 0) return { move: 'queue', doc: undefined, err_node_id }
    const run = expansionOf(scope)
    const data: JsonObject = { ...objectOf(scope.doc) }
    if (!applySettings(settings, run, data)) return failedRun('queue', run, scope, err_node_id)
    return { move: 'queue', doc: docOfValue(data), err_node_id }
  },
  errNode: ({ err_node_id }) => err_node_id,
}
