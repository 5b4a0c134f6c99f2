/**
 * The metrics of an engine in a prom-client registry. Values are read at the scrape; only durations
 * are collected, from `engineMetrics` to `close`. Concurrent scrapes share one reading, and the
 * counters of nodes are read at most once a second.
 */

import { Gauge, Registry } from 'prom-client'
import type { ServerName } from '../core/counters.ts'
import type { Status } from '../core/model.ts'
import type { Engine } from '../engine/api/engine-api.ts'
import type { CountRow } from '../engine/api/search-api.ts'
import { servedEngine } from '../engine/served-engine.ts'
import {
  duration_bounds_s,
  histogramTable,
  type Measured,
  type MetricRow,
  metricTable,
  type ProcessCount,
} from './table.ts'

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
 * Throws an Error if the register already has a metric of the same name.
 */
export function engineMetrics(engine: Engine, options: EngineMetricsOptions = {}): EngineMetrics {
  const { register = new Registry() } = options
  const { counters, statistics } = servedEngine(engine)
  const processCounts = newProcessCounts(engine)
  const requests = new Map<ServerName, Histogram>()
  const [commits, syncs] = [newHistogram(), newHistogram()]
  let measuring: Promise<Measured> | undefined

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

type Head = Pick<MetricRow<never>, 'name' | 'help' | 'labels'>

/** Adds rows of a table of metrics to a register. */
export function metricsIn(register: Registry) {
  const added: string[] = []

  /** Throws an Error if the register has a metric of this name. */
  function add(row: Head, type: string, values: () => Promise<object[]>): void {
    const { name, help, labels } = row
    const metric = new Gauge({ name, help, labelNames: labels, registers: [] })
    const get = async (): Promise<object> => ({
      ...{ name, help, type, aggregator: 'sum', values: await values() },
    })
    register.registerMetric(Object.assign(metric, { get }) as Gauge)
    added.push(name)
  }

  return {
    add,
    addTable<Source>(rows: readonly MetricRow<Source>[], read: () => Source | Promise<Source>) {
      for (const row of rows) {
        add(row, row.type, async () =>
          Array.from(row.values(await read()), ([value, ...labels]) => ({
            value,
            labels: Object.fromEntries(row.labels.map((label, at) => [label, labels[at]])),
          })),
        )
      }
    },
    remove(): void {
      for (const name of added) register.removeSingleMetric(name)
    },
  }
}

const read_every_ms = 1_000
/** The maximum share of time spent on readings. */
const part_max = 1 / 20

/**
 * The tasks of each process by status: the largest processes by id, the rest as one. Read at most
 * once a second, less often if a reading is slow. Never rejects: on an error the last counts stay.
 */
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
