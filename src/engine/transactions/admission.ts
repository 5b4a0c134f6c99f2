/**
 * Admits requests: whole-request faults in the order of the fault table, the rate of a user, and
 * the bounds on ops that wait for the disk. On a full queue a server's request is refused, because
 * its caller can retry; a call of this process waits in line, bounded by memory, and servers are
 * refused meanwhile. While the store is unavailable every request is refused.
 */
import { bytesOf } from '../../codec/json.ts'
import { isOp } from '../../codec/op.ts'
import type { Clock } from '../../core/clock.ts'
import { type Fault, fault, type WholeFaultCode } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { Caller, Op, OpResult } from '../../core/model.ts'
import type { Store } from '../../store/store.ts'

export interface Admission {
  /** `ok`, or why no server request, even of a single op, may enter now. */
  health(): 'ok' | WholeFaultCode
  checkRate(user: string): void
  /** Charges the caller's rate for one op. Throws `rate_limited`. */
  payForRead(caller: Caller): void
  /**
   * Reserves room; returns the bytes for `leave`, or undefined if the request must `wait`. Throws
   * the first whole-request fault. `frees_room` also enters on a full disk.
   */
  enter(
    ops: readonly (Op | OpResult)[],
    caller: Caller,
    may_wait: boolean,
    frees_room?: boolean,
  ): number | undefined
  /** Calls `start` once room is reserved, or `refuse` with the first fault. */
  wait(
    ops: readonly (Op | OpResult)[],
    start: (bytes: number) => void,
    refuse: (reason: Fault) => void,
  ): void
  leave(op_count: number, bytes: number): void
  hasLine(): boolean
  /** Entered but not durable. */
  waiting(): { readonly ops: number; readonly bytes: number }
  /** Disk room for timers and jobs: half the bound of callers, so accepted tasks still end. */
  hasRoom(): boolean
  /** From now on admits only the embedder's requests. */
  drain(): void
  /** Refuses all requests, also waiting ones, with `shutting_down`. */
  close(): void
}

export interface AdmissionOptions {
  readonly limits: Limits
  readonly store: Store
  readonly clock: Clock
  /** Why the store has stopped writing, if so. */
  readonly failure: () => Fault | undefined
}

/** The interval at which timers and jobs check a full disk again. */
export const full_disk_ms = 1_000

/** A waiting byte goes to the commit log and to half-empty pages. */
const disk_bytes_per_byte = 3

/** About what a waiting op takes beside its data. */
const waiting_op_bytes = 1_536

interface Waiting {
  readonly ops: number
  readonly bytes: number
  readonly start: (bytes: number) => void
  readonly refuse: (reason: Fault) => void
  next: Waiting | undefined
}

export function newAdmission(options: AdmissionOptions): Admission {
  const { limits, store, clock, failure } = options
  const rate = newRateLimit(limits.rate_ops_per_s, () => clock.now_ms())
  let ops_waiting = 0
  let bytes_waiting = 0
  let first: Waiting | undefined
  let last: Waiting | undefined
  let line_bytes = 0
  let is_draining = false
  let is_closed = false

  function hasDiskSpace(free_bytes_min: number, bytes = 0): boolean {
    return store.hasRoom(free_bytes_min + disk_bytes_per_byte * (bytes_waiting + bytes))
  }

  const isAway = (): boolean => store.unavailable() !== undefined

  function isQueueFull(ops: number, bytes: number): boolean {
    if (ops_waiting + ops > limits.queue_ops_max) return true
    return bytes_waiting > 0 && bytes_waiting + bytes > limits.queue_bytes_max
  }

  function refusal(is_full: boolean, bytes: number): WholeFaultCode | undefined {
    if (is_closed) return 'shutting_down'
    if (failure() !== undefined) return 'store_failed'
    if (is_full || isAway()) return 'overloaded'
    const has_room = !store.isFull() && hasDiskSpace(limits.disk_free_bytes_min, bytes)
    return has_room ? undefined : 'no_space'
  }

  /** Whether these ops may join the line; those that never fit may not. */
  function fitsLine(ops: number, bytes: number): boolean {
    if (ops > limits.queue_ops_max) return false
    return line_bytes + bytes + ops * waiting_op_bytes <= limits.waiting_bytes_max
  }

  /** Starts or refuses waiting calls, as far as there is room. */
  function moveLine(): void {
    while (first !== undefined && (is_closed || !isQueueFull(first.ops, first.bytes))) {
      const { ops, bytes, start, refuse, next } = first
      first = next
      if (first === undefined) last = undefined
      line_bytes -= bytes + ops * waiting_op_bytes
      const code = refusal(false, bytes)
      if (code !== undefined) {
        refuse(fault(code))
        continue
      }
      ops_waiting += ops
      bytes_waiting += bytes
      start(bytes)
    }
  }

  return {
    health: () => (is_draining ? 'shutting_down' : (refusal(isQueueFull(1, 1), 0) ?? 'ok')),
    checkRate: rate.check,
    payForRead({ user, payer = user }) {
      if (payer === undefined) return
      rate.check(payer)
      rate.take(payer, 1)
    },
    enter(ops, { user, payer = user }, may_wait, frees_room = false) {
      const bytes = bytesOfAll(ops)
      if (payer !== undefined) rate.check(payer)
      const is_full = first !== undefined || isQueueFull(ops.length, bytes)
      const reason = is_draining && !may_wait ? 'shutting_down' : refusal(is_full, bytes)
      const needs_none = reason === 'no_space' && (frees_room || ops.every(isRead))
      const code = needs_none ? undefined : reason
      const must_wait =
        code === 'overloaded' && may_wait && !isAway() && fitsLine(ops.length, bytes)
      if (code !== undefined && !must_wait) throw fault(code)
      if (payer !== undefined) rate.take(payer, ops.length)
      if (must_wait) return undefined
      ops_waiting += ops.length
      bytes_waiting += bytes
      return bytes
    },
    wait(ops, start, refuse) {
      const one = { ops: ops.length, bytes: bytesOfAll(ops), start, refuse, next: undefined }
      line_bytes += one.bytes + one.ops * waiting_op_bytes
      if (last === undefined) first = one
      else last.next = one
      last = one
    },
    leave(op_count, bytes) {
      ops_waiting -= op_count
      bytes_waiting -= bytes
      if (first !== undefined) moveLine()
    },
    hasLine: () => first !== undefined,
    waiting: () => ({ ops: ops_waiting, bytes: bytes_waiting }),
    hasRoom: () => !isAway() && hasDiskSpace(limits.disk_free_bytes_min / 2),
    drain() {
      is_draining = true
    },
    close() {
      is_closed = true
      moveLine()
    },
  }
}

export const isRead = (op: Op | OpResult): boolean => !isOp(op) || op.type === 'show'

/** About what ops take in memory until durable. */
function bytesOfAll(ops: readonly (Op | OpResult)[]): number {
  let bytes = 0
  for (const op of ops) if (isOp(op) && op.type !== 'show') bytes += bytesOf(op.data.text)
  return bytes
}

export interface RateLimit {
  check(user: string): void
  take(user: string, ops: number): void
}

interface Bucket {
  ops: number
  at_ms: number
}

const sweep_buckets_min = 1024

/** Rate 0: unlimited. */
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
