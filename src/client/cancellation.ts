/**
 * Cancellation of work under way, with a reason: by the caller's AbortSignal, by a deadline, or by
 * the close of the client. The first reason counts. Not an AbortSignal per call, which would cost
 * as much as the rest of the call, nor one shared by calls, which compares all its listeners for
 * each one added.
 */
import { setMaxListeners } from 'node:events'
import type { Clock } from '../core/clock.ts'
import { clientFault } from './faults.ts'

export interface Cancellation {
  /** The reason; undefined until it is cancelled. */
  reason(): unknown
  /** Calls `listener` when it is cancelled, at once if it is. The returned function removes it. */
  onCancel(listener: () => void): () => void
}

export interface Canceller extends Cancellation {
  cancel(reason: unknown): void
}

export interface LinkedCancellation extends Canceller {
  /** Unlinks it from the other cancellation. Must be called when the work is over. */
  dispose(): void
}

export interface Deadline extends LinkedCancellation {
  readonly at_ms: number
}

export function newCanceller(): Canceller {
  let listeners: (() => void)[] = []
  let why: unknown
  return {
    reason: () => why,
    onCancel(listener) {
      if (why !== undefined) listener()
      else listeners.push(listener)
      return () => {
        const at = listeners.indexOf(listener)
        if (at !== -1) listeners.splice(at, 1)
      }
    },
    cancel(reason) {
      if (why !== undefined) return
      why = reason
      const called = listeners
      listeners = []
      for (const listener of called) listener()
    },
  }
}

export function cancellationOf(signal: AbortSignal): Cancellation {
  return {
    reason: () => (signal.aborted ? signal.reason : undefined),
    onCancel(listener) {
      if (signal.aborted) {
        listener()
        return nothing
      }
      // Many calls may share a signal; node would warn of a leak at the eleventh.
      setMaxListeners(0, signal)
      signal.addEventListener('abort', listener, { once: true })
      return () => signal.removeEventListener('abort', listener)
    },
  }
}

export function linkedCancellation(other: Cancellation | undefined): LinkedCancellation {
  const { reason, onCancel, cancel } = newCanceller()
  const dispose = other?.onCancel(() => cancel(other.reason())) ?? nothing
  return { reason, onCancel, cancel, dispose }
}

function nothing(): void {}

const late_texts = { timed_out: 'no answer', result_timeout: 'the task has not ended' } as const

/**
 * Cancelled with `other`, if given, and after `timeout_ms`, if finite, with a ClientFault of this
 * code.
 */
export function deadlineIn(
  timeout_ms: number,
  clock: Clock,
  other?: Cancellation,
  code: keyof typeof late_texts = 'timed_out',
): Deadline {
  const { reason, onCancel, cancel, dispose: unlink } = linkedCancellation(other)
  const at_ms = clock.now_ms() + timeout_ms
  const onLate = (): void =>
    cancel(clientFault(code, `${late_texts[code]} within ${timeout_ms} ms`))
  const cancelTimer = Number.isFinite(at_ms) ? clock.wake_at(at_ms, onLate) : nothing
  const dispose = (): void => {
    cancelTimer()
    unlink()
  }
  return { reason, onCancel, cancel, at_ms, dispose }
}

export function throwIfCancelled({ reason }: Cancellation): void {
  const why = reason()
  if (why !== undefined) throw why
}
