/**
 * A clock that a test moves by hand. Timers ring within the call that makes them due, earliest
 * first; one that is due when set rings in the next turn.
 */
import { type Clock, onNextTurn } from './clock.ts'

export interface TestClock extends Clock {
  now_ms(): number
  /** Moves the clock, also back, and rings what has become due, in order. */
  advance(by_ms: number): void
  /** Moves the clock without ringing, like a system clock that is set. */
  set(now_ms: number): void
  /** Rings nothing until released; then rings what became due. */
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
      // Like a real timer: never in the same turn.
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
