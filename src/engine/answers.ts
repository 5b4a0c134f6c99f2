/**
 * Answers that are made and not yet read (wire 1.8): the room that each will take is reserved
 * before anything of its request is applied, and given back once its reader has it or has gone. So
 * a caller who asks for much and reads nothing costs no more than his connection's share, and all
 * of them together no more than there is.
 */
import { fault } from '../words/faults.ts'
import type { Limits } from '../words/limits.ts'

/** Of one connection. */
export interface AnswerAccount {
  /** For the answer to these ops, as they were sent. Throws `overloaded` where there is none. */
  reserve(ops: readonly unknown[]): AnswerRoom
}

export interface AnswerRoom {
  /** The answer is there, and takes so much. */
  set(bytes: number): void
  /** It has been read, or never will be. A second call does nothing. */
  release(): void
}

/** What a result takes beside a task's data: its ref, id and description, all escaped. */
const result_bytes = 2_048

/** A function that makes accounts; all of them share one total. */
export function newAnswers(limits: Limits): () => AnswerAccount {
  let held_bytes = 0

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
    return {
      reserve(ops) {
        let bytes = estimate(ops)
        if (
          held_bytes + bytes > limits.answers_bytes_max ||
          (mine_bytes > 0 && mine_bytes + bytes > limits.connection_answer_bytes_max)
        ) {
          throw fault('overloaded', 'too many answers have not been read')
        }
        const set = (next_bytes: number): void => {
          held_bytes += next_bytes - bytes
          mine_bytes += next_bytes - bytes
          bytes = next_bytes
        }
        held_bytes += bytes
        mine_bytes += bytes
        return { set, release: () => set(0) }
      },
    }
  }
}
