/**
 * The clock of a slot and of the warm-up before it, in which a new file and the code that works on it
 * get warm.
 *
 * A request counts if it was sent, or was due, within the slot, also if it was answered later. So
 * requests in flight at the start of the slot do not count, those in flight at its end do, and the
 * two cancel out in a closed loop.
 */
import { type Slot, slotOf } from './statistics.ts'

export interface Span {
  readonly warmup_s: number
  readonly slot_s: number
}

export interface Stopwatch {
  /** True when no further request may be sent. */
  isOver(now_ms: number): boolean
  record(sent_ms: number, answered_ms: number): void
  /** To be called when all requests are answered; `ops_each` ops in a request. */
  slot(ops_each: number): Slot
}

export function spanSeconds({ warmup_s, slot_s }: Span): number {
  return warmup_s + slot_s
}

/** `start_ms` by `performance.now`. */
export function startStopwatch(span: Span, start_ms: number): Stopwatch {
  const from_ms = start_ms + span.warmup_s * 1000
  const until_ms = start_ms + spanSeconds(span) * 1000
  const latencies_ms: number[] = []
  let answered = 0
  let last_ms = start_ms
  return {
    isOver: (now_ms) => now_ms >= until_ms,
    record(sent_ms, answered_ms) {
      answered++
      last_ms = answered_ms
      if (sent_ms >= from_ms) latencies_ms.push(answered_ms - sent_ms)
    },
    slot(ops_each) {
      // If the prepared requests ran out, the slot ends with the last answer.
      const seconds = (Math.min(until_ms, last_ms) - from_ms) / 1000
      const whole = { ops: answered * ops_each, seconds: (last_ms - start_ms) / 1000 }
      return slotOf(latencies_ms, ops_each, seconds, whole)
    },
  }
}
