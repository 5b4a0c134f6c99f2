/**
 * Reports commits that took too long and, once, one that still runs by then, because a disk that
 * hangs ends none. One timer serves all commits.
 */
import { systemClock } from '../core/clock.ts'
import type { EventFields } from '../core/event-table.ts'

export interface SlowWatch {
  began(now_ms: number): void
  /** A no-op without a commit under way. */
  ended(now_ms: number, fields?: EventFields): void
  /** Age of the commit under way, else 0. */
  ms(): number
  /** Whether the commit under way was reported. */
  isSlow(): boolean
}

/** `emit` gets `ms`, `is_under_way` while it runs, and the fields of its end. */
export function newSlowWatch(slow_ms: number, emit: (fields: EventFields) => void): SlowWatch {
  let began_ms: number | undefined
  let is_armed = false
  let is_slow = false

  function arm(wait_ms: number): void {
    is_armed = true
    systemClock.wake_at(systemClock.now_ms() + wait_ms, look)
  }

  function look(): void {
    is_armed = false
    if (began_ms === undefined || is_slow) return
    const ms = performance.now() - began_ms
    if (ms < slow_ms) {
      arm(slow_ms - ms)
      return
    }
    is_slow = true
    emit({ ms: Math.round(ms), is_under_way: true })
  }

  return {
    began(now_ms) {
      began_ms = now_ms
      is_slow = false
      if (!is_armed) arm(slow_ms)
    },
    ended(now_ms, fields = {}) {
      if (began_ms === undefined) return
      const ms = now_ms - began_ms
      began_ms = undefined
      is_slow = false
      if (ms > slow_ms) emit({ ms: Math.round(ms), ...fields })
    },
    ms: () => (began_ms === undefined ? 0 : performance.now() - began_ms),
    isSlow: () => is_slow,
  }
}
