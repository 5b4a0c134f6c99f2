/**
 * `api`: calls an HTTP endpoint and waits for the response. The request is built from the data when
 * the call starts (api-request.ts); the response is merged into the data when it arrives
 * (api-response.ts). The call runs outside the transaction, after the commit.
 */
import type { Command, LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { readRequest } from './api-request.ts'
import { readResponse } from './api-response.ts'
import { fail, failedExpansion } from './failures.ts'
import { readErrorNode } from './members.ts'

const job_command: Command = { command: 'job' }
const tags = { overflow: 'api_task_size_overflow_limit' }

export const api: LogicKind = {
  type: 'api',
  compile(raw, report) {
    const requestOf = readRequest(raw, report)
    const responseOf = readResponse(raw, report)
    const err_node_id = readErrorNode(raw, report)
    return {
      err_node_id,
      run: () => job_command,
      job: {
        order(context) {
          const expansion = expansionOf(context)
          const request = requestOf(expansion)
          if (request === undefined) return failedExpansion('api', expansion, err_node_id, tags)
          return { job: 'call', request, doc: context.doc }
        },
        finish(context, _order_doc, outcome) {
          const result = outcome.outcome === 'failed' ? outcome : responseOf(context, outcome)
          if ('text' in result) return { command: 'set', doc: result, err_node_id }
          return fail('api', result, err_node_id)
        },
      },
    }
  },
}
