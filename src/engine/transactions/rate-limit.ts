/**
 * The rate limit: a token bucket of ops for each user, each certificate that acts as no user, and
 * each remote address that sends requests without either. It fills at `rate_ops_per_s` and holds
 * one second's worth.
 *
 * A request enters while the bucket of its user is not empty, and may take it below zero. So the
 * long-run rate holds, a batch larger than the bucket can still enter, and a server can refuse
 * before it parses the body. Only verified requests get a bucket. Full buckets are removed, because
 * a new one is full too.
 */
import { fault } from '../../core/faults.ts'

export interface RateLimit {
  /** Throws `rate_limited` with `retry_after_s` while the user is over the rate. */
  check(user: string): void
  /** Takes the ops of a request that has entered. */
  take(user: string, ops: number): void
}

interface Bucket {
  ops: number
  at_ms: number
}

const sweep_buckets_min = 1024

/** A rate of 0 limits nothing. */
export function newRateLimit(ops_per_s: number, now_ms: () => number): RateLimit {
  if (ops_per_s === 0) return { check() {}, take() {} }
  const buckets = new Map<string, Bucket>()
  let sweep_at = sweep_buckets_min

  const fill = (bucket: Bucket, now: number): void => {
    const passed_ms = Math.max(0, now - bucket.at_ms)
    bucket.ops = Math.min(ops_per_s, bucket.ops + (passed_ms * ops_per_s) / 1000)
    bucket.at_ms = now
  }
  const removeFull = (now: number): void => {
    for (const [user, bucket] of buckets) {
      fill(bucket, now)
      if (bucket.ops === ops_per_s) buckets.delete(user)
    }
    sweep_at = Math.max(sweep_buckets_min, 2 * buckets.size)
  }
  return {
    check(user) {
      const bucket = buckets.get(user)
      if (bucket === undefined) return
      fill(bucket, now_ms())
      if (bucket.ops > 0) return
      const retry_after_s = Math.max(1, Math.ceil(-bucket.ops / ops_per_s))
      throw fault('rate_limited', undefined, { retry_after_s })
    },
    take(user, ops) {
      const now = now_ms()
      if (buckets.size >= sweep_at) removeFull(now)
      const bucket = buckets.get(user) ?? { ops: ops_per_s, at_ms: now }
      bucket.ops -= ops
      buckets.set(user, bucket)
    },
  }
}
