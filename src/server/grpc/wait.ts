/**
 * WaitTask: answers once a task has ended or failed. A call takes no room among the unread answers
 * while it waits, and none of the engine's queue; its task is looked up once, and its end is
 * reported. It ends with its deadline, its cancellation or its connection, and as any long call.
 */
import { fault } from '../../core/faults.ts'
import type { ShowOp } from '../../core/model.ts'
import { authenticate, reserveAnswer } from './authenticate.ts'
import type { Rpc } from './call.ts'
import { endInTime } from './long-call.ts'
import { readOp } from './message-ops.ts'
import { readShow } from './request-messages.ts'
import { encodeTask } from './response-messages.ts'
import { answering } from './unary.ts'

/** Its data is reserved for once it is known. */
const one_result = [{}]

const answered = answering(readShow, async (call, message) => {
  const { context, peer } = call
  const wait = new AbortController()
  const dispose = endInTime(context, (reason) => wait.abort(reason))
  call.onOver = () => {
    dispose()
    wait.abort(fault('shutting_down'))
  }
  const caller = authenticate(context, peer)
  const op = readOp(message, context) as ShowOp
  context.engine.payForRead(caller)
  const task = await context.engine.awaitResult(op, caller, { signal: wait.signal })
  // The certificate may have been refused meanwhile.
  authenticate(context, peer)
  wait.signal.throwIfAborted()
  const reservation = reserveAnswer(peer, caller, one_result)
  call.onOver = () => {
    dispose()
    reservation.release()
  }
  if (!reservation.add(Buffer.byteLength(task.data_text))) throw fault('overloaded')
  const bytes = encodeTask({ task }, message.with_history)
  reservation.set(bytes.length)
  return bytes
})

export const wait_rpc: Rpc = {
  ...answered,
  serve(call) {
    // The time of the call is its caller's.
    call.began_ms = 0
    answered.serve(call)
  },
}
