/**
 * Decides whether a request may enter: the whole-request faults that the engine finds, in the order
 * of the fault table, the rate of a user, and the bounds on ops that wait for the disk.
 */

import { bytesOf } from '../codec/json.ts'
import { isOp } from '../codec/op.ts'
import type { Clock } from '../core/clock.ts'
import { type Fault, fault, type WholeFaultCode } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Caller, Op, OpResult } from '../core/model.ts'
import type { Store } from '../store/store.ts'
import { newRateLimit } from './rate-limit.ts'

export interface Admission {
  /** `ok`, or why no request may enter now. */
  health(): 'ok' | WholeFaultCode
  /** Throws `rate_limited` while the user is over the rate. */
  checkRate(user: string): void
  /**
   * Reserves room for a request and returns the bytes that `leave` gives back. Throws the first
   * whole-request fault that applies.
   */
  enter(ops: readonly (Op | OpResult)[], caller: Caller): number
  leave(op_count: number, bytes: number): void
  /**
   * Whether the disk has room for timers and jobs. Its bound is half of that for callers, so that
   * accepted tasks still end on a disk that is nearly full.
   */
  hasRoom(): boolean
  /** Every later request is refused with `shutting_down`. */
  close(): void
}

export interface AdmissionOptions {
  readonly limits: Limits
  readonly store: Store
  readonly clock: Clock
  /** Why the store has stopped writing, if it has. */
  readonly failure: () => Fault | undefined
}

/** How often timers and jobs check a full disk again. */
export const full_disk_ms = 1_000

/** Disk bytes for a byte that waits: it is written to the log and to pages that are half empty. */
const disk_bytes_per_byte = 3

export function newAdmission(options: AdmissionOptions): Admission {
  const { limits, store, clock, failure } = options
  const rate = newRateLimit(limits.rate_ops_per_s, () => clock.now_ms())
  let ops_waiting = 0
  let bytes_waiting = 0
  let is_closed = false

  function hasDiskSpace(free_bytes_min: number, bytes = 0): boolean {
    const free_bytes = store.freeBytes()
    if (free_bytes === undefined) return true
    return free_bytes - disk_bytes_per_byte * (bytes_waiting + bytes) >= free_bytes_min
  }

  function isQueueFull(ops: number, bytes: number): boolean {
    if (ops_waiting + ops > limits.queue_ops_max) return true
    return bytes_waiting > 0 && bytes_waiting + bytes > limits.queue_bytes_max
  }

  function refusal(ops: number, bytes: number): WholeFaultCode | undefined {
    if (is_closed) return 'shutting_down'
    if (failure() !== undefined) return 'store_failed'
    if (isQueueFull(ops, bytes)) return 'overloaded'
    return hasDiskSpace(limits.disk_free_bytes_min, bytes) ? undefined : 'no_space'
  }

  return {
    health: () => refusal(0, 0) ?? 'ok',
    checkRate: rate.check,
    enter(ops, { user, payer = user }) {
      let bytes = 0
      for (const op of ops) bytes += dataBytesOf(op)
      if (payer !== undefined) rate.check(payer)
      const code = refusal(ops.length, bytes)
      if (code !== undefined) throw fault(code)
      if (payer !== undefined) rate.take(payer, ops.length)
      ops_waiting += ops.length
      bytes_waiting += bytes
      return bytes
    },
    leave(op_count, bytes) {
      ops_waiting -= op_count
      bytes_waiting -= bytes
    },
    hasRoom: () => hasDiskSpace(limits.disk_free_bytes_min / 2),
    close() {
      is_closed = true
    },
  }
}

/** About what an op takes in memory until it is durable. */
function dataBytesOf(op: Op | OpResult): number {
  return isOp(op) && op.type !== 'show' ? bytesOf(op.data.text) : 0
}
