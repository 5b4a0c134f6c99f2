/**
 * Trying again, where a repeat does no harm and may do good.
 *
 * A fault that passes by itself is tried again when the server has certainly not applied the call
 * (it said so, or no connection came about), whatever its ops; and when it may have, only if each
 * of its ops may reach it twice (sent-op `isHarmless`). What stays open even then: a create whose
 * task ended before its repeat came makes a second task, until requests are remembered; a process
 * in which tasks never rest is called with `retries_max: 0` where that matters.
 *
 * Between two tries lies a random pause that may double each time, never less than the server asked
 * for; a pause that would outlast the deadline is not begun.
 */
import { setTimeout as pause_ms } from 'node:timers/promises'
import type { Chance, Clock } from '../core/clock.ts'
import { type Cancellation, type Deadline, throwIfCancelled } from './cancellation.ts'
import { type ClientFault, isClientFault } from './faults.ts'

export interface RetryOptions {
  readonly clock: Clock
  readonly chance: Chance
  readonly retries_max: number
  /** Each op of the call may be applied twice. */
  readonly is_harmless: boolean
  /** How a pause is made, where a test wants none. */
  readonly pause?: (ms: number, cancellation: Cancellation) => Promise<void>
}

/** The first try that comes through; else rejects as the last one did. */
export async function withRetries<T>(
  send: () => Promise<T>,
  deadline: Deadline,
  options: RetryOptions,
): Promise<T> {
  const { clock, chance, retries_max, is_harmless, pause = realPause } = options
  for (let tries = 0; ; tries++) {
    throwIfCancelled(deadline)
    try {
      return await send()
    } catch (error) {
      throwIfCancelled(deadline)
      if (tries === retries_max || !mayRepeat(error, is_harmless)) throw error
      const wait_ms = waitBefore(tries, error, chance)
      if (clock.now_ms() + wait_ms >= deadline.at_ms) throw error
      await pause(wait_ms, deadline)
    }
  }
}

const passing: ReadonlySet<ClientFault['code']> = new Set<ClientFault['code']>([
  'unreachable',
  'shutting_down',
  'store_failed',
  'overloaded',
  'rate_limited',
])

function mayRepeat(error: unknown, is_harmless: boolean): error is ClientFault {
  if (!isClientFault(error) || !passing.has(error.code)) return false
  return is_harmless || error.outcome === 'not_applied'
}

const first_wait_ms = 100
const wait_ms_max = 5_000

/** From half to the whole of a bound that doubles, behind what the server asked for. */
function waitBefore(tries: number, error: ClientFault, chance: Chance): number {
  const bound_ms = Math.min(wait_ms_max, first_wait_ms * 2 ** tries)
  return (error.retry_after_ms ?? 0) + Math.ceil(bound_ms * (0.5 + chance.fraction() / 2))
}

async function realPause(ms: number, cancellation: Cancellation): Promise<void> {
  const early = new AbortController()
  const forget = cancellation.onCancel(() => early.abort())
  // Why it has ended is thrown by the loop; the pause itself only ends early.
  await pause_ms(ms, undefined, early).catch(() => {})
  forget()
}
