/**
 * Tells of an engine to those who look at it, again and again: what differs from what they were
 * told before, so that a quiet engine costs nothing. What is read is shared by all who watch.
 */
import type { Status } from '../core/model.ts'
import type { CountRow } from '../engine/search/search-api.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import { failedGroups } from './failed-groups.ts'
import { readHealth } from './health.ts'
import type { FailedTasks, ProcessCounts, ProcessRow } from './messages.ts'
import { done_minutes, type NodeCounts, type Overview } from './messages.ts'

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

export function newOverviews(engine: ServedEngine): Overviews {
  const since_ms = engine.clock.now_ms()
  let mark = 0

  async function rows(): Promise<ProcessRow[]> {
    const [listed, { rows: counted }] = await Promise.all([
      engine.processes.list(),
      engine.tasks.count({ status: 'any' }),
    ])
    const of = new Map(counted.map((row) => [row.conv_id, row.by_status]))
    return listed.map(({ conv_id, title, status, version }) => ({
      ...{ conv_id, title, status, version, by_status: withoutZeros(of.get(conv_id) ?? {}) },
      done: new Array<number>(done_minutes).fill(0),
    }))
  }

  function watch(): Watch {
    const told = new Map<string, string>()
    let told_failed = ''
    return {
      async next() {
        const [all, failed, health] = await Promise.all([
          rows(),
          failedGroups(engine),
          readHealth(engine),
        ])
        const processes = all.filter((row) => {
          const text = JSON.stringify(row)
          if (told.get(row.conv_id) === text) return false
          told.set(row.conv_id, text)
          return true
        })
        const there = new Set(all.map(({ conv_id }) => conv_id))
        const removed = [...told.keys()].filter((conv_id) => !there.has(conv_id))
        for (const conv_id of removed) told.delete(conv_id)
        const failed_text = JSON.stringify(failed)
        const is_same = failed_text === told_failed
        told_failed = failed_text
        const given: { failed?: FailedTasks } = is_same ? {} : { failed }
        return { at_ms: engine.clock.now_ms(), since_ms, processes, removed, ...given, health }
      },
      close() {},
    }
  }

  return {
    watch,
    async counts(conv_id) {
      const { status, version } = await engine.processes.show(conv_id)
      const { rows: counted } = await engine.tasks.count({ conv_id, status: 'any' })
      const nodes = counted.map(nodeOf)
      return { at_ms: engine.clock.now_ms(), conv_id, status, version, nodes, ways: [] }
    },
    mark: () => ++mark,
    close() {},
  }
}

function nodeOf({ node_id = '', by_status }: CountRow): NodeCounts {
  return { node_id, by_status: withoutZeros(by_status), due_soon: 0 }
}

function withoutZeros(counts: ProcessRow['by_status']): ProcessRow['by_status'] {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)) as Partial<
    Record<Status, number>
  >
}
