/**
 * Durations of the last ten seconds, for their median and their slowest hundredth. They are
 * counted in buckets of a fifth of their size, second by second, in memory of a fixed size.
 */
import { countAt, countsUpTo, newRollingCount } from '../../core/rolling-count.ts'

export interface Durations {
  add(ms: number): void
  read(): { readonly p50: number; readonly p99: number } | undefined
}

const seconds = 10
const first_ms = 0.01
const growth = 1.2
const buckets = 90

export function newDurations(now_ms: () => number): Durations {
  const counts = Array.from({ length: buckets }, () => newRollingCount(seconds))
  const second = (): number => Math.floor(now_ms() / 1_000)
  return {
    add(ms) {
      const at = Math.ceil(Math.log(Math.max(ms, first_ms) / first_ms) / Math.log(growth))
      const bucket = counts[Math.min(at, buckets - 1)]
      if (bucket !== undefined) countAt(bucket, second())
    },
    read() {
      const now = second()
      const sums = counts.map((bucket) => countsUpTo(bucket, now).reduce((sum, one) => sum + one))
      const all = sums.reduce((sum, one) => sum + one)
      if (all === 0) return undefined
      const part = (of: number): number => {
        let left = Math.ceil(all * of)
        let at = -1
        while (left > 0) left -= sums[++at] as number
        return Number((first_ms * growth ** at).toPrecision(2))
      }
      return { p50: part(0.5), p99: part(0.99) }
    },
  }
}
