/**
 * One clock for all times of the page, which ticks each second while it is seen. It is the clock of
 * the server, which every frame tells, so that a countdown is right also where the reader's is not.
 */
import { signal } from '@preact/signals'

/** The time of this machine: it goes on evenly, whatever is done to its clock. */
const own_ms = () => performance.timeOrigin + performance.now()

let ahead_ms = 0

/** Milliseconds since 1970 at the server, as of the last tick. */
export const now_ms = signal(own_ms())

/** With `at_ms` of a frame. Differences below a second are the way of the frame. */
export function setServerTime(at_ms: number): void {
  const new_ahead_ms = at_ms - own_ms()
  if (Math.abs(new_ahead_ms - ahead_ms) < 1_000) return
  ahead_ms = new_ahead_ms
  tick()
}

function tick(): void {
  now_ms.value = own_ms() + ahead_ms
}

setInterval(() => document.hidden || tick(), 1_000)
document.addEventListener('visibilitychange', () => document.hidden || tick())
