/**
 * ListTasks and CountTasks: of the tasks that the caller may see. Room for a page is reserved
 * before the search, as for an answer to shows; the search itself is bounded by the engine.
 */
import { fault } from '../../core/faults.ts'
import type { Caller } from '../../core/model.ts'
import { default_tasks_max } from '../../engine/search/search.ts'
import { authenticate, reserveAnswer } from './authenticate.ts'
import type { Rpc, ServedCall } from './call.ts'
import {
  encodeCounts,
  encodePage,
  queryOf,
  readCountTasks,
  readListTasks,
} from './search-messages.ts'
import { answering } from './unary.ts'

export const search_rpcs: Readonly<Record<string, Rpc>> = {
  ListTasks: answering(readListTasks, async (call, message) => {
    const { engine, limits } = call.context
    const { answer_bytes_max, task_bytes_max } = engine.limits
    const caller = searcher(call)
    const query = queryOf(message, limits)
    const { limit = default_tasks_max } = query
    const reservation = reserveAnswer(call.peer, caller, [])
    call.onOver = reservation.release
    const bytes_max = Math.min(Math.max(limit, 0) * task_bytes_max, answer_bytes_max)
    if (!reservation.add(bytes_max)) throw fault('overloaded')
    const bytes = encodePage(await engine.listTasks(query, caller))
    reservation.set(bytes.length)
    return bytes
  }),
  CountTasks: answering(readCountTasks, async (call, filter) => {
    const caller = searcher(call)
    const reservation = reserveAnswer(call.peer, caller, [])
    call.onOver = reservation.release
    const bytes = encodeCounts(await call.context.engine.countTasks(filter, caller))
    reservation.set(bytes.length)
    return bytes
  }),
}

/** The caller of a search. Throws as `authenticate` does, and `rate_limited`. */
function searcher({ context, peer }: ServedCall): Caller {
  const caller = authenticate(context, peer)
  context.engine.payForRead(caller)
  return caller
}
