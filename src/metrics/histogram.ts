/**
 * A histogram of durations: one array of counts. An observation is a search among 17 bounds and two
 * additions, because it happens with each request and each commit.
 */
import { duration_bounds_s } from './table.ts'

export interface Histogram {
  observe(ms: number): void
  /** How many took at most each bound, the last one infinite; and all in seconds. */
  read(): { readonly up_to: readonly number[]; readonly sum_s: number }
}

const bounds_ms = duration_bounds_s.map((bound_s) => bound_s * 1000)

export function newHistogram(): Histogram {
  const counts = new Float64Array(bounds_ms.length + 1)
  let sum_ms = 0
  return {
    observe(ms) {
      let at = 0
      while (at < bounds_ms.length && ms > (bounds_ms[at] as number)) at++
      counts[at] = (counts[at] as number) + 1
      sum_ms += ms
    },
    read() {
      let count = 0
      return { up_to: Array.from(counts, (one) => (count += one)), sum_s: sum_ms / 1000 }
    },
  }
}
