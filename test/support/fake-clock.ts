/**
 * Time and chance for tests: a clock moved by hand, and random bytes that come again with their
 * seed.
 */
import { createHash } from 'node:crypto'
import type { Chance, Clock } from '../../src/core/clock.ts'

export interface FakeClock extends Clock {
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

export function fakeClock(start_ms = 1_700_000_000_000): FakeClock {
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
      if (at_ms <= now_ms) setImmediate(ring)
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
      setImmediate(ring)
    },
    nextWake_ms: () =>
      timers.size === 0 ? undefined : Math.min(...[...timers].map((timer) => timer.at_ms)),
  }
}

export function fakeChance(seed = 'conveyor'): Chance {
  let n = 0
  const bytes = (count: number): Buffer => {
    const out = Buffer.alloc(count)
    for (let at = 0; at < count; at += 32) {
      createHash('sha256').update(`${seed} ${n++}`).digest().copy(out, at)
    }
    return out
  }
  return { bytes, fraction: () => bytes(4).readUInt32BE(0) / 2 ** 32 }
}
