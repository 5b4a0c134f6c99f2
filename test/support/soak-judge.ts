/**
 * Judges figures that were sampled over a run: each is flat, or a sentence says how much it has
 * grown. The first quarter is the warm-up and is not looked at.
 *
 * Two rules, for growth by drops and growth by a jump: the Theil–Sen slope of the last three
 * quarters, times their length, is within the figure's bound; and so is the largest value of the
 * last quarter above that of the second. The slope is a median of slopes, so that single samples
 * that are off do not move it.
 */

export interface Bound {
  /** Of the median of the figure. */
  readonly share: number
  /** Added to it: what a figure moves by itself, however long the run is. */
  readonly floor: number
}

export interface Series {
  readonly name: string
  readonly bound: Bound
  /** At equal distances of time. */
  readonly values: readonly number[]
}

/** A sentence on what has grown; undefined where it is flat. */
export function growthOf({ name, bound, values }: Series): string | undefined {
  const quarter = Math.floor(values.length / 4)
  if (quarter < 2) return `${name}: ${values.length} samples are too few`
  const judged = values.slice(quarter)
  const allowed = bound.share * median(judged) + bound.floor
  const grown = slopeOf(judged) * (judged.length - 1)
  const jump = Math.max(...values.slice(-quarter)) - Math.max(...values.slice(quarter, 2 * quarter))
  if (grown <= allowed && jump <= allowed) return undefined
  const quarters = [1, 2, 3].map((n) => median(values.slice(n * quarter, (n + 1) * quarter)))
  return (
    `${name} grew by ${short(grown)}, its maximum by ${short(jump)}, where ${short(allowed)} is allowed; ` +
    `medians of the last three quarters: ${quarters.map(short).join(', ')}`
  )
}

/** The Theil–Sen slope for each step of the series. */
export function slopeOf(values: readonly number[]): number {
  const slopes = values.flatMap((from, at) =>
    values.slice(at + 1).map((to, n) => (to - from) / (n + 1)),
  )
  return median(slopes)
}

export function median(values: readonly number[]): number {
  return shareOf(values, 0.5)
}

/** The value that this share of the values do not exceed; 0 of none. */
export function shareOf(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.ceil(share * sorted.length) - 1] ?? sorted[0] ?? 0
}

export interface Latencies {
  /** Of requests, by minute. */
  readonly p99_ms: readonly number[]
  /** The same of what the machine itself took for a synced write and for a timer. */
  readonly machine_ms: readonly number[]
}

/**
 * A sentence where the p99 of the last minute is not within 1.5 of the second one's.
 *
 * Where the machine itself was disturbed in one of these two minutes, they tell nothing of the server.
 * Then the p99 of every minute is taken as a multiple of the machine's own, and the median of the
 * last quarter must be within 1.5 of that of the second.
 */
export function slowdownOf({ p99_ms, machine_ms }: Latencies): string | undefined {
  const [early = 0, late = 0] = [p99_ms[1], p99_ms.at(-1)]
  if (late <= early * slowdown_max) return undefined
  const grew = `p99 grew from ${early.toFixed(1)} to ${late.toFixed(1)} ms`
  const usual_ms = shareOf(machine_ms, 0.25)
  const worst_ms = Math.max(machine_ms[1] ?? 0, machine_ms.at(-1) ?? 0)
  if (worst_ms <= usual_ms * slowdown_max) return grew
  const multiples = p99_ms.map((value, n) => value / (machine_ms[n] || 1))
  const quarter = Math.max(1, Math.floor(multiples.length / 4))
  const second = median(multiples.slice(quarter, 2 * quarter))
  const last = median(multiples.slice(-quarter))
  if (last <= second * slowdown_max) return undefined
  return `${grew}, and from ${second.toFixed(1)} to ${last.toFixed(1)} times the machine's own`
}

const slowdown_max = 1.5

/** With its unit left out: 12345678 is 12.3M. */
export function short(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e6) return `${(value / 1e6).toFixed(1)}M`
  return size >= 1e4 ? `${(value / 1e3).toFixed(1)}k` : `${Math.round(value * 10) / 10}`
}
