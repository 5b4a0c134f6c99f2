/**
 * What happens to answers on their way out: they are spread over turns of the event loop, and the
 * connection of a caller that does not read them ends.
 */

import type { Socket } from 'node:net'
import { onNextTurn, systemClock } from '../../core/clock.ts'

export const answers_a_turn = 32

/** Returns a function that sends an answer, now or in one of the next turns. */
export function newAnswerTurns(): (send: () => void) => void {
  const waiting: (() => void)[] = []
  let sent = 0
  const answer = (send: () => void): void => {
    if (sent === 0) onNextTurn(nextTurn)
    if (sent === answers_a_turn) waiting.push(send)
    else {
      sent++
      send()
    }
  }
  const nextTurn = (): void => {
    sent = 0
    for (const send of waiting.splice(0, answers_a_turn)) answer(send)
  }
  return answer
}

export interface UnreadAnswers {
  /** An answer is sent over this connection. Returns what is to be called once it has left. */
  sent(socket: Socket): () => void
}

/** Pings and the like are no progress. */
const progress_bytes = 1_024

interface State {
  answers: number
  written_bytes: number
  since_ms: number
}

export function newUnreadAnswers(
  unread_ms_max: number,
  onStalled: (socket: Socket) => void,
): UnreadAnswers {
  const states = new Map<Socket, State>()
  let looks = false

  function look(): void {
    looks = false
    const now_ms = systemClock.now_ms()
    for (const [socket, state] of states) {
      if (socket.destroyed) states.delete(socket)
      else if (socket.bytesWritten - state.written_bytes >= progress_bytes) {
        state.written_bytes = socket.bytesWritten
        state.since_ms = now_ms
      } else if (now_ms - state.since_ms >= unread_ms_max) {
        states.delete(socket)
        onStalled(socket)
        socket.destroy()
      }
    }
    if (states.size > 0) lookLater()
  }

  function lookLater(): void {
    if (looks) return
    looks = true
    systemClock.wake_at(systemClock.now_ms() + Math.max(20, unread_ms_max / 4), look)
  }

  return {
    sent(socket) {
      const known = states.get(socket)
      const state = known ?? {
        ...{ answers: 0, written_bytes: socket.bytesWritten, since_ms: systemClock.now_ms() },
      }
      state.answers++
      if (known === undefined) states.set(socket, state)
      lookLater()
      let has_left = false
      return () => {
        if (has_left) return
        has_left = true
        if (--state.answers === 0 && states.get(socket) === state) states.delete(socket)
      }
    },
  }
}
