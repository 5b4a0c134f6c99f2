/**
 * `api`: calls an HTTP endpoint and waits for the answer. The request is built from the data at the
 * time the call starts (api-request.ts); the answer is merged into the data at the time it arrives
 * (api-response.ts). The call runs outside the transaction, after the commit.
 */
import type { LogicKind, Move } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { type ApiRequest, readRequest } from './api-request.ts'
import { type Answered, readAnswer } from './api-response.ts'
import { failedRun, readErrNode } from './assignments.ts'

interface Api {
  readonly request: ApiRequest
  readonly answer: Answered
  readonly err_node_id: string | undefined
}

const work: Move = { move: 'work' }
const overflow_tag = 'api_task_size_overflow_limit'

export const api: LogicKind<Api> = {
  type: 'api',
  parse: (raw, report) => ({
    request: readRequest(raw, report),
    answer: readAnswer(raw, report),
    err_node_id: readErrNode(raw, report),
  }),
  run: () => work,
  errNode: ({ err_node_id }) => err_node_id,
  work: {
    order({ request, err_node_id }, scope) {
      const run = expansionOf(scope)
      const made = request(run)
      if (made === undefined)
        return failedRun('api', run, scope, err_node_id, { overflow: overflow_tag })
      return { work: 'call', request: made, doc: scope.doc }
    },
    finish({ answer, err_node_id }, scope, _doc, outcome) {
      const judged = outcome.outcome === 'failed' ? outcome : answer(scope, outcome)
      if ('text' in judged) return { move: 'set', doc: judged, err_node_id }
      const { error_type = 'software', tag, description } = judged
      return { move: 'fail', kind: 'api', error_type, tag, description, err_node_id }
    },
  },
}
