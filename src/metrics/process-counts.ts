/**
 * The tasks of each process by status, for gauges: the largest processes by name, all others as
 * one. They are read from the counters of the nodes at most once a second, and less often if a
 * reading takes long.
 */
import type { Status } from '../core/model.ts'
import type { Engine } from '../engine/api/engine-api.ts'
import type { CountRow } from '../engine/api/search-api.ts'

export interface ProcessCount {
  readonly conv_id: string
  readonly by_status: Partial<Readonly<Record<Status, number>>>
}

const read_every_ms = 1_000
/** The maximum share of time spent on readings. */
const part_max = 1 / 20

/** Never rejects: if the store cannot be read, the last counts stay. */
export function newProcessCounts(engine: Engine): () => Promise<readonly ProcessCount[]> {
  const { processes_measured_max } = engine.limits
  let counts: readonly ProcessCount[] = []
  let reading: Promise<void> | undefined
  let next_ms = 0

  async function read(): Promise<void> {
    const began_ms = performance.now()
    try {
      const { rows } = await engine.tasks.count({ status: 'any' })
      counts = largest(rows, processes_measured_max)
    } catch {
      // The engine is being closed.
    }
    const ended_ms = performance.now()
    next_ms = ended_ms + Math.max(read_every_ms, (ended_ms - began_ms) / part_max)
    reading = undefined
  }

  return async () => {
    if (reading === undefined && performance.now() >= next_ms) reading = read()
    await reading
    return counts
  }
}

/** The rest is `other`, as is a process with this id. */
function largest(rows: readonly CountRow[], max: number): ProcessCount[] {
  const sorted = [...rows].sort((one, other) => other.total - one.total)
  const rest: Partial<Record<Status, number>> = {}
  const kept: ProcessCount[] = []
  for (const { conv_id = 'other', by_status } of sorted) {
    if (kept.length < max && conv_id !== 'other') kept.push({ conv_id, by_status })
    else {
      for (const [status, count] of Object.entries(by_status)) {
        rest[status as Status] = (rest[status as Status] ?? 0) + count
      }
    }
  }
  return Object.keys(rest).length === 0 ? kept : [...kept, { conv_id: 'other', by_status: rest }]
}
