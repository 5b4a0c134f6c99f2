/**
 * What ends work early, and why: a caller's signal, a deadline, a client that closes. The first to
 * come gives the reason. Who hears one may take that back, for it may outlive the work by far.
 *
 * AbortSignals stay with the callers that bring them: one for each call would cost as much as the
 * rest of it, and one that many calls onCancel asks all of them each time another comes.
 */
import { setMaxListeners } from 'node:events'
import type { Clock } from '../core/clock.ts'
import { clientFault } from './faults.ts'

export interface Cancellation {
  /** Why it has ended; undefined as long as it has not. */
  reason(): unknown
  /** Calls `onCancelled` once it ends, and at once where it has. The answer takes that back. */
  onCancel(onCancelled: () => void): () => void
}

export interface Canceller extends Cancellation {
  /** Only the first time counts. */
  end(reason: unknown): void
}

export interface LinkedCancellation extends Canceller {
  /** Hears the other no more; to be called once the work is over. */
  clear(): void
}

export interface Deadline extends LinkedCancellation {
  readonly at_ms: number
}

export function newCanceller(): Canceller {
  let hearing: (() => void)[] = []
  let why: unknown
  return {
    reason: () => why,
    onCancel(onCancelled) {
      if (why !== undefined) onCancelled()
      else hearing.push(onCancelled)
      return () => {
        const at = hearing.indexOf(onCancelled)
        if (at !== -1) hearing.splice(at, 1)
      }
    },
    end(reason) {
      if (why !== undefined) return
      why = reason
      const heard = hearing
      hearing = []
      for (const onCancelled of heard) onCancelled()
    },
  }
}

/** A caller's signal. */
export function cancellationOf(signal: AbortSignal): Cancellation {
  return {
    reason: () => (signal.aborted ? signal.reason : undefined),
    onCancel(onCancelled) {
      if (signal.aborted) {
        onCancelled()
        return nothing
      }
      // One signal may stand over any number of calls; node would warn of a leak at the eleventh.
      setMaxListeners(0, signal)
      signal.addEventListener('abort', onCancelled, { once: true })
      return () => signal.removeEventListener('abort', onCancelled)
    },
  }
}

/** Ends with another, where there is one. */
export function linkedCancellation(other: Cancellation | undefined): LinkedCancellation {
  const { reason, onCancel, end } = newCanceller()
  const clear = other?.onCancel(() => end(other.reason())) ?? nothing
  return { reason, onCancel, end, clear }
}

function nothing(): void {}

/** Ends with another, where there is one, and with a `timed_out` ClientFault after `timeout_ms`. */
export function deadlineIn(timeout_ms: number, clock: Clock, other?: Cancellation): Deadline {
  const { reason, onCancel, end, clear } = linkedCancellation(other)
  const at_ms = clock.now_ms() + timeout_ms
  const late = (): void => end(clientFault('timed_out', `no answer within ${timeout_ms} ms`))
  const forget = clock.wake_at(at_ms, late)
  return {
    reason,
    onCancel,
    end,
    at_ms,
    clear() {
      forget()
      clear()
    },
  }
}

export function throwIfCancelled({ reason }: Cancellation): void {
  const why = reason()
  if (why !== undefined) throw why
}
