/**
 * Jobs parked because a concurrency limit is reached: per limit, oldest first. A call or a query
 * expires after a bounded time, also if parked again. Memory is bounded per limit and in all; of
 * jobs beyond that only the first time is kept, from which the list is read again.
 */
import type { Limits } from '../../core/limits.ts'
import type { JobOrder } from '../../process/logic.ts'

export interface ParkedJobs {
  /** Parks the job for one limit; or leaves it listed if there are too many. */
  park(job: ParkedJob, limit: string, now_ms: number): void
  /** Takes a task's parked job: its listed time, if any. */
  take(obj_id: string): number | undefined
  /** Takes the task of an expired call, if any. */
  takeExpired(now_ms: number): string | undefined
  expiry_ms(): number
  of(limit: string): ReadonlySet<string> | undefined
  /** Whether jobs are parked for the limit, or left listed. */
  isWaitedFor(limit: string): boolean
  /** Takes the first time of jobs left listed. */
  takeLeft(limit: string): number | undefined
  isParked(obj_id: string, at_ms: number): boolean
  count(): number
  onEnded(obj_id: string): void
  /** Calls keep their expiry, because they are parked again soon. */
  clear(): void
}

interface ParkedJob {
  readonly obj_id: string
  readonly at_ms: number
  readonly order: { readonly job: JobOrder['job'] | 'none' }
}

const expiring: readonly ParkedJob['order']['job'][] = ['call', 'db']

/** Parked jobs for each job that may run at once (`jobs_max`): for one limit, and for all. */
const parked_each = 128
const parked_in_all = 1_280

export function newParkedJobs({
  call_wait_ms_max,
  jobs_max,
}: Pick<Limits, 'call_wait_ms_max' | 'jobs_max'>): ParkedJobs {
  const each_max = parked_each * jobs_max
  const in_all_max = parked_in_all * jobs_max
  const lines = new Map<string, Set<string>>()
  const parked = new Map<string, { readonly at_ms: number; readonly limit: string }>()
  /** Limit → first time of its jobs left listed. */
  const left = new Map<string, number>()
  const expiries = new Map<string, { readonly at_ms: number; readonly expires_ms: number }>()

  function take(obj_id: string): number | undefined {
    const found = parked.get(obj_id)
    if (found === undefined) return undefined
    parked.delete(obj_id)
    const line = lines.get(found.limit)
    line?.delete(obj_id)
    if (line?.size === 0) lines.delete(found.limit)
    return found.at_ms
  }

  return {
    take,
    park({ obj_id, at_ms, order }, limit, now_ms) {
      // It may be parked for an earlier job of its task.
      take(obj_id)
      const line = lines.get(limit) ?? new Set<string>()
      if (line.size >= each_max || parked.size >= in_all_max) {
        left.set(limit, Math.min(at_ms, left.get(limit) ?? at_ms))
        return
      }
      line.add(obj_id)
      lines.set(limit, line)
      parked.set(obj_id, { at_ms, limit })
      if (!expiring.includes(order.job) || expiries.get(obj_id)?.at_ms === at_ms) return
      expiries.delete(obj_id)
      expiries.set(obj_id, { at_ms, expires_ms: now_ms + call_wait_ms_max })
    },
    takeExpired(now_ms) {
      for (const [obj_id, { expires_ms }] of expiries) {
        if (expires_ms > now_ms) return undefined
        expiries.delete(obj_id)
        if (take(obj_id) !== undefined) return obj_id
      }
      return undefined
    },
    expiry_ms() {
      const [first] = expiries.values()
      return first?.expires_ms ?? Number.POSITIVE_INFINITY
    },
    of: (limit) => lines.get(limit),
    isWaitedFor: (limit) => lines.has(limit) || left.has(limit),
    takeLeft(limit) {
      const at_ms = left.get(limit)
      left.delete(limit)
      return at_ms
    },
    isParked: (obj_id, at_ms) => parked.get(obj_id)?.at_ms === at_ms,
    count: () => parked.size,
    onEnded: (obj_id) => void expiries.delete(obj_id),
    clear() {
      lines.clear()
      parked.clear()
      left.clear()
    },
  }
}
