/**
 * Answers that are made and not yet read (wire 1.8): the room that each will take is reserved
 * before anything of its request is applied, and given back once its reader has it or has gone. So
 * a caller who asks for much and reads nothing costs no more than his connection's share, and all
 * of them together no more than there is.
 */

import { systemClock } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'

/** Of one connection. */
export interface AnswerAccount {
  /** For the answer to these ops, as they were sent. Throws `overloaded` where there is none. */
  reserve(ops: readonly unknown[]): AnswerReservation
}

export interface AnswerReservation {
  /** The answer is there, and takes so much. */
  set(bytes: number): void
  /** It has been read, or never will be. A second call does nothing. */
  release(): void
}

/** What a result takes beside a task's data: its ref, id and description, all escaped. */
const result_bytes = 2_048
/** While it is made and sent it is there twice: as it is kept here, and as a server has it. */
const copies = 2
/** Such an answer is let in however much others hold, where its connection has read all before. */
const short_bytes_max = 16 * 1024

/** Of answers made or read since V8 was last asked to look for what it can free. */
const collect_bytes = 64 * 1024 * 1024
/** By then servers have let go of what they were told is read. */
const collect_after_ms = 500

/** V8 looks when memory is asked for, and this costs none, for nothing is written to it. */
function collect(): void {
  void new ArrayBuffer(2 * collect_bytes)
}

/** A function that makes accounts; all of them share one total. */
export function newAnswers(limits: Limits): () => AnswerAccount {
  let held_bytes = 0
  let moved_bytes = 0

  function note(bytes: number): void {
    moved_bytes += bytes
    if (moved_bytes < collect_bytes) return
    moved_bytes = 0
    systemClock.wake_at(systemClock.now_ms() + collect_after_ms, collect)
  }

  /** The tasks of shows are bounded together, by the engine. */
  function estimate(ops: readonly unknown[]): number {
    let shown_bytes = 0
    for (const op of ops) {
      if ((op as { type?: unknown } | null)?.type === 'show') shown_bytes += limits.task_bytes_max
    }
    return ops.length * result_bytes + Math.min(shown_bytes, limits.answer_bytes_max)
  }

  return () => {
    let mine_bytes = 0
    const hold = (more_bytes: number): void => {
      held_bytes += more_bytes
      mine_bytes += more_bytes
    }
    const hasRoom = (bytes: number): boolean => {
      if (mine_bytes === 0) return bytes <= short_bytes_max || fits(held_bytes + bytes)
      return mine_bytes + bytes <= limits.connection_answer_bytes_max && fits(held_bytes + bytes)
    }
    const fits = (bytes: number): boolean => bytes <= limits.answers_bytes_max
    return {
      reserve(ops) {
        let bytes = copies * estimate(ops)
        if (!hasRoom(bytes)) throw fault('overloaded', 'too many answers have not been read')
        let made_bytes = 0
        hold(bytes)
        return {
          set(answer_bytes) {
            made_bytes = answer_bytes
            hold(copies * made_bytes - bytes)
            bytes = copies * made_bytes
            note(made_bytes)
          },
          release() {
            hold(-bytes)
            note(made_bytes)
            bytes = 0
            made_bytes = 0
          },
        }
      },
    }
  }
}
