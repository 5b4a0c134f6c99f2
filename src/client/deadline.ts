/**
 * AbortSignals that end work: several joined into one, and one with a deadline. The first to go off
 * gives the reason. Both let go of the signals they listen to, for those may outlive the work by
 * far.
 */
import { setMaxListeners } from 'node:events'
import type { Clock } from '../words/clock.ts'
import { clientFault } from './faults.ts'

export interface Joined {
  readonly signal: AbortSignal
  abort(reason: unknown): void
  /** Stops listening; to be called once the work is over. */
  clear(): void
}

/** Aborts when one of `signals` does, with its reason. */
export function joined(signals: readonly (AbortSignal | undefined)[]): Joined {
  const controller = new AbortController()
  const heard = signals.flatMap((signal) => {
    if (signal === undefined) return []
    const pass = (): void => controller.abort(signal.reason)
    if (signal.aborted) pass()
    // One signal may stand over any number of calls; node would warn of a leak at the eleventh.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', pass, { once: true })
    return [{ signal, pass }]
  })
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    clear() {
      for (const { signal, pass } of heard) signal.removeEventListener('abort', pass)
    },
  }
}

export interface Deadline extends Joined {
  readonly at_ms: number
}

/** Aborts when one of `signals` does, and with a `timed_out` ClientFault after `timeout_ms`. */
export function deadlineIn(
  timeout_ms: number,
  clock: Clock,
  signals: readonly (AbortSignal | undefined)[] = [],
): Deadline {
  const all = joined(signals)
  const at_ms = clock.now_ms() + timeout_ms
  const forget = clock.wake_at(at_ms, () =>
    all.abort(clientFault('timed_out', `no answer within ${timeout_ms} ms`)),
  )
  return {
    ...all,
    at_ms,
    clear() {
      forget()
      all.clear()
    },
  }
}
