/**
 * Puts rows of a table of metrics into a register of prom-client, whose values are read on scrape.
 */
import { Gauge, type Registry } from 'prom-client'
import type { MetricRow } from './table.ts'

type Head = Pick<MetricRow<never>, 'name' | 'help' | 'labels'>

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
