/**
 * Numbers out of numbers: what a slot measured, and the middle of several slots. No clock in here.
 */

/** What one side did in one slot. */
export interface Slot {
  readonly requests: number
  readonly ops: number
  readonly seconds: number
  readonly ops_per_s: number
  /** Of requests, in milliseconds. */
  readonly p50_ms: number
  readonly p99_ms: number
  /** With the lead, from the first request sent to the last answer. */
  readonly whole: { readonly ops: number; readonly seconds: number }
}

/** What a side's process and file looked like behind a slot. */
export interface Footprint {
  readonly rss_bytes: number
  /** Of rss what is no mapped file; 0 where the system does not tell. */
  readonly anonymous_bytes: number
  readonly heap_bytes: number
  /** The data file, and what lies beside it but for its lock. */
  readonly file_bytes: number
  readonly beside_bytes: number
  readonly tasks: number
}

/** A slot of any side; what only some sides know is missing with the others. */
export interface SideSlot extends Slot {
  readonly footprint?: Footprint
  /** What the side's own process used for the whole, all its threads; in-process that includes the load. */
  readonly cpu_s?: number
  /** How long the process still worked by itself after the last answer. */
  readonly settle_s?: number
}

export interface Summary {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** `latencies_ms`: one for each request that counts; is sorted in place. */
export function slotOf(
  latencies_ms: number[],
  ops_each: number,
  seconds: number,
  whole: Slot['whole'],
): Slot {
  latencies_ms.sort((a, b) => a - b)
  const requests = latencies_ms.length
  const ops = requests * ops_each
  return {
    requests,
    ops,
    seconds,
    ops_per_s: ops / seconds,
    p50_ms: quantile(latencies_ms, 0.5),
    p99_ms: quantile(latencies_ms, 0.99),
    whole,
  }
}

export function summaryOf(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b)
  return { median: quantile(sorted, 0.5), min: quantile(sorted, 0), max: quantile(sorted, 1) }
}

/** The value that `share` of the sorted values do not exceed; the mean of two in an even middle. */
function quantile(sorted: readonly number[], share: number): number {
  if (sorted.length === 0) return Number.NaN
  const at = share * (sorted.length - 1)
  if (share !== 0.5) return sorted[Math.ceil(at)] as number
  return ((sorted[Math.floor(at)] as number) + (sorted[Math.ceil(at)] as number)) / 2
}
