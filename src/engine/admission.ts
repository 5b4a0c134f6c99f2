/**
 * Whether a list of ops may come in now: the whole-request faults that the engine itself knows
 * (wire 1.4), in their order, and the bound on what waits for the disk.
 */

import { type Fault, fault, type WholeFaultCode } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import type { Store } from '../store/store.ts'

export interface Admission {
  /** Why nothing may come in now; undefined where it may. */
  refusal(): (Fault & { readonly code: WholeFaultCode }) | undefined
  /**
   * Whether the disk has room for what the engine does by itself. It goes on for a while where
   * callers are refused, so that tasks that were taken come to their end.
   */
  hasRoom(): boolean
  /** Takes a place for these, which `leave` gives back. Throws the refusal. */
  enter(ops: number, bytes: number): void
  leave(ops: number, bytes: number): void
  /** From here on `shutting_down`. */
  close(): void
}

export interface AdmissionOptions {
  readonly limits: Limits
  readonly store: Store
  readonly failure: () => Fault | undefined
}

/** What is under way waits for the disk several times: in the log, in the tree, half empty. */
const room_a_byte = 3

export function newAdmission({ limits, store, failure }: AdmissionOptions): Admission {
  let ops_waiting = 0
  let bytes_waiting = 0
  let closed = false

  function isFree(bytes_min: number, bytes = 0): boolean {
    const room = store.room()
    return room === undefined || room - room_a_byte * (bytes_waiting + bytes) >= bytes_min
  }

  function refusal(ops = 0, bytes = 0): ReturnType<Admission['refusal']> {
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
          : isFree(limits.disk_free_bytes_min, bytes)
            ? undefined
            : 'no_space'
    return code === undefined ? undefined : (fault(code) as ReturnType<Admission['refusal']>)
  }

  return {
    refusal: () => refusal(),
    hasRoom: () => isFree(limits.disk_free_bytes_min / 2),
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
