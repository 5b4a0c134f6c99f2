/**
 * ListTasks and CountTasks: of the tasks that the caller may see. Room for a page is reserved
 * before the search, as for an answer to shows; the search itself is bounded by the engine.
 */
import type { handleUnaryCall } from '@grpc/grpc-js'
import { fault } from '../../core/faults.ts'
import type { Caller } from '../../core/model.ts'
import { default_tasks_max } from '../../engine/search/search.ts'
import type { CountFilter } from '../../engine/search/search-api.ts'
import { authenticate, type Peer } from './authenticate.ts'
import type { ContextOf, EncodedResponse, ServerContext } from './interceptor.ts'
import { encodeCounts, encodePage, type ListMessage, queryOf } from './search-messages.ts'
import { answerWith } from './unary.ts'

export function listHandler(
  context: ServerContext,
  contextOf: ContextOf,
): handleUnaryCall<ListMessage, EncodedResponse> {
  const { engine } = context
  const { answer_bytes_max, task_bytes_max } = engine.limits
  return answerWith(context, contextOf, async (call, peer) => {
    const caller = searcher(context, peer)
    const query = queryOf(call.request, context.limits)
    const { limit = default_tasks_max } = query
    const reservation = peer.answers.reserve([])
    call.once('cancelled', reservation.release)
    const bytes_max = Math.min(Math.max(limit, 0) * task_bytes_max, answer_bytes_max)
    if (!reservation.add(bytes_max)) throw fault('overloaded')
    const bytes = encodePage(await engine.listTasks(query, caller))
    reservation.set(bytes.length)
    return bytes
  })
}

export function countHandler(
  context: ServerContext,
  contextOf: ContextOf,
): handleUnaryCall<CountFilter, EncodedResponse> {
  return answerWith(context, contextOf, async (call, peer) => {
    const caller = searcher(context, peer)
    const reservation = peer.answers.reserve([])
    call.once('cancelled', reservation.release)
    const bytes = encodeCounts(await context.engine.countTasks(call.request, caller))
    reservation.set(bytes.length)
    return bytes
  })
}

/** The caller of a search. Throws as `authenticate` does, and `rate_limited`. */
function searcher(context: ServerContext, peer: Peer): Caller {
  const caller = authenticate(context, peer)
  if (caller.user !== undefined) context.engine.checkRate(caller.user)
  return caller
}
