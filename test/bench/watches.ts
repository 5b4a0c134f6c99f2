/**
 * What somebody on call has an engine watched with, as `serve` would: lines of the log as JSON to a
 * file that takes all, metrics with a scrape a second, and traces through the SDK of OpenTelemetry,
 * one request in a hundred recorded, to an exporter that takes all.
 */
import {
  BatchSpanProcessor,
  NodeTracerProvider,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node'
import { pino } from 'pino'
import type { Engine, EngineOptions } from '../../src/index.ts'
import { newMetricsText } from '../../src/metrics/metrics-text.ts'
import { openTelemetryTracing } from '../../src/tracing.ts'

export const watch_names = ['logs', 'metrics', 'traces'] as const
export type WatchName = (typeof watch_names)[number]

const recorded_part = 0.01
const scrape_every_ms = 1_000

/** The options of an engine that is watched so. */
export function watchOptions(names: readonly WatchName[]): EngineOptions {
  return {
    ...(names.includes('logs') ? { logger: newLogger() } : {}),
    ...(names.includes('traces') ? { tracing: openTelemetryTracing(newProvider()) } : {}),
  }
}

/** Scrapes until the returned function is called. */
export function scrape(engine: Engine, names: readonly WatchName[]): () => void {
  if (!names.includes('metrics')) return () => {}
  const { read, close } = newMetricsText(engine)
  const timer = setInterval(() => void read(), scrape_every_ms)
  return () => {
    clearInterval(timer)
    close()
  }
}

function newLogger(): NonNullable<EngineOptions['logger']> {
  return pino({ level: 'info' }, pino.destination({ dest: '/dev/null', sync: false }))
}

function newProvider(): { tracerProvider: NodeTracerProvider } {
  const exporter: SpanExporter = {
    export: (_spans, done) => done({ code: 0 }),
    shutdown: async () => {},
  }
  const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(recorded_part) })
  const spanProcessors = [new BatchSpanProcessor(exporter)]
  return { tracerProvider: new NodeTracerProvider({ sampler, spanProcessors }) }
}
