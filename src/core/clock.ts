/**
 * Time and chance. Only this file reads the system's clock, sets timers or draws random numbers;
 * all other code is given a Clock and a Chance, so that a test can replace them.
 */
import { randomBytes } from 'node:crypto'

export interface Clock {
  /** Milliseconds since 1970 (UTC). May step back when the system's clock does. */
  now_ms(): number
  /** Calls `fn` once at or soon after `at_ms`, never early. The returned function cancels it. */
  wake_at(at_ms: number, fn: () => void): () => void
}

export interface Chance {
  bytes(count: number): Buffer
  /** A double in [0, 1). */
  fraction(): number
}

/**
 * The longest delay of one Node timer, so that a changed clock or a suspend is noticed in time. A
 * delay of 2^31 ms or more would become 1 ms.
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

/** Monotonic: counts from the start of the process and is never set. Leases are measured by it. */
export const steadyClock: Clock = {
  now_ms: () => performance.now(),
  wake_at(at_ms, fn) {
    const timer = setTimeout(fn, Math.max(0, Math.ceil(at_ms - performance.now())))
    timer.unref()
    return () => clearTimeout(timer)
  },
}

export const systemChance: Chance = {
  bytes: (count) => randomBytes(count),
  fraction: () => Math.random(),
}

/** One timer for the earliest of many times. */
export interface Alarm {
  /** Rings at this time or earlier; `ring` has to check what is due. */
  ringBy(at_ms: number): void
  clear(): void
}

export function newAlarm(clock: Clock, ring: () => void): Alarm {
  let rings_ms = Number.POSITIVE_INFINITY
  let cancel = (): void => {}
  return {
    ringBy(at_ms) {
      // A timer that is late, because the clock was set forward, is set again.
      if (at_ms >= rings_ms && rings_ms > clock.now_ms()) return
      cancel()
      rings_ms = Math.min(at_ms, rings_ms)
      cancel = clock.wake_at(rings_ms, () => {
        rings_ms = Number.POSITIVE_INFINITY
        ring()
      })
    },
    clear() {
      cancel()
      rings_ms = Number.POSITIVE_INFINITY
    },
  }
}

/** The value of `work`, or `late` if it takes longer than `ms_max`. */
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

/** Resolves after `ms`, or once `cancelled` settles. */
export function pause(clock: Clock, ms: number, cancelled?: Promise<unknown>): Promise<unknown> {
  return within(clock, ms, cancelled ?? new Promise(() => {}))
}

/** Keeps the event loop alive until the returned function is called; a clock's timers do not. */
export function keepAlive(): () => void {
  const timer = setInterval(() => {}, sleep_ms_max)
  return () => clearInterval(timer)
}

/**
 * Turns of the event loop, independent of time. Bound when this module loads, so fake timers that a
 * test installs later do not stop the engine.
 */
export const { setImmediate: onNextTurn, clearImmediate: dropTurn } = globalThis

/** Yields to the event loop, between two slices of long work. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    onNextTurn(resolve)
  })
}
