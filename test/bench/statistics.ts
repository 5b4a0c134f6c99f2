/**
 * The measurements of a slot and the summary of several slots, as pure functions.
 */

/** What one side did in one slot; latencies are of each request that counts. */
export interface Slot {
  readonly requests: number
  readonly ops: number
  readonly seconds: number
  readonly ops_per_s: number
  readonly p50_ms: number
  readonly p99_ms: number
  readonly worst_ms: number
  /** Including the warm-up: from the first request to the last answer. */
  readonly whole: { readonly ops: number; readonly seconds: number }
}

/** A side's process and files after a slot. */
export interface Footprint {
  readonly rss_bytes: number
  /** The part of rss that is no mapped file; 0 if the system does not report it. */
  readonly anonymous_bytes: number
  readonly heap_bytes: number
  /** The data file; then all files beside it except its lock. */
  readonly file_bytes: number
  readonly beside_bytes: number
  readonly tasks: number
}

/** A slot with the measurements that only some sides take. */
export interface SideSlot extends Slot {
  readonly footprint?: Footprint
  /** CPU of the side's process over `whole`, all threads; in-process it includes the load. */
  readonly cpu_s?: number
  /** How long the process took to become idle after its last answer. */
  readonly settle_s?: number
}

export interface Summary {
  readonly median: number
  readonly min: number
  readonly max: number
}

export function slotOf(
  latencies_ms: readonly number[],
  ops_each: number,
  seconds: number,
  whole: Slot['whole'],
): Slot {
  const sorted_ms = Float64Array.from(latencies_ms).sort()
  const requests = sorted_ms.length
  const ops = requests * ops_each
  return {
    requests,
    ops,
    seconds,
    ops_per_s: ops / seconds,
    p50_ms: quantile(sorted_ms, 0.5),
    p99_ms: quantile(sorted_ms, 0.99),
    worst_ms: quantile(sorted_ms, 1),
    whole,
  }
}

export function summaryOf(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b)
  return { median: quantile(sorted, 0.5), min: quantile(sorted, 0), max: quantile(sorted, 1) }
}

/** The value that `share` of the sorted values do not exceed; the median may be a mean of two. */
function quantile(sorted: ArrayLike<number>, share: number): number {
  if (sorted.length === 0) return Number.NaN
  const at = share * (sorted.length - 1)
  if (share !== 0.5) return sorted[Math.ceil(at)] as number
  return ((sorted[Math.floor(at)] as number) + (sorted[Math.ceil(at)] as number)) / 2
}
