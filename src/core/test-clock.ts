/**
 * A clock that a test moves by hand: hours pass in one call. Timers ring in the call that makes
 * them due, the earliest first, or in the next turn where they are due when they are set.
 */
import { type Clock, onNextTurn } from './clock.ts'

export interface TestClock extends Clock {
  /** What it says now, in milliseconds since 1970. */
  now_ms(): number
  /** Moves the clock, also back, and runs what has become due, in order. */
  advance(by_ms: number): void
  /** Moves it without ringing anything, as a clock that is set does. */
  set(now_ms: number): void
  /** Rings nothing until released, whatever is due; what became due meanwhile then rings. */
  hold(): void
  release(): void
  /** When the next timer rings; undefined where none is armed. */
  nextWake_ms(): number | undefined
}

/** A clock for `EngineOptions.clock` that only moves on request. */
export function testClock(start_ms = 1_700_000_000_000): TestClock {
  let now_ms = start_ms
  const timers = new Set<{ readonly at_ms: number; readonly fn: () => void }>()
  const due = () =>
    [...timers].filter((timer) => timer.at_ms <= now_ms).sort((a, b) => a.at_ms - b.at_ms)[0]
  let is_held = false
  const ring = (): void => {
    if (is_held) return
    for (let timer = due(); timer !== undefined; timer = due()) {
      timers.delete(timer)
      timer.fn()
    }
  }
  return {
    now_ms: () => now_ms,
    wake_at(at_ms, fn) {
      const timer = { at_ms, fn }
      timers.add(timer)
      // As a real timer would: never in the same turn.
      if (at_ms <= now_ms) onNextTurn(ring)
      return () => timers.delete(timer)
    },
    advance(by_ms) {
      now_ms += by_ms
      ring()
    },
    set(to_ms) {
      now_ms = to_ms
    },
    hold() {
      is_held = true
    },
    release() {
      is_held = false
      onNextTurn(ring)
    },
    nextWake_ms: () =>
      timers.size === 0 ? undefined : Math.min(...[...timers].map((timer) => timer.at_ms)),
  }
}
