/**
 * Calls that wait for their message, each as long as any other: so the first to have come is the
 * first that has waited too long, and one timer serves them all.
 */
import { systemClock } from '../../words/clock.ts'

export interface Waits {
  /** Calls `fn` once it has waited for so long. */
  add(fn: () => void): Wait
  delete(wait: Wait): void
}

export interface Wait {
  readonly until_ms: number
  readonly fn: () => void
}

export function newWaits(ms_max: number): Waits {
  /** In the order of their ends. */
  const waits = new Set<Wait>()
  let is_armed = false

  const look = (): void => {
    is_armed = false
    for (const wait of waits) {
      if (wait.until_ms > systemClock.now_ms()) break
      waits.delete(wait)
      wait.fn()
    }
    arm()
  }
  /** One timer at a time: where the wait it was for has gone, it finds the next one. */
  const arm = (): void => {
    const [first] = waits
    if (is_armed || first === undefined) return
    is_armed = true
    systemClock.wake_at(first.until_ms, look)
  }

  return {
    add(fn) {
      const wait = { until_ms: systemClock.now_ms() + ms_max, fn }
      waits.add(wait)
      arm()
      return wait
    },
    delete: (wait) => waits.delete(wait),
  }
}
