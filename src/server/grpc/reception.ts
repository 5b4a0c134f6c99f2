/**
 * The calls whose message is not in yet: one that takes longer than `ms_max` is given up. All have
 * the same time, so the oldest is due first and one timer is enough.
 */
import { systemClock } from '../../core/clock.ts'

export interface Reception<Call> {
  begin(call: Call): void
  /** A second call does nothing. */
  end(call: Call): void
}

export function newReception<Call>(ms_max: number, giveUp: (call: Call) => void): Reception<Call> {
  /** When each is due, the oldest first. */
  const due_ms = new Map<Call, number>()
  let has_timer = false

  const wakeAt = (at_ms: number): void => {
    has_timer = true
    systemClock.wake_at(at_ms, giveUpDue)
  }
  const giveUpDue = (): void => {
    has_timer = false
    const now_ms = systemClock.now_ms()
    for (const [call, at_ms] of due_ms) {
      if (at_ms > now_ms) {
        wakeAt(at_ms)
        return
      }
      due_ms.delete(call)
      giveUp(call)
    }
  }
  return {
    begin(call) {
      const at_ms = systemClock.now_ms() + ms_max
      due_ms.set(call, at_ms)
      if (!has_timer) wakeAt(at_ms)
    },
    end(call) {
      due_ms.delete(call)
    },
  }
}
