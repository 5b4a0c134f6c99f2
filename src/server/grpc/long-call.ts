/**
 * The bounds of a call that goes on: it ends when the server drains, or when it is older than
 * `grpc_age_ms_max`. Its caller makes another, upon `shutting_down`.
 */
import { systemClock } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import type { ServerContext } from './call.ts'

/** Calls `end` at most once, with the reason. Must be disposed of, by the returned function. */
export function endInTime(
  { drain_callbacks, limits }: ServerContext,
  end: (reason: Fault) => void,
): () => void {
  const drain = (): void => end(fault('shutting_down'))
  drain_callbacks.add(drain)
  const cancelAge = systemClock.wake_at(systemClock.now_ms() + limits.grpc_age_ms_max, () =>
    end(fault('shutting_down', 'this call has gone on for long enough: make another')),
  )
  return () => {
    drain_callbacks.delete(drain)
    cancelAge()
  }
}
