/**
 * What happens to answers on their way out: they are spread over turns of the event loop, and the
 * connection of a caller that does not read them ends.
 */
import type { Socket } from 'node:net'
import { onNextTurn, systemClock } from '../../core/clock.ts'
import { newRepeatedCheck } from './receive-bounds.ts'

export const answers_a_turn = 32

/**
 * Returns a function that sends an answer, now or in one of the next turns. One commit may answer
 * all calls of a connection, and all answers of a turn leave at its end: sent at once, caller and
 * server would take turns, each idle while the other works. With fewer answers in a turn the calls
 * that follow would need more commits, each with a sync.
 */
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
  /** Registers an answer sent over this connection; the returned function reports that it left. */
  sent(socket: Socket): () => void
}

/** Pings and other control frames are not progress. */
const progress_bytes = 1_024

interface State {
  answers: number
  written_bytes: number
  since_ms: number
}

/**
 * Ends the connections of callers that do not read: whose answers, or changes, have been under way
 * for `unread_ms_max` while nothing has left. A peer that answers the pings of HTTP/2 and opens no
 * window would keep them for as long as a connection may live.
 */
export function newUnreadAnswers(
  unread_ms_max: number,
  onStalled: (socket: Socket) => void,
): UnreadAnswers {
  const states = new Map<Socket, State>()
  const check = newRepeatedCheck(Math.max(20, unread_ms_max / 4), () => {
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
    return states.size > 0
  })

  return {
    sent(socket) {
      const known = states.get(socket)
      const state = known ?? {
        ...{ answers: 0, written_bytes: socket.bytesWritten, since_ms: systemClock.now_ms() },
      }
      state.answers++
      if (known === undefined) states.set(socket, state)
      check()
      let has_left = false
      return () => {
        if (has_left) return
        has_left = true
        if (--state.answers === 0 && states.get(socket) === state) states.delete(socket)
      }
    },
  }
}
