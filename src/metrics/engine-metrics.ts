/**
 * The metrics of an engine in a register of prom-client. Values are read when they are scraped, and
 * stored nowhere else; only durations are collected meanwhile, from `engineMetrics` to `close`.
 *
 * A scrape reads counters in memory, and the counters of the nodes at most once a second.
 * Concurrent scrapes share what is read.
 */

import { Registry } from 'prom-client'
import type { ServerName } from '../core/counters.ts'
import type { Engine } from '../engine/api/engine-api.ts'
import { servedEngine } from '../engine/served-engine.ts'
import { newProcessCounts } from './process-counts.ts'
import { metricsIn } from './register.ts'
import { duration_bounds_s, histogramTable, type Measured, metricTable } from './table.ts'

export interface EngineMetricsOptions {
  /**
   * Default a new one. A register takes the metrics of one engine; `collectDefaultMetrics` of
   * prom-client adds those of the process.
   */
  readonly register?: Registry
}

export interface EngineMetrics {
  readonly register: Registry
  /** Removes the metrics from the register and stops measuring. The engine stays open. */
  close(): void
}

/**
 * Measures an engine that is open in this process.
 *
 *     const { register } = engineMetrics(engine)
 *     response.setHeader('Content-Type', register.contentType).end(await register.metrics())
 *
 * Throws an Error if the register has a metric of the same name, such as those of another engine.
 */
export function engineMetrics(engine: Engine, options: EngineMetricsOptions = {}): EngineMetrics {
  const { register = new Registry() } = options
  const { counters, statistics } = servedEngine(engine)
  const processCounts = newProcessCounts(engine)
  const requests = new Map<ServerName, Histogram>()
  const [commits, syncs] = [newHistogram(), newHistogram()]
  let measuring: Promise<Measured> | undefined

  /** One reading for all metrics of a scrape. */
  function measured(): Promise<Measured> {
    measuring ??= measure().finally(() => {
      measuring = undefined
    })
    return measuring
  }

  async function measure(): Promise<Measured> {
    const [processes, readiness] = await Promise.all([processCounts(), engine.ready()])
    return { processes, readiness, statistics: statistics() }
  }

  const { add, addTable, remove } = metricsIn(register)
  addTable(metricTable, measured)
  add(histogramTable.request, 'histogram', async () =>
    [...requests].flatMap(([server, histogram]) =>
      histogramValues(histogramTable.request.name, { server }, histogram),
    ),
  )
  for (const [row, histogram] of [
    [histogramTable.commit, commits],
    [histogramTable.sync, syncs],
  ] as const) {
    add(row, 'histogram', async () => histogramValues(row.name, {}, histogram))
  }
  const stop = counters.measure({
    commit(ms, write_ms) {
      commits.observe(ms)
      syncs.observe(write_ms)
    },
    request(server, ms) {
      const histogram = requests.get(server) ?? newHistogram()
      requests.set(server, histogram)
      histogram.observe(ms)
    },
  })

  return {
    register,
    close() {
      stop()
      remove()
    },
  }
}

const bounds = [...duration_bounds_s.map(String), '+Inf']

function histogramValues(name: string, labels: object, histogram: Histogram): object[] {
  const { up_to, sum_s } = histogram.read()
  return [
    ...bounds.map((le, at) => ({
      ...{ metricName: `${name}_bucket`, labels: { ...labels, le }, value: up_to[at] },
    })),
    { metricName: `${name}_sum`, labels, value: sum_s },
    { metricName: `${name}_count`, labels, value: up_to.at(-1) },
  ]
}

/** Durations in one array of counts, so that an observation per request and commit stays cheap. */
export interface Histogram {
  observe(ms: number): void
  /** The count up to each bound, the last one infinite, and the sum. */
  read(): { readonly up_to: readonly number[]; readonly sum_s: number }
}

const bounds_ms = duration_bounds_s.map((bound_s) => bound_s * 1000)

export function newHistogram(): Histogram {
  const counts = new Float64Array(bounds_ms.length + 1)
  let sum_ms = 0
  return {
    observe(ms) {
      let at = 0
      while (at < bounds_ms.length && ms > (bounds_ms[at] as number)) at++
      counts[at] = (counts[at] as number) + 1
      sum_ms += ms
    },
    read() {
      let count = 0
      return { up_to: Array.from(counts, (one) => (count += one)), sum_s: sum_ms / 1000 }
    },
  }
}
