/**
 * The rate of a user: a bucket of ops that fills with `rate_ops_per_s` and holds one second's
 * worth.
 *
 * A request is let in while its user's bucket is not empty, and then takes as many ops as it has,
 * even into debt: so the long-run rate holds, a batch larger than the bucket is not refused for
 * ever, and the answer is known before the body is parsed. Only verified users get a bucket, and a
 * full bucket is forgotten, since a new one would be full as well.
 */
import { fault } from '../core/faults.ts'

export interface RateLimit {
  /** Throws `rate_limited`, and says for how long, while the user is over the rate. */
  check(user: string): void
  /** Counts ops of a request that was let in. */
  take(user: string, ops: number): void
}

interface Bucket {
  ops: number
  at_ms: number
}

/** A rate of 0 limits nothing. */
export function rateLimit(ops_per_s: number, now_ms: () => number): RateLimit {
  if (ops_per_s === 0) return { check() {}, take() {} }
  const buckets = new Map<string, Bucket>()
  let sweep_at = 1024

  const fill = (bucket: Bucket, now: number): void => {
    const passed_ms = Math.max(0, now - bucket.at_ms)
    bucket.ops = Math.min(ops_per_s, bucket.ops + (passed_ms * ops_per_s) / 1000)
    bucket.at_ms = now
  }
  const sweep = (now: number): void => {
    for (const [user, bucket] of buckets) {
      fill(bucket, now)
      if (bucket.ops === ops_per_s) buckets.delete(user)
    }
    sweep_at = Math.max(1024, 2 * buckets.size)
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
      if (buckets.size >= sweep_at) sweep(now)
      const bucket = buckets.get(user) ?? { ops: ops_per_s, at_ms: now }
      bucket.ops -= ops
      buckets.set(user, bucket)
    },
  }
}
