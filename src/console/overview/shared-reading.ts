/** Limits how often a value is read; callers share a reading that is fresh or under way. */
import type { Clock } from '../../core/clock.ts'

/** What was read less than `every_ms()` ago, or is being read; else it is read now. */
export function atMostEvery<Value>(
  every_ms: () => number,
  clock: Clock,
  read: () => Promise<Value>,
): () => Promise<Value> {
  let read_ms = Number.NEGATIVE_INFINITY
  let value: Promise<Value> | undefined
  let is_reading = false
  return () => {
    const now_ms = clock.now_ms()
    // The clock may have been set back.
    const is_fresh = Math.abs(now_ms - read_ms) < every_ms()
    if (value !== undefined && (is_reading || is_fresh)) return value
    is_reading = true
    read_ms = now_ms
    value = read().finally(() => {
      is_reading = false
    })
    return value
  }
}
