/**
 * Tells of processes at their limit of live tasks, each once in a minute at most: what takes no
 * more tasks refuses as often as ops come.
 */
import type { Clock } from '../../core/clock.ts'
import type { Emit } from '../../core/events.ts'

const pause_ms = 60_000

export function newFullProcessReport(
  emit: Emit,
  clock: Clock,
  tasks_max: number,
): (conv_ids: ReadonlySet<string>) => void {
  const told_ms = new Map<string, number>()
  return (conv_ids) => {
    const now_ms = clock.now_ms()
    for (const conv_id of conv_ids) {
      // Also where the clock was set back.
      const since_ms = Math.abs(now_ms - (told_ms.get(conv_id) ?? Number.NEGATIVE_INFINITY))
      if (since_ms < pause_ms) continue
      told_ms.set(conv_id, now_ms)
      emit('process_full', { conv_id, tasks: tasks_max })
    }
  }
}
