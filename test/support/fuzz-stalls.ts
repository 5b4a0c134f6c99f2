/**
 * Watches the event loop: for how long it ran one thing. What counts is the time in which this
 * process was at work, because on a busy machine it waits for its turn too.
 */

export interface Stalls {
  /** The longest since the last call. */
  take_ms(): number
  longest_ms(): number
  end(): void
}

const every_ms = 50

export function watchStalls(): Stalls {
  let [taken_ms, longest_ms] = [0, 0]
  let at_ms = performance.now()
  let used = process.cpuUsage()
  const look = (): void => {
    const now_ms = performance.now()
    const { user, system } = process.cpuUsage(used)
    const stood_ms = Math.round(Math.min(now_ms - at_ms, (user + system) / 1_000) - every_ms)
    taken_ms = Math.max(taken_ms, stood_ms)
    longest_ms = Math.max(longest_ms, stood_ms)
    at_ms = now_ms
    used = process.cpuUsage()
  }
  const timer = setInterval(look, every_ms)
  return {
    take_ms() {
      const stall_ms = taken_ms
      taken_ms = 0
      return stall_ms
    },
    longest_ms: () => longest_ms,
    end: () => clearInterval(timer),
  }
}
