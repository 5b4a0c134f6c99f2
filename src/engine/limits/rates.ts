/**
 * Rates of limits: `rate` tasks in `per_s` seconds, and up to `burst` at once after a pause. One
 * number is enough: the time at which all that was let in will be paid for, one task each interval.
 * A task may pass while that is less than `burst` intervals ahead.
 *
 * Invariant: in a time t no more than t × rate / per_s + burst pass, also where the clock is set
 * back: what is ahead then is cut to a full burst, so waiting tasks lose nothing but the time by
 * which it was set back.
 */
import { type LimitPlace, limitDueKey } from '../../codec/keys.ts'
import type { LimitNumbers } from '../../codec/records.ts'
import type { Rate } from '../../process/graph.ts'
import type { Transaction } from '../transactions/transaction.ts'

const no_value = Buffer.alloc(0)

const intervalOf = ({ rate, per_s }: Rate): number => (1_000 * per_s) / rate

/** Takes one pass, if the rate allows it now. */
export function pay(rate: Rate, numbers: LimitNumbers, now_ms: number): boolean {
  const interval_ms = intervalOf(rate)
  const paid_ms = paidBy(rate, numbers, now_ms)
  if (paid_ms > now_ms + (rate.burst - 1) * interval_ms) return false
  numbers.paid_ms = Math.max(paid_ms, now_ms) + interval_ms
  return true
}

function paidBy(rate: Rate, { paid_ms }: LimitNumbers, now_ms: number): number {
  return Math.min(paid_ms, now_ms + rate.burst * intervalOf(rate))
}

/**
 * Sets when the background looks at a limit again: once the next task may pass or, without a line,
 * once all is paid for and nothing is to be remembered. An earlier key stays and is set again then.
 */
export function arm(
  tx: Transaction,
  place: LimitPlace,
  rate: Rate | undefined,
  numbers: LimitNumbers,
): void {
  const wanted_ms = rate === undefined ? 0 : dueOf(rate, numbers, tx.now_ms)
  if (wanted_ms === 0) numbers.paid_ms = 0
  const { due_ms } = numbers
  const is_early = due_ms > tx.now_ms && due_ms <= wanted_ms
  if (due_ms === wanted_ms || is_early) return
  if (due_ms !== 0) tx.store.del(limitDueKey(due_ms, place))
  numbers.due_ms = wanted_ms
  if (wanted_ms === 0) return
  tx.store.put(limitDueKey(wanted_ms, place), no_value)
  tx.recordLimitDue(wanted_ms)
}

/** Later than now, or 0. A line always has one: its next task may also wait for the next slice. */
function dueOf(rate: Rate, numbers: LimitNumbers, now_ms: number): number {
  const paid_ms = paidBy(rate, numbers, now_ms)
  if (numbers.waiting === 0 && paid_ms <= now_ms) return 0
  const ahead_ms = numbers.waiting > 0 ? (rate.burst - 1) * intervalOf(rate) : 0
  return Math.max(Math.floor(now_ms) + 1, Math.ceil(paid_ms - ahead_ms))
}
