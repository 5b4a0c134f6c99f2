/**
 * Whether a list of ops may come in now: the whole-request faults that the engine itself knows
 * (wire 1.4), in their order, and the bound on what waits for the disk.
 */
import type { Store } from '../store/store.ts'
import type { Clock } from '../words/clock.ts'
import { type Fault, fault, type WholeFaultCode } from '../words/faults.ts'
import type { Limits } from '../words/limits.ts'

export interface Admission {
  /** Why nothing may come in now; undefined where it may. */
  refusal(): (Fault & { readonly code: WholeFaultCode }) | undefined
  /** Takes a place for these, which `leave` gives back. Throws the refusal. */
  enter(ops: number, bytes: number): void
  leave(ops: number, bytes: number): void
  /** From here on `shutting_down`. */
  close(): void
}

export interface AdmissionPort {
  readonly limits: Limits
  readonly clock: Clock
  readonly store: Store
  readonly failure: () => Fault | undefined
}

const space_asked_every_ms = 1_000

export function newAdmission({ limits, clock, store, failure }: AdmissionPort): Admission {
  let ops_waiting = 0
  let bytes_waiting = 0
  let closed = false
  let has_space = true
  let asked_ms = Number.NEGATIVE_INFINITY

  /** Asks the disk now and then; the answer counts for the requests behind this one. */
  function watchSpace(): void {
    const now_ms = clock.now_ms()
    if (Math.abs(now_ms - asked_ms) < space_asked_every_ms) return
    asked_ms = now_ms
    store.freeBytes().then(
      (free) => {
        has_space = free === undefined || free >= limits.disk_free_bytes_min
      },
      () => {},
    )
  }

  function refusal(ops = 0, bytes = 0): ReturnType<Admission['refusal']> {
    watchSpace()
    const failed = failure()
    const is_full =
      ops_waiting + ops > limits.queue_ops_max ||
      (bytes_waiting > 0 && bytes_waiting + bytes > limits.queue_bytes_max)
    const code: WholeFaultCode | undefined = closed
      ? 'shutting_down'
      : failed !== undefined
        ? 'store_failed'
        : is_full
          ? 'overloaded'
          : has_space
            ? undefined
            : 'no_space'
    return code === undefined ? undefined : (fault(code) as ReturnType<Admission['refusal']>)
  }

  return {
    refusal: () => refusal(),
    enter(ops, bytes) {
      const refused = refusal(ops, bytes)
      if (refused !== undefined) throw refused
      ops_waiting += ops
      bytes_waiting += bytes
    },
    leave(ops, bytes) {
      ops_waiting -= ops
      bytes_waiting -= bytes
    },
    close() {
      closed = true
    },
  }
}
