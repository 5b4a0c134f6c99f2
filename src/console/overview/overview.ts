/**
 * Overviews of an engine for any number of watches: each gets the whole first, then what differs
 * from its last overview. All watches share what is read, and what has not changed is not read
 * again. Rows and failed tasks are compared by identity: equal ones are the same object.
 */
import type { ServedEngine } from '../../engine/served-engine.ts'
import { newFailedGroups } from './failed-groups.ts'
import { newHealthReader } from './health.ts'
import type { FailedTasks, Overview, ProcessCounts, ProcessRow } from './messages.ts'
import { newProcessCounts, newProcessRows } from './process-rows.ts'

export interface Watch {
  /** The whole first, later what differs from the last overview of this watch. */
  next(): Promise<Overview>
  close(): void
}

export interface Overviews {
  watch(): Watch
  /** Rejects with `conv_not_found`. */
  counts(conv_id: string): Promise<ProcessCounts>
  /** Grows with every commit that changes a task. */
  mark(): number
  close(): void
}

/** Has the engine count the flow of tasks from now on, until `close`. */
export function newOverviews(engine: ServedEngine): Overviews {
  const { flow, clock } = engine
  const end = flow.begin()
  const readRows = newProcessRows(flow, clock)
  const failedGroups = newFailedGroups(flow, clock)
  const health = newHealthReader(engine)
  const watches = new Set<Watch>()

  function watch(): Watch {
    let sent = new Map<string, ProcessRow>()
    let sent_all: readonly ProcessRow[] = []
    let sent_failed: FailedTasks | undefined

    function differing(all: readonly ProcessRow[]): Pick<Overview, 'processes' | 'removed'> {
      if (all === sent_all) return { processes: [], removed: [] }
      const processes = all.filter((row) => sent.get(row.conv_id) !== row)
      const now = new Map(all.map((row) => [row.conv_id, row]))
      const removed = [...sent.keys()].filter((conv_id) => !now.has(conv_id))
      sent = now
      sent_all = all
      return { processes, removed }
    }

    const watching: Watch = {
      async next() {
        const all = await readRows()
        const [failed, health_now] = await Promise.all([failedGroups(all), health.read()])
        const { processes, removed } = differing(all)
        const is_same = failed === sent_failed
        sent_failed = failed
        return {
          ...{ at_ms: clock.now_ms(), since_ms: flow.since_ms(), processes, removed },
          ...(is_same ? {} : { failed }),
          health: health_now,
        }
      },
      close() {
        watches.delete(watching)
        if (watches.size === 0) health.pause()
      },
    }
    watches.add(watching)
    health.begin()
    return watching
  }

  return {
    watch,
    counts: newProcessCounts(flow, clock),
    mark: flow.mark,
    close() {
      watches.clear()
      health.pause()
      end()
    },
  }
}
