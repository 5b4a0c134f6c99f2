/**
 * The tasks of each process by status, for gauges: of the largest processes by name, of all others
 * as one. They are read from the counters of the nodes, process by process between other work; at
 * most once a second, and less often where that takes long, however often they are asked for.
 */
import type { Status } from '../core/model.ts'
import type { Engine } from '../engine/api/engine-api.ts'
import type { CountRow } from '../engine/api/search-api.ts'

export interface ProcessCount {
  readonly conv_id: string
  readonly by_status: Partial<Readonly<Record<Status, number>>>
}

const read_every_ms = 1_000
/** Of the time, a reading takes at most this part. */
const part_max = 1 / 20

/** Never rejects: what was read last stands where the store cannot be read. */
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

/** The rest is named `other`, which may be the id of a process too. */
function largest(rows: readonly CountRow[], max: number): ProcessCount[] {
  const sorted = [...rows].sort((one, other) => other.total - one.total)
  const rest: Partial<Record<Status, number>> = {}
  const told: ProcessCount[] = []
  for (const { conv_id = 'other', by_status } of sorted) {
    if (told.length < max && conv_id !== 'other') told.push({ conv_id, by_status })
    else {
      for (const [status, count] of Object.entries(by_status)) {
        rest[status as Status] = (rest[status as Status] ?? 0) + count
      }
    }
  }
  return Object.keys(rest).length === 0 ? told : [...told, { conv_id: 'other', by_status: rest }]
}
