/**
 * Retries of a call.
 *
 * A transient fault is retried if the server has certainly not applied the call (it said so, or no
 * connection was made), or if every op of the call may be applied twice (sent-op `isHarmless`). One
 * gap remains: a create whose task ends before the retry arrives makes a second task. Callers of
 * processes in which tasks never wait set `retries_max: 0` where that matters.
 *
 * The pause before a retry is random, with a bound that doubles, and never shorter than the server
 * asked for. A pause that would outlast the deadline is not begun.
 */
import { setTimeout as pause_ms } from 'node:timers/promises'
import type { Chance, Clock } from '../core/clock.ts'
import { type Cancellation, type Deadline, throwIfCancelled } from './cancellation.ts'
import { type ClientFault, isClientFault } from './faults.ts'

export interface RetryOptions {
  readonly clock: Clock
  readonly chance: Chance
  readonly retries_max: number
  /** Every op of the call may be applied twice. */
  readonly is_harmless: boolean
  /** Replaced by tests. */
  readonly pause?: (ms: number, cancellation: Cancellation) => Promise<void>
}

/** The first successful try; else rejects as the last try did. */
export async function withRetries<T>(
  send: () => Promise<T>,
  deadline: Deadline,
  options: RetryOptions,
): Promise<T> {
  const { clock, chance, retries_max, is_harmless, pause = realPause } = options
  for (let tries = 0; ; tries++) {
    throwIfCancelled(deadline)
    const began_ms = clock.now_ms()
    try {
      return await send()
    } catch (error) {
      throwIfCancelled(deadline)
      if (clock.now_ms() - began_ms >= long_ms) tries = 0
      if (tries === retries_max || !mayRepeat(error, is_harmless)) throw error
      const wait_ms = waitBefore(tries, error, chance)
      if (clock.now_ms() + wait_ms >= deadline.at_ms) throw error
      await pause(wait_ms, deadline)
    }
  }
}

/** Faults after which another try may succeed. */
export const transient_codes: ReadonlySet<ClientFault['code']> = new Set<ClientFault['code']>([
  'unreachable',
  'shutting_down',
  'store_failed',
  'overloaded',
  'rate_limited',
])

function mayRepeat(error: unknown, is_harmless: boolean): error is ClientFault {
  if (!isClientFault(error) || !transient_codes.has(error.code)) return false
  return is_harmless || error.outcome === 'not_applied'
}

/** A try that lasted so long had got through: what ended it is the first failure in a row. */
const long_ms = 60_000
const first_wait_ms = 100
const wait_ms_max = 5_000

/** Half to all of a bound that doubles per try, plus what the server asked for. */
export function waitBefore(tries: number, error: ClientFault, chance: Chance): number {
  const bound_ms = Math.min(wait_ms_max, first_wait_ms * 2 ** tries)
  return (error.retry_after_ms ?? 0) + Math.ceil(bound_ms * (0.5 + chance.fraction() / 2))
}

/** A pause that ends early when it is cancelled; it does not throw then. */
export async function realPause(ms: number, cancellation: Cancellation): Promise<void> {
  const early = new AbortController()
  const removeListener = cancellation.onCancel(() => early.abort())
  await pause_ms(ms, undefined, early).catch(() => {})
  removeListener()
}
