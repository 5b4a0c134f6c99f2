/**
 * ListTasks: a page of the tasks that the caller may see. Room for the page is reserved before the
 * search, as for an answer to shows; the search itself is bounded by the engine.
 */
import type { handleUnaryCall } from '@grpc/grpc-js'
import { fault } from '../../core/faults.ts'
import { authenticate } from './authenticate.ts'
import type { ContextOf, EncodedResponse, ServerContext } from './interceptor.ts'
import { encodePage, type ListMessage, queryOf } from './search-messages.ts'
import { answerWith } from './unary.ts'

/** Tasks of a page without a limit of its own. */
const page_tasks = 100

export function listHandler(
  context: ServerContext,
  contextOf: ContextOf,
): handleUnaryCall<ListMessage, EncodedResponse> {
  const { engine } = context
  const { answer_bytes_max, task_bytes_max } = engine.limits
  return answerWith(context, contextOf, async (call, peer) => {
    const caller = authenticate(context, peer)
    if (caller.user !== undefined) engine.checkRate(caller.user)
    const query = queryOf(call.request, context.limits)
    const { limit = page_tasks } = query
    const reservation = peer.answers.reserve([])
    call.once('cancelled', reservation.release)
    const bytes_max = Math.min(Math.max(limit, 0) * task_bytes_max, answer_bytes_max)
    if (!reservation.add(bytes_max)) throw fault('overloaded')
    const bytes = encodePage(await engine.listTasks(query, caller))
    reservation.set(bytes.length)
    return bytes
  })
}
