/**
 * Whether two lists of times differ, as dudect judges: Welch's t of their means, also of what is
 * below a few percentiles of all of them, because interrupts and collections of memory make the
 * largest times and hide a small difference. Below 4.5 nothing is seen.
 */

export const t_max = 4.5

export interface Welch {
  /** The largest in size, by how far the first list is above. */
  readonly t: number
  /** Of the means, where `t` was found. */
  readonly difference_ns: number
}

const cropped_at = [1, 0.99, 0.9, 0.5]

export function welchOf(one: readonly number[], other: readonly number[]): Welch {
  const sorted = Float64Array.from([...one, ...other]).sort()
  let worst: Welch = { t: 0, difference_ns: 0 }
  for (const share of cropped_at) {
    const limit = sorted[Math.ceil(share * sorted.length) - 1] ?? 0
    const [first, second] = [momentsOf(one, limit), momentsOf(other, limit)]
    const difference_ns = first.mean - second.mean
    const t = difference_ns / Math.sqrt(first.error + second.error) || 0
    if (Math.abs(t) > Math.abs(worst.t)) worst = { t, difference_ns }
  }
  return worst
}

/** The mean of what is not over the limit, and the variance of that mean. */
function momentsOf(times: readonly number[], limit: number): { mean: number; error: number } {
  let [count, mean, squares] = [0, 0, 0]
  for (const time of times) {
    if (time > limit) continue
    const from_mean = time - mean
    mean += from_mean / ++count
    squares += from_mean * (time - mean)
  }
  return { mean, error: squares / (count - 1) / count }
}
