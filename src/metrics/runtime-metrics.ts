/**
 * Metrics of the process and of Node, as prom-client collects them. Once for a process, because
 * what collects them cannot be stopped; and only those that cost little and that somebody on call
 * looks at. The delay of the event loop is sampled each 10 ms, so an idle loop shows about that.
 */
import { collectDefaultMetrics, Registry } from 'prom-client'

export const runtime_metrics = [
  'process_cpu_user_seconds_total',
  'process_cpu_system_seconds_total',
  'process_cpu_seconds_total',
  'process_start_time_seconds',
  'process_resident_memory_bytes',
  'process_open_fds',
  'process_max_fds',
  'nodejs_eventloop_lag_seconds',
  'nodejs_eventloop_lag_p50_seconds',
  'nodejs_eventloop_lag_p99_seconds',
  'nodejs_eventloop_lag_max_seconds',
  'nodejs_heap_size_used_bytes',
  'nodejs_external_memory_bytes',
  'nodejs_version_info',
] as const

let collected: Registry | undefined

export function addRuntimeMetrics(register: Registry): void {
  if (collected === undefined) {
    collected = new Registry()
    collectDefaultMetrics({ register: collected })
  }
  for (const name of runtime_metrics) {
    const metric = collected.getSingleMetric(name)
    // Those of another system than Linux are fewer.
    if (metric !== undefined) register.registerMetric(metric)
  }
}
