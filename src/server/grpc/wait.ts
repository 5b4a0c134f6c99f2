/**
 * WaitTask: answers once a task has ended or failed. A call takes no room among the unread answers
 * while it waits, and none of the engine's queue; its task is looked up once, and its end is
 * reported. It ends with its deadline, its cancellation or its connection, and as any long call.
 */
import type { handleUnaryCall } from '@grpc/grpc-js'
import { fault } from '../../core/faults.ts'
import type { ShowOp } from '../../core/model.ts'
import { authenticate } from './authenticate.ts'
import { type ContextOf, type EncodedResponse, type ServerContext, untimed } from './interceptor.ts'
import { endInTime } from './long-call.ts'
import { readOp } from './message-ops.ts'
import type { ShowMessage } from './request-messages.ts'
import { encodeTask } from './response-messages.ts'
import { answerWith } from './unary.ts'

export function waitHandler(
  context: ServerContext,
  contextOf: ContextOf,
): handleUnaryCall<ShowMessage, EncodedResponse> {
  return answerWith(context, untimed(contextOf), async (call, peer) => {
    const wait = new AbortController()
    const dispose = endInTime(context, (reason) => wait.abort(reason))
    // Emitted at the end of every call, also by its deadline.
    call.once('cancelled', () => {
      dispose()
      wait.abort(fault('shutting_down'))
    })
    const caller = authenticate(context, peer)
    const op = readOp(call.request, context) as ShowOp
    const task = await context.engine.awaitResult(op, caller, { signal: wait.signal })
    // The certificate may have been refused meanwhile.
    authenticate(context, peer)
    wait.signal.throwIfAborted()
    const bytes = encodeTask({ task }, call.request.with_history)
    const reservation = peer.answers.reserve([])
    call.once('cancelled', reservation.release)
    if (!reservation.add(bytes.length)) throw fault('overloaded')
    reservation.set(bytes.length)
    return bytes
  })
}
