/**
 * All metrics of an engine and its process in the text format of Prometheus 0.0.4. Rendered at most
 * once a second; concurrent readers share it.
 */

import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Engine } from '../engine/api/engine-api.ts'
import { engineMetrics } from './engine-metrics.ts'
import { type Measurable, nodeMetrics } from './node-metrics.ts'

export interface MetricsText {
  readonly content_type: string
  /** At most a second old. */
  read(): Promise<Buffer>
  close(): void
}

const made_every_ms = 1_000

export function newMetricsText(engine: Engine | undefined, node?: Measurable): MetricsText {
  const register = new Registry()
  const measured = engine && engineMetrics(engine, { register })
  if (node !== undefined) nodeMetrics(node, { register })
  addRuntimeMetrics(register)
  let made: Promise<Buffer> | undefined
  let made_ms = 0
  return {
    content_type: register.contentType,
    read() {
      if (made === undefined || performance.now() - made_ms >= made_every_ms) {
        made_ms = performance.now()
        made = register.metrics().then((text) => Buffer.from(text))
      }
      return made
    },
    close: () => measured?.close(),
  }
}

/** Collected by prom-client; the event loop is sampled every 10 ms. */
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

/** One for the process, because its collectors cannot be stopped. */
let collected: Registry | undefined

export function addRuntimeMetrics(register: Registry): void {
  if (collected === undefined) {
    collected = new Registry()
    collectDefaultMetrics({ register: collected })
  }
  for (const name of runtime_metrics) {
    const metric = collected.getSingleMetric(name)
    // Some exist on Linux only.
    if (metric !== undefined) register.registerMetric(metric)
  }
}
