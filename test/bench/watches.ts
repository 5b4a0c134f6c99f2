/**
 * What somebody on call has an engine watched with, as `serve` would: lines of the log as JSON to a
 * file that takes all, metrics with a scrape a second, and traces through the SDK of OpenTelemetry,
 * one request in a hundred recorded, to an exporter that takes all.
 *
 * `sdk` is what an embedder has before the engine makes any trace: the SDK is registered, and each
 * call in-process is made under a span of the caller. That belongs to `traces` too.
 */
import { type Tracer, trace } from '@opentelemetry/api'
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  NodeTracerProvider,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node'
import { pino } from 'pino'
import type { Engine, EngineOptions } from '../../src/index.ts'
import { newMetricsText } from '../../src/metrics/metrics-text.ts'
import { openTelemetryTracing } from '../../src/tracing.ts'

export type WatchName = 'logs' | 'metrics' | 'sdk' | 'traces'

const recorded_part = 0.01
const scrape_every_ms = 1_000

/** Runs a call as its caller would. */
export type Around = <T>(call: () => Promise<T>) => Promise<T>

/** The options of an engine that is watched so, and what its callers do around a call. */
export function watch(names: readonly WatchName[]): { options: EngineOptions; around: Around } {
  const has_traces = names.includes('traces')
  const tracer = has_traces || names.includes('sdk') ? registeredTracer() : undefined
  return {
    options: {
      ...(names.includes('logs') ? { logger: newLogger() } : {}),
      ...(has_traces ? { tracing: openTelemetryTracing() } : {}),
    },
    around: tracer === undefined ? (call) => call() : (call) => underSpan(tracer, call),
  }
}

function underSpan<T>(tracer: Tracer, call: () => Promise<T>): Promise<T> {
  return tracer.startActiveSpan('call', (span) => call().finally(() => span.end()))
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

let registered: Tracer | undefined
let root: Sampler = new AlwaysOnSampler()

/**
 * Of the one provider of this process. All requests to its first file are recorded, in repetitions
 * that do not count: an SDK is ten times as fast once it has made some thousand spans.
 */
function registeredTracer(): Tracer {
  if (registered !== undefined) {
    root = new TraceIdRatioBasedSampler(recorded_part)
    return registered
  }
  const exporter: SpanExporter = {
    export: (_spans, done) => done({ code: 0 }),
    shutdown: async () => {},
  }
  const sampler = new ParentBasedSampler({
    root: { shouldSample: (...asked) => root.shouldSample(...asked) },
  })
  const spanProcessors = [new BatchSpanProcessor(exporter)]
  new NodeTracerProvider({ sampler, spanProcessors }).register()
  registered = trace.getTracer('bench')
  // As the program around does: once a context was entered, Node 20 spends more on every promise.
  registered.startActiveSpan('start', (span) => span.end())
  return registered
}
