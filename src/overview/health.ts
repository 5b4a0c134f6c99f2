/** The health of an engine as one record, from its probes and its statistics. */
import type { ServedEngine } from '../engine/served-engine.ts'
import type { Health } from './messages.ts'

export async function readHealth(engine: ServedEngine): Promise<Health> {
  const { ok, checks, version, uptime_s } = await engine.ready()
  const statistics = engine.statistics()
  const { queue, due_lag_ms, jobs_in_flight, jobs_waiting, certificates_until_ms } = statistics
  const { file } = statistics.store
  const { problem } = engine.keyState()
  return {
    ...{ ok, checks, version, uptime_s, ops_per_s: 0, queue, due_lag_ms, certificates_until_ms },
    jobs: { in_flight: jobs_in_flight, waiting: jobs_waiting },
    ...(file !== undefined && { disk_free_bytes: file.free_bytes }),
    file_bytes: file === undefined ? 0 : file.used_bytes + file.reusable_bytes,
    ...(problem !== undefined && { key_problem: problem }),
  }
}
