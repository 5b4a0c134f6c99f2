/**
 * WatchTasks: sends the changes that its caller may see, from a position on.
 *
 * The next change is read while fewer than `unsent_bytes_max` bytes wait to leave, so a caller that
 * does not read holds that much, the changes read with them, and a few tasks if it wants them. Room
 * for all of that is reserved among the unread answers. A caller that is too slow gets
 * `changes_gone`. Positions between changes are sent from time to time, so that a follower of a
 * quiet process stays within the window of kept changes. It ends as any long call, and when the
 * engine closes.
 */
import { systemClock } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import type { Caller } from '../../core/model.ts'
import type { SeenChange } from '../../engine/changes/changes.ts'
import type { AnswerReservation } from '../../engine/requests/unread-answers.ts'
import { authenticate, reserveAnswer } from './authenticate.ts'
import { end, endInTime, type Rpc, type ServedCall, send } from './call.ts'
import { faultStatus } from './fault-response.ts'
import { encodeChange, readWatchTasks, type WatchMessage } from './task-messages.ts'

const unsent_bytes_max = 64 * 1024
/** Of the changes that the feed reads at once. */
const read_bytes = 64 * 1024
/** One that was read and not yet sent, and one that has not left. */
const tasks_held = 2
const between_positions_ms = 10_000

export const watch_rpc: Rpc = {
  read: readWatchTasks,
  serve(call) {
    const { context } = call
    const watch = new AbortController()
    let reason: unknown = fault('shutting_down')
    const stop = endInTime(context, (why) => {
      reason = why
      watch.abort()
    })
    let release = (): void => {}
    call.onOver = () => {
      stop()
      watch.abort()
      release()
    }
    const hold = (reservation: AnswerReservation): void => {
      release = reservation.release
    }
    sendChanges(call, hold, watch.signal)
      .catch((thrown: unknown) => {
        reason = thrown
      })
      .finally(() => {
        // The caller has ended it and gets no status.
        if (call.is_over) context.engine.counters.countRequest('grpc', 'ok')
        else
          end(call, faultStatus(reason, context, { address: call.from.getPeer(), is_long: true }))
      })
  },
}

/** Resolves when the signal is aborted or the engine closes. Rejects with what ends it early. */
async function sendChanges(
  call: ServedCall,
  hold: (reservation: AnswerReservation) => void,
  signal: AbortSignal,
): Promise<void> {
  const { context, peer } = call
  const caller = authenticate(context, peer)
  const { from, conv_id, with_task } = call.request as WatchMessage
  context.engine.payForRead(caller)
  const reservation = reserveAnswer(peer, caller, [])
  hold(reservation)
  const tasks_bytes = with_task ? tasks_held * context.engine.limits.task_bytes_max : 0
  if (!reservation.add(unsent_bytes_max + read_bytes + tasks_bytes)) throw fault('overloaded')
  const unsent = unsentBytes(signal)
  const changes = context.engine.changesSeenBy(caller, {
    ...(from === '' ? {} : { from }),
    ...(conv_id === '' ? {} : { conv_id }),
    ...{ data: with_task, signal },
  })
  let position_ms = Number.NEGATIVE_INFINITY
  for await (const change of changes) {
    requireSame(caller, authenticate(context, peer))
    const now_ms = systemClock.now_ms()
    if (change.obj_id === undefined && now_ms - position_ms < between_positions_ms) continue
    position_ms = now_ms
    const bytes = encodeChange(change as SeenChange)
    send(call, bytes, unsent.add(bytes.length))
    await unsent.hasRoom()
  }
}

/** The certificate may have been bound to another user, who may see other tasks. */
function requireSame(before: Caller, now: Caller): void {
  if (before.user !== now.user)
    throw fault('access_denied', 'the certificate was bound to another user')
}

/** Counts the bytes of messages that have not left for the caller. */
function unsentBytes(signal: AbortSignal): {
  /** Returns the function to call once they have left. */
  add(bytes: number): () => void
  /** Resolves once there is room for more, or the signal is aborted. */
  hasRoom(): Promise<void>
} {
  let unsent = 0
  let resume = (): void => {}
  signal.addEventListener('abort', () => resume())
  return {
    add(bytes) {
      unsent += bytes
      return () => {
        unsent -= bytes
        if (unsent < unsent_bytes_max) resume()
      }
    },
    async hasRoom() {
      if (unsent < unsent_bytes_max || signal.aborted) return
      await new Promise<void>((resolve) => {
        resume = resolve
      })
    },
  }
}
