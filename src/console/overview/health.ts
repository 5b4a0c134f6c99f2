/**
 * The health of an engine as one record: its probes, its statistics, and rates of the last ten
 * seconds. Commits are measured only between `begin` and `pause`. A probe that hangs delays no
 * caller: they get what was read last.
 */
import { within } from '../../core/clock.ts'
import type { EngineStatistics } from '../../engine/api/statistics-api.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import { newDurations } from './durations.ts'
import type { Health } from './messages.ts'
import { atMostEvery } from './shared-reading.ts'

const read_every_ms = 1_000
const wait_ms_max = 500
const rate_ms = 10_000

export interface HealthReader {
  /** Measures from now on. */
  begin(): void
  pause(): void
  read(): Promise<Health>
}

interface Sample {
  readonly at_ms: number
  readonly ops: number
}

export function newHealthReader(engine: ServedEngine): HealthReader {
  const { clock } = engine
  const durations = newDurations(clock.now_ms)
  let stop: (() => void) | undefined
  let samples: Sample[] = [sample(engine.statistics())]
  let last: Health | undefined

  function sample({ ops }: Pick<EngineStatistics, 'ops'>): Sample {
    let sum = 0
    for (const codes of Object.values(ops)) {
      for (const count of Object.values(codes ?? {})) sum += count
    }
    return { at_ms: clock.now_ms(), ops: sum }
  }

  /** Since ten seconds ago, or as far back as there are samples. */
  function opsPerSecond(now: Sample): number {
    samples = [...samples.filter(({ at_ms }) => Math.abs(now.at_ms - at_ms) <= rate_ms), now]
    const { at_ms, ops } = samples[0] as Sample
    return now.at_ms > at_ms ? ((now.ops - ops) * 1_000) / (now.at_ms - at_ms) : 0
  }

  async function measure(): Promise<Health> {
    const { ok, checks, version, uptime_s } = await engine.ready()
    const statistics = engine.statistics()
    const { queue, due_lag_ms, jobs_in_flight, jobs_waiting, certificates_until_ms } = statistics
    const { file } = statistics.store
    const { problem, warning } = engine.keyState()
    const commit_ms = durations.read()
    const key_problem = problem ?? warning
    last = {
      ...{ ok, checks, version, uptime_s, queue, due_lag_ms, certificates_until_ms },
      ops_per_s: opsPerSecond(sample(statistics)),
      jobs: { in_flight: jobs_in_flight, waiting: jobs_waiting },
      file_bytes: file === undefined ? 0 : file.used_bytes + file.reusable_bytes,
      ...(commit_ms !== undefined && { commit_ms }),
      ...(file !== undefined && { disk_free_bytes: file.free_bytes }),
      ...(key_problem !== undefined && { key_problem }),
    }
    return last
  }

  const shared = atMostEvery(() => read_every_ms, clock, measure)
  return {
    begin() {
      stop ??= engine.counters.measure({ commit: durations.add })
    },
    pause() {
      stop?.()
      stop = undefined
    },
    async read() {
      const now = shared()
      if (last === undefined) return now
      const found = await within(clock, wait_ms_max, now)
      return found === 'late' ? last : found
    },
  }
}
