/**
 * The metrics of an engine in a register of prom-client. Values are read when they are scraped, and
 * kept nowhere twice; only durations are collected meanwhile, from `engineMetrics` to `close`.
 *
 * A scrape reads counters in memory, and the counters of the nodes at most once a second. Scrapes
 * that come together share what is read.
 */
import { Registry } from 'prom-client'
import type { ServerName } from '../core/counters.ts'
import type { Engine } from '../engine/api/engine-api.ts'
import { servedEngine } from '../engine/served-engine.ts'
import { type Histogram, newHistogram } from './histogram.ts'
import { newProcessCounts } from './process-counts.ts'
import { metricsIn } from './register.ts'
import { duration_bounds_s, histogramTable, type Measured, metricTable } from './table.ts'

export interface EngineMetricsOptions {
  /**
   * Where the metrics go; default a new one. One register takes the metrics of one engine. Those
   * of the process are its own affair: `collectDefaultMetrics` of prom-client adds them.
   */
  readonly register?: Registry
}

export interface EngineMetrics {
  readonly register: Registry
  /** Takes the metrics out of the register, and measures no more. The engine stays open. */
  close(): void
}

/**
 * Measures an engine that is open in this process.
 *
 *     const { register } = engineMetrics(engine)
 *     response.setHeader('Content-Type', register.contentType).end(await register.metrics())
 *
 * Throws an Error where the register has a metric of such a name, that of another engine for one.
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
