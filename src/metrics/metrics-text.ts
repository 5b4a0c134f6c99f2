/**
 * All metrics of an engine and its process as one text, in the format of Prometheus 0.0.4. It is
 * made at most once a second, however many ask, and those who ask share it.
 */
import { Registry } from 'prom-client'
import type { Engine } from '../engine/api/engine-api.ts'
import { engineMetrics } from './engine-metrics.ts'
import { type Measurable, nodeMetrics } from './node-metrics.ts'
import { addRuntimeMetrics } from './runtime-metrics.ts'

export interface MetricsText {
  readonly content_type: string
  /** At most a second old when it was asked for. */
  read(): Promise<Buffer>
  /** Measures no more. */
  close(): void
}

const made_every_ms = 1_000

/** Measures from now on. */
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
