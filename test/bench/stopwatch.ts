/**
 * The clock of a slot, and the lead before it: a lead warms up what has just begun, a new file and
 * the code that works on it, and counts for nothing.
 *
 * A request counts where it was sent, or fell due, in the slot proper; how long it took is told
 * even where it was answered later. So what was under way at the beginning is not counted, what was
 * at the end is, and a loop that never pauses gains nothing by either.
 */
import { type Slot, slotOf } from './statistics.ts'

export interface Span {
  readonly warmup_s: number
  readonly slot_s: number
}

export interface Stopwatch {
  /** Nothing is sent any more. */
  isOver(now_ms: number): boolean
  record(sent_ms: number, answered_ms: number): void
  /** Once all is answered. `ops_each` in a request. */
  slot(ops_each: number): Slot
}

export function spanSeconds({ warmup_s, slot_s }: Span): number {
  return warmup_s + slot_s
}

/** `start_ms` of `performance.now`. */
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
      // Where there was too little to send, the slot ends with the last answer.
      const seconds = (Math.min(until_ms, last_ms) - from_ms) / 1000
      const whole = { ops: answered * ops_each, seconds: (last_ms - start_ms) / 1000 }
      return slotOf(latencies_ms, ops_each, seconds, whole)
    },
  }
}
