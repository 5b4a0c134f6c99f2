/**
 * Retries of a call, and the two tables that decide them. The README shows both tables.
 *
 * A transient fault is retried if the call was certainly not applied (the server said so, or no
 * connection was made), if every op of the call may be applied twice, or if the server recognises
 * a repeat. A create with an unknown outcome is looked up first: a task with its ref that has ended
 * may be the one, and a repeat would create a second. A task that has ended and is not kept escapes
 * this check. Once one try has an unknown outcome, so has the call.
 *
 * The pause before a retry is random, with a bound that doubles, and never shorter than the server
 * asked for. A pause that would outlast the deadline is not begun.
 */
import { setTimeout as pause_ms } from 'node:timers/promises'
import type { Chance, Clock } from '../core/clock.ts'
import { type Cancellation, type Deadline, throwIfCancelled } from './cancellation.ts'
import { type ClientFault, type ClientFaultCode, clientFault, isClientFault } from './faults.ts'
import type { SentOp } from './sent-op.ts'

/**
 * Whether a repeat is harmless at a server without replays. A repeated create with a ref answers
 * the first task while that lives (wire 1.2); without a ref it creates another. A repeated modify
 * is refused or releases the next wait, also with `is_sync` or `node_id`. A repeated cancel or
 * retry would meet the effect of the first.
 */
export const repeats = {
  show: 'always',
  task: 'always',
  result: 'always',
  list: 'always',
  count: 'always',
  changes: 'always',
  create: 'with_ref',
  modify: 'never',
  cancel: 'never',
  retry: 'never',
  stream: 'never',
} as const

/**
 * The reaction of a client with several addresses: `leave` the address, so that calls wait until an
 * owner is found; `doubt` it and ask the others meanwhile; or `stay`.
 */
export const transient_faults = {
  unreachable: 'leave',
  shutting_down: 'leave',
  store_failed: 'leave',
  overloaded: 'doubt',
  rate_limited: 'stay',
} as const satisfies Partial<Record<ClientFaultCode, 'leave' | 'doubt' | 'stay'>>

export function isHarmlessCall(name: keyof typeof repeats): boolean {
  return repeats[name] === 'always'
}

export function isHarmless({ type, ref }: SentOp): boolean {
  return isHarmlessCall(type) || (repeats[type] === 'with_ref' && ref !== undefined)
}

/** The reaction to a fault; undefined if no other try would succeed. */
export function afterFault(code: ClientFaultCode): 'leave' | 'doubt' | 'stay' | undefined {
  return (transient_faults as Partial<Record<ClientFaultCode, 'leave' | 'doubt' | 'stay'>>)[code]
}

export interface RetryPolicy {
  readonly clock: Clock
  readonly chance: Chance
  readonly retries_max: number
  /** A call without a deadline is given up after failing for this long. */
  readonly patience_ms?: number
  /** The bound of a random pause; default 5 s. */
  readonly wait_ms_max?: number
  /** Ignores the pause that a server asks for if its address is left. */
  readonly has_others?: boolean
  /** Waits until a call can be sent; undefined where it can now. */
  readonly ready?: (cancellation: Cancellation) => Promise<unknown> | undefined
  readonly pause?: (ms: number, cancellation: Cancellation) => Promise<void>
}

export interface RetryOptions extends RetryPolicy {
  /** Every op of the call may be applied twice. */
  readonly is_harmless: boolean
  /** Whether the server recognises a repeat of the call. */
  readonly isKept?: () => boolean
}

/** The reason why a call that may have been applied must not be repeated, if any. */
type Objection = (cancellation: Cancellation) => Promise<string | undefined>

/** Resolves as the first successful try, or rejects as the last one. */
export async function withRetries<T>(
  send: () => Promise<T>,
  deadline: Deadline,
  options: RetryOptions,
  objection?: Objection,
): Promise<T> {
  const { clock, retries_max, is_harmless, isKept, ready, pause = realPause } = options
  const { patience_ms = Number.POSITIVE_INFINITY } = options
  let unknown: ClientFault | undefined
  let failing_since_ms: number | undefined
  for (let tries = 0; ; tries++) {
    throwIfCancelled(deadline)
    failing_since_ms ??= clock.now_ms()
    let sent_ms = Number.POSITIVE_INFINITY
    let must_not: string | undefined
    try {
      const wait = ready?.(deadline)
      if (wait !== undefined) await wait
      sent_ms = clock.now_ms()
      // Another call may have learned meanwhile that the server keeps no replays.
      const may_repeat = is_harmless || isKept?.() === true
      if (unknown !== undefined && !may_repeat) must_not = 'the server keeps no replays'
      else if (unknown !== undefined) must_not = await objection?.(deadline)
      if (unknown === undefined || must_not === undefined) return await send()
      throw asUnknown(unknown, must_not)
    } catch (error) {
      const reason = deadline.reason()
      // A try that fails at the deadline still reports its own outcome.
      const is_late = isClientFault(reason) && reason.code === 'timed_out'
      if (reason !== undefined && !(is_late && isClientFault(error))) throw reason
      if (!isClientFault(error)) throw error
      const now_ms = clock.now_ms()
      if (now_ms - sent_ms >= long_ms) {
        tries = 0
        failing_since_ms = now_ms
      }
      const wait_ms = waitBefore(tries, error, options)
      // A deadline overrides the patience.
      const gives_up_ms =
        deadline.at_ms < Number.POSITIVE_INFINITY ? deadline.at_ms : failing_since_ms + patience_ms
      const is_last = tries === retries_max || now_ms + wait_ms >= gives_up_ms
      const is_safe = is_harmless || isKept?.() === true || error.outcome === 'not_applied'
      const ends = reason !== undefined || must_not !== undefined || is_last || !is_safe
      if (ends || afterFault(error.code) === undefined) {
        if (unknown === undefined || error.outcome === 'unknown') throw error
        throw asUnknown(error, 'an earlier try may have been applied')
      }
      if (error.outcome === 'unknown') unknown = error
      await pause(wait_ms, deadline)
    }
  }
}

function asUnknown(cause: ClientFault, why: string): ClientFault {
  const { code, message, retry_after_ms } = cause
  return clientFault(code, `${message}; ${why}`, { outcome: 'unknown', retry_after_ms, cause })
}

/** A try that lasted so long had reached the server: its end is the first failure in a row. */
const long_ms = 60_000
const first_wait_ms = 100

/** Half to all of a bound that doubles per try, plus the pause that the server asked for. */
export function waitBefore(
  tries: number,
  { code, retry_after_ms = 0 }: ClientFault,
  { chance, wait_ms_max = 5_000, has_others = false }: RetryPolicy,
): number {
  const bound_ms = Math.min(wait_ms_max, first_wait_ms * 2 ** tries)
  const asked_ms = has_others && afterFault(code) === 'leave' ? 0 : retry_after_ms
  return asked_ms + Math.ceil(bound_ms * (0.5 + chance.fraction() / 2))
}

/** A pause that ends early, without an error, when it is cancelled. */
export async function realPause(ms: number, cancellation: Cancellation): Promise<void> {
  const early = new AbortController()
  const removeListener = cancellation.onCancel(() => early.abort())
  await pause_ms(ms, undefined, early).catch(() => {})
  removeListener()
}
