/**
 * A closed loop of callers in one process: each sends its next request when the last one is answered,
 * until the time is up. Requests that are then in flight are awaited.
 */
import type { Slot } from './statistics.ts'
import { type Span, startStopwatch } from './stopwatch.ts'

export interface ClosedLoopOptions extends Span {
  readonly callers: number
  /** Ops in one request. */
  readonly ops: number
  /** At most so many requests are sent; default: no limit. */
  readonly requests_max?: number
}

/**
 * `request` resolves when it is answered; a rejection ends the run. `end` comes after the last answer
 * and before the figures are reckoned, so what it waits for gains no time by that.
 */
export async function closedLoop(
  options: ClosedLoopOptions,
  request: () => Promise<void>,
  end: () => Promise<void> | void = () => {},
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
  await end()
  return watch.slot(ops)
}
