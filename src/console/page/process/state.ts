/**
 * What the view of a process shows: its page as called, the counts as they come, and which node is
 * open. A newer version that is imported meanwhile is shown as soon as a frame has it.
 */
import { computed, signal } from '@preact/signals'
import type { ProcessCounts } from '../../overview/messages.ts'
import type { Mistake, ProcessPage } from '../../server/messages.ts'
import { newGraphCounts } from '../graph/counts.ts'
import { call } from '../session.ts'

export interface Shown {
  /** Absent for the newest, also where another becomes it. */
  readonly version?: number
  readonly laid_out?: boolean
}

export type ProcessState = ReturnType<typeof newProcessState>

export function newProcessState(conv_id: string, node_id?: string) {
  const page = signal<ProcessPage | undefined>(undefined)
  const fault = signal<unknown>(undefined)
  const shown = signal<Shown>({})
  const counts = newGraphCounts()
  /** Of the calls; an answer that a later call has overtaken is not shown. */
  let calls = 0
  let newest = 0

  async function show(wanted: Shown): Promise<void> {
    shown.value = wanted
    const own = ++calls
    try {
      for (const waits of [false, true]) {
        const answer = await call('process', { conv_id, ...wanted, waits })
        if (own !== calls) return
        page.value = answer
        fault.value = undefined
        if (!answer.is_drawing) return
      }
    } catch (error) {
      if (own === calls) fault.value = error
    }
  }

  return {
    conv_id,
    page,
    fault,
    shown,
    counts,
    status: computed(() => counts.last.value?.status ?? page.value?.row.status),
    /** The node whose panel is open, and the node that is brought into sight. */
    opened: signal(node_id),
    in_sight: signal(node_id),
    /** Of a refused file, marked at their nodes. */
    mistakes: signal<readonly Mistake[]>([]),
    show,
    take(frame: ProcessCounts): void {
      counts.take(frame)
      const has_changed = newest !== 0 && frame.version !== newest
      newest = frame.version
      if (has_changed) void show(shown.peek())
    },
  }
}
