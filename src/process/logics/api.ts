/**
 * `api`: calls an HTTP endpoint and waits for the answer. The request is built from the data at the
 * time the call starts (api-request.ts); the answer is merged into the data at the time it arrives
 * (api-response.ts). The call runs outside the transaction, after the commit.
 */
import type { Command, LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { type ApiRequest, readRequest } from './api-request.ts'
import { type ResponseReader, readResponse } from './api-response.ts'
import { failedExpansion, readErrNode } from './assignments.ts'

interface Api {
  readonly request: ApiRequest
  readonly answer: ResponseReader
  readonly err_node_id: string | undefined
}

const job: Command = { command: 'job' }
const overflow_tag = 'api_task_size_overflow_limit'

export const api: LogicKind<Api> = {
  type: 'api',
  parse: (raw, report) => ({
    request: readRequest(raw, report),
    answer: readResponse(raw, report),
    err_node_id: readErrNode(raw, report),
  }),
  run: () => job,
  errorNode: ({ err_node_id }) => err_node_id,
  job: {
    order({ request, err_node_id }, context) {
      const run = expansionOf(context)
      const made = request(run)
      if (made === undefined)
        return failedExpansion('api', run, context, err_node_id, { overflow: overflow_tag })
      return { job: 'call', request: made, doc: context.doc }
    },
    finish({ answer, err_node_id }, context, _doc, outcome) {
      const judged = outcome.outcome === 'failed' ? outcome : answer(context, outcome)
      if ('text' in judged) return { command: 'set', doc: judged, err_node_id }
      const { error_type = 'software', tag, description } = judged
      return { command: 'fail', kind: 'api', error_type, tag, description, err_node_id }
    },
  },
}
