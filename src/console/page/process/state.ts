/**
 * What the view of a process shows: its page as called, the counts as they come, and which node is
 * open. A newer version that is imported meanwhile is shown as soon as a frame has it.
 */
import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { ProcessCounts } from '../../overview/messages.ts'
import type { Mistake, ProcessPage } from '../../server/messages.ts'
import { type GraphCounts, newGraphCounts } from '../graph/counts.ts'
import { call } from '../session.ts'

/** Which version, and where its boxes are; as called. */
export interface Shown {
  /** Absent for the newest, also where another becomes it. */
  readonly version?: number
  readonly laid_out?: boolean
}

export interface ProcessState {
  readonly conv_id: string
  readonly page: ReadonlySignal<ProcessPage | undefined>
  readonly fault: ReadonlySignal<unknown>
  readonly shown: ReadonlySignal<Shown>
  readonly status: ReadonlySignal<ProcessCounts['status'] | undefined>
  readonly counts: GraphCounts
  /** The node whose panel is open. */
  readonly opened: Signal<string | undefined>
  /** The node that is brought into sight. */
  readonly in_sight: Signal<string | undefined>
  /** Of a file that was refused, to be seen at the nodes. */
  readonly mistakes: Signal<readonly Mistake[]>
  show(shown: Shown): Promise<void>
  take(counts: ProcessCounts): void
}

export function newProcessState(conv_id: string, node_id?: string): ProcessState {
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
    opened: signal(node_id),
    in_sight: signal(node_id),
    mistakes: signal([]),
    show,
    take(frame) {
      counts.take(frame)
      const has_changed = newest !== 0 && frame.version !== newest
      newest = frame.version
      if (has_changed) void show(shown.peek())
    },
  }
}
