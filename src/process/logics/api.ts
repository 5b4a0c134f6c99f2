/**
 * `api`: calls an HTTP endpoint and waits for the response. The request is built from the data when
 * the call starts (api-request.ts); the response is merged into the data when it arrives
 * (api-response.ts). The call runs outside the transaction, after the commit.
 */
import type { Command, LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { type ApiRequest, readRequest } from './api-request.ts'
import { type ApiResponse, readResponse } from './api-response.ts'
import { fail, failedExpansion } from './failures.ts'
import { readErrorNode } from './members.ts'

interface Api {
  readonly request: ApiRequest
  readonly response: ApiResponse
  readonly err_node_id: string | undefined
}

const job: Command = { command: 'job' }
const tags = { overflow: 'api_task_size_overflow_limit' }

export const api: LogicKind<Api> = {
  type: 'api',
  parse: (raw, report) => ({
    request: readRequest(raw, report),
    response: readResponse(raw, report),
    err_node_id: readErrorNode(raw, report),
  }),
  run: () => job,
  job: {
    order({ request: requestOf, err_node_id }, context) {
      const expansion = expansionOf(context)
      const request = requestOf(expansion)
      if (request === undefined) return failedExpansion('api', expansion, err_node_id, tags)
      return { job: 'call', request, doc: context.doc }
    },
    finish({ response, err_node_id }, context, _order_doc, outcome) {
      const result = outcome.outcome === 'failed' ? outcome : response(context, outcome)
      if ('text' in result) return { command: 'set', doc: result, err_node_id }
      return fail('api', result, err_node_id)
    },
  },
}
