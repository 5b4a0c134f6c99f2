/**
 * Bounds the memory of unread answers per connection, per caller and in all (`answers_bytes_max`
 * and a short answer per connection). Room is reserved before the ops are applied and released once
 * the answer is read or its reader is gone.
 */
import { systemClock } from '../../core/clock.ts'
import { collect } from '../../core/collect.ts'
import { fault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { OpType } from '../../core/model.ts'

export interface AnswerAccount {
  /** Throws `overloaded`. */
  reserve(ops: readonly { readonly type?: OpType }[], caller: string): AnswerReservation
}

export interface AnswerReservation {
  /** Reserves more; false without room. */
  add(bytes: number): boolean
  /** Replaces the estimate by the final size. */
  set(bytes: number): void
  /** The answer is read or its reader gone; later calls reserve nothing. */
  release(): void
}

/** A result without its task: ref, id and description, all escaped. */
const result_bytes = 2_048
/** While sending, the engine and the server each have a copy. */
const copies = 2
/** Guaranteed to a connection without unread answers. */
const short_bytes_max = 16 * 1024

/** V8 is asked for a collection after this much. */
const collect_bytes = 64 * 1024 * 1024
/** Servers have dropped the answers by then. */
const collect_after_ms = 500

/** Returns a function that makes a connection's account; all share one total. */
export function newAnswerAccounts(limits: Limits): () => AnswerAccount {
  let held_bytes = 0
  const held_by = new Map<string, number>()
  let moved_bytes = 0

  function countMoved(bytes: number): void {
    moved_bytes += bytes
    if (moved_bytes < collect_bytes) return
    moved_bytes = 0
    systemClock.wake_at(systemClock.now_ms() + collect_after_ms, collect)
  }

  /** The tasks that a request shows are bounded together, by `answer_bytes_max`. */
  function estimate(ops: readonly { readonly type?: OpType }[]): number {
    let shown_bytes = 0
    for (const { type } of ops) if (type === 'show') shown_bytes += limits.task_bytes_max
    return ops.length * result_bytes + Math.min(shown_bytes, limits.answer_bytes_max)
  }

  return () => {
    let account_bytes = 0
    const hold = (caller: string, more_bytes: number): void => {
      held_bytes += more_bytes
      account_bytes += more_bytes
      const caller_bytes = (held_by.get(caller) ?? 0) + more_bytes
      if (caller_bytes > 0) held_by.set(caller, caller_bytes)
      else held_by.delete(caller)
    }
    const fits = (caller: string, bytes: number): boolean =>
      held_bytes + bytes <= limits.answers_bytes_max &&
      (held_by.get(caller) ?? 0) + bytes <= limits.caller_answer_bytes_max
    const hasRoom = (caller: string, bytes: number): boolean => {
      if (account_bytes === 0) return bytes <= short_bytes_max || fits(caller, bytes)
      return account_bytes + bytes <= limits.connection_answer_bytes_max && fits(caller, bytes)
    }
    return {
      reserve(ops, caller) {
        let bytes = copies * estimate(ops)
        if (!hasRoom(caller, bytes)) {
          throw fault('overloaded', 'too many answers have not been read')
        }
        let made_bytes = 0
        let is_released = false
        hold(caller, bytes)
        return {
          add(more_bytes) {
            if (is_released) return true
            if (!hasRoom(caller, copies * more_bytes)) return false
            hold(caller, copies * more_bytes)
            bytes += copies * more_bytes
            return true
          },
          set(answer_bytes) {
            if (is_released) return
            made_bytes = answer_bytes
            hold(caller, copies * made_bytes - bytes)
            bytes = copies * made_bytes
            countMoved(made_bytes)
          },
          release() {
            is_released = true
            hold(caller, -bytes)
            countMoved(made_bytes)
            bytes = 0
            made_bytes = 0
          },
        }
      },
    }
  }
}
