/**
 * How fast answers go out on one connection. A group commit answers all calls of a connection in
 * the same moment; sent as one, they keep the other side busy with all of them while this one has
 * nothing to do, and then it is the other way round. So a few go out in each turn of the event
 * loop: the next calls come in while the last answers are still being made.
 */

/** Runs what sends an answer now, or in one of the next turns; in the order given. */
export type Pace = (send: () => void) => void

/** Fewer make more commits and more writes of the same work. */
const per_turn = 32

export function newPace(): Pace {
  let left = per_turn
  const waiting: (() => void)[] = []
  let is_turning = false

  const turn = (): void => {
    is_turning = waiting.length > 0
    if (is_turning) setImmediate(turn)
    const now = waiting.splice(0, per_turn)
    left = per_turn - now.length
    for (const send of now) send()
  }

  return (send) => {
    if (left > 0 && waiting.length === 0) {
      left--
      send()
    } else waiting.push(send)
    if (is_turning) return
    is_turning = true
    setImmediate(turn)
  }
}
