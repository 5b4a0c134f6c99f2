/**
 * Spreads the answers to calls over turns of the event loop. What is sent in one turn leaves at its
 * end, and one commit may be the answer to all calls of a connection: were all sent at once, caller
 * and server would take turns, each idle while the other works. So the first leave while the others
 * are made. Fewer in a turn make more commits of the calls that follow, each with a sync.
 */
import { onNextTurn } from '../../core/clock.ts'

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
