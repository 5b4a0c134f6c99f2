/**
 * The closed loop of callers inside one process: each sends its next request when the last is
 * answered, until the time is up; what is under way then is waited for and counts.
 */
import { type Slot, slotOf } from './samples.ts'

export interface LoopOptions {
  readonly callers: number
  /** Ops in one request. */
  readonly ops: number
  readonly slot_s: number
  /** No more are sent than so many, even where time is left; default without end. */
  readonly requests_max?: number
}

/** `request` resolves when it is answered, and rejects to end the run. */
export async function loop(options: LoopOptions, request: () => Promise<void>): Promise<Slot> {
  const { callers, ops, slot_s, requests_max = Number.POSITIVE_INFINITY } = options
  globalThis.gc?.()
  const latencies_ms: number[] = []
  const start_ms = performance.now()
  const until_ms = start_ms + slot_s * 1000
  let left = requests_max
  const caller = async (): Promise<void> => {
    for (let sent_ms = performance.now(); sent_ms < until_ms && left-- > 0; ) {
      await request()
      const answered_ms = performance.now()
      latencies_ms.push(answered_ms - sent_ms)
      sent_ms = answered_ms
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return slotOf(latencies_ms, ops, (performance.now() - start_ms) / 1000)
}
