/**
 * `api`: calls an HTTP endpoint after the commit. The request is built from the data when the call
 * starts; the response is merged into the data when it arrives.
 */
import { docOfValue, objectOf } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import type { CallFigures, Command, EvaluationContext, LogicKind } from '../logic.ts'
import { expansionOf } from '../templates/parser.ts'
import { readRequest } from './api-request.ts'
import { contextWith, readResponse } from './api-response.ts'
import { fail, failedExpansion } from './failures.ts'
import { isOn, readErrorNode } from './members.ts'

const job_command: Command = { command: 'job' }
const tags = { overflow: 'api_task_size_overflow_limit' }

export const api: LogicKind = {
  type: 'api',
  compile(raw, report) {
    const requestOf = readRequest(raw, report)
    const responseOf = readResponse(raw, report)
    const err_node_id = readErrorNode(raw, report)
    const is_debugged = isOn(raw.debug_info)
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
        finish(given, _order, outcome) {
          const context = is_debugged ? withFigures(given, outcome.figures) : given
          const result = outcome.outcome === 'failed' ? outcome : responseOf(context, outcome)
          if ('text' in result) return { command: 'set', doc: result, err_node_id }
          const failure = fail('api', result, err_node_id)
          return is_debugged ? { ...failure, doc: context.doc } : failure
        },
      },
    }
  },
}

/** The context with the figures in the data; after a call without an answer none stay there. */
function withFigures(context: EvaluationContext, figures: CallFigures | undefined): typeof context {
  const data: JsonObject = { ...objectOf(context.doc) }
  delete data.__conveyor_api_debug__
  if (figures !== undefined) {
    data.__conveyor_api_debug__ = {
      http_exec_time: figures.exec_ms,
      http_req_body_size: figures.request_bytes,
      http_res_code: figures.status,
      http_res_body_size: figures.response_bytes,
    }
  }
  return contextWith(context, docOfValue(data))
}
