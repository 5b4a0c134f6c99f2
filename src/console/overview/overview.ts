/**
 * Tells of an engine to those who look at it, again and again: the whole first, then what differs
 * from what they were told. What is read is shared by all who watch, and what has not changed is
 * not read again; so neither many watchers nor a quiet engine cost anything to speak of.
 *
 * Rows and failed tasks are told by identity: one that says the same is the same object.
 */
import type { ServedEngine } from '../../engine/served-engine.ts'
import { newFailedGroups } from './failed-groups.ts'
import { newHealthReader } from './health.ts'
import type { FailedTasks, Overview, ProcessCounts, ProcessRow } from './messages.ts'
import { newProcessCounts, newProcessRows } from './process-rows.ts'

export interface Watch {
  /** The whole first, later what differs from what this watch was told. */
  next(): Promise<Overview>
  close(): void
}

export interface Overviews {
  watch(): Watch
  /** Rejects with `conv_not_found`. */
  counts(conv_id: string): Promise<ProcessCounts>
  /** Another number after every commit that has changed a task. */
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
    let told = new Map<string, ProcessRow>()
    let told_all: readonly ProcessRow[] = []
    let told_failed: FailedTasks | undefined

    function differing(all: readonly ProcessRow[]): Pick<Overview, 'processes' | 'removed'> {
      if (all === told_all) return { processes: [], removed: [] }
      const processes = all.filter((row) => told.get(row.conv_id) !== row)
      const now = new Map(all.map((row) => [row.conv_id, row]))
      const removed = [...told.keys()].filter((conv_id) => !now.has(conv_id))
      told = now
      told_all = all
      return { processes, removed }
    }

    const watching: Watch = {
      async next() {
        const all = await readRows()
        const [failed, health_now] = await Promise.all([failedGroups(all), health.read()])
        const { processes, removed } = differing(all)
        const is_same = failed === told_failed
        told_failed = failed
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
