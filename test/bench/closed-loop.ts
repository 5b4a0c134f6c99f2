/**
 * The closed loop of callers inside one process: each sends its next request when the last is
 * answered, until the time is up; what is under way then is waited for.
 */
import type { Slot } from './statistics.ts'
import { type Span, startStopwatch } from './stopwatch.ts'

export interface ClosedLoopOptions extends Span {
  readonly callers: number
  /** Ops in one request. */
  readonly ops: number
  /** No more are sent than so many, even where time is left; default without end. */
  readonly requests_max?: number
}

/** `request` resolves when it is answered, and rejects to end the run. */
export async function closedLoop(
  options: ClosedLoopOptions,
  request: () => Promise<void>,
): Promise<Slot> {
  const { callers, ops, requests_max = Number.POSITIVE_INFINITY } = options
  globalThis.gc?.()
  const watch = startStopwatch(options, performance.now())
  let left = requests_max
  const caller = async (): Promise<void> => {
    for (let sent_ms = performance.now(); !watch.isOver(sent_ms) && left-- > 0; ) {
      await request()
      const answered_ms = performance.now()
      watch.record(sent_ms, answered_ms)
      sent_ms = answered_ms
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return watch.slot(ops)
}
