/**
 * Time and chance, as things that are handed in. This file alone may read the system's clock, set a
 * timer or draw a random number; everything else asks what it was given, so that a test can give it
 * another.
 */
import { randomBytes } from 'node:crypto'

export interface Clock {
  /** Milliseconds since 1970 (UTC). May step back when the system's clock does. */
  now_ms(): number
  /**
   * Calls `fn` once at or soon after `at_ms`; the answer takes it back. Never early by this clock.
   */
  wake_at(at_ms: number, fn: () => void): () => void
}

export interface Chance {
  bytes(count: number): Buffer
  /** A double in [0, 1). */
  fraction(): number
}

/**
 * The longest sleep. A timer of Node counts time of its own, so a clock that is set forward, or a
 * machine that slept, is noticed only in between; and a delay of 2^31 ms or more would be 1 ms.
 */
export const sleep_ms_max = 60_000

export const systemClock: Clock = {
  now_ms: () => Date.now(),
  wake_at(at_ms, fn) {
    let timer: NodeJS.Timeout
    const arm = (): void => {
      const left_ms = at_ms - Date.now()
      timer = setTimeout(
        () => (Date.now() < at_ms ? arm() : fn()),
        Math.min(Math.max(left_ms, 0), sleep_ms_max),
      )
      timer.unref()
    }
    arm()
    return () => clearTimeout(timer)
  },
}

export const systemChance: Chance = {
  bytes: (count) => randomBytes(count),
  fraction: () => Math.random(),
}

/** What `work` comes to, or `late` where it takes longer than `ms_max`. */
export async function within<T>(
  clock: Clock,
  ms_max: number,
  work: Promise<T>,
): Promise<T | 'late'> {
  let cancel = (): void => {}
  const late = new Promise<'late'>((resolve) => {
    cancel = clock.wake_at(clock.now_ms() + ms_max, () => resolve('late'))
  })
  return Promise.race([work, late]).finally(cancel)
}

/** Lets what else the process has to do have its turn, between two slices of long work. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
