/**
 * What ends work early, and why: a caller's signal, a deadline, a client that closes. The first to
 * come gives the reason. Who hears one may take that back, for it may outlive the work by far.
 *
 * AbortSignals stay with the callers that bring them: one for each call would cost as much as the
 * rest of it, and one that many calls hear asks all of them each time another comes.
 */
import { setMaxListeners } from 'node:events'
import type { Clock } from '../core/clock.ts'
import { clientFault } from './faults.ts'

export interface Ending {
  /** Why it has ended; undefined as long as it has not. */
  reason(): unknown
  /** Calls `onEnd` once it ends, and at once where it has. The answer takes that back. */
  hear(onEnd: () => void): () => void
}

export interface Ender extends Ending {
  /** Only the first time counts. */
  end(reason: unknown): void
}

export interface Joined extends Ender {
  /** Hears the other no more; to be called once the work is over. */
  clear(): void
}

export interface Deadline extends Joined {
  readonly at_ms: number
}

export function newEnder(): Ender {
  let hearing: (() => void)[] = []
  let why: unknown
  return {
    reason: () => why,
    hear(onEnd) {
      if (why !== undefined) onEnd()
      else hearing.push(onEnd)
      return () => {
        const at = hearing.indexOf(onEnd)
        if (at !== -1) hearing.splice(at, 1)
      }
    },
    end(reason) {
      if (why !== undefined) return
      why = reason
      const heard = hearing
      hearing = []
      for (const onEnd of heard) onEnd()
    },
  }
}

/** A caller's signal. */
export function endingOf(signal: AbortSignal): Ending {
  return {
    reason: () => (signal.aborted ? signal.reason : undefined),
    hear(onEnd) {
      if (signal.aborted) {
        onEnd()
        return nothing
      }
      // One signal may stand over any number of calls; node would warn of a leak at the eleventh.
      setMaxListeners(0, signal)
      signal.addEventListener('abort', onEnd, { once: true })
      return () => signal.removeEventListener('abort', onEnd)
    },
  }
}

/** Ends with another, where there is one. */
export function endingWith(other: Ending | undefined): Joined {
  const { reason, hear, end } = newEnder()
  const clear = other?.hear(() => end(other.reason())) ?? nothing
  return { reason, hear, end, clear }
}

function nothing(): void {}

/** Ends with another, where there is one, and with a `timed_out` ClientFault after `timeout_ms`. */
export function deadlineIn(timeout_ms: number, clock: Clock, other?: Ending): Deadline {
  const { reason, hear, end, clear } = endingWith(other)
  const at_ms = clock.now_ms() + timeout_ms
  const late = (): void => end(clientFault('timed_out', `no answer within ${timeout_ms} ms`))
  const forget = clock.wake_at(at_ms, late)
  return {
    reason,
    hear,
    end,
    at_ms,
    clear() {
      forget()
      clear()
    },
  }
}

export function throwIfEnded({ reason }: Ending): void {
  const why = reason()
  if (why !== undefined) throw why
}
