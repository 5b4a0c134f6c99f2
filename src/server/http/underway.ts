/** Counts the requests that are under way, so that a server that drains can wait for their end. */
import { systemClock, within } from '../../core/clock.ts'

export interface Underway {
  begin(): void
  end(count?: number): void
  /** Resolves once none is under way, or after `ms_max`. */
  quiet(ms_max: number): Promise<void>
}

export function newUnderway(): Underway {
  let underway = 0
  let onQuiet = (): void => {}
  return {
    begin() {
      underway++
    },
    end(count = 1) {
      underway -= count
      if (underway === 0) onQuiet()
    },
    async quiet(ms_max) {
      if (underway === 0) return
      const quiet = new Promise<void>((resolve) => {
        onQuiet = resolve
      })
      await within(systemClock, ms_max, quiet)
    },
  }
}
