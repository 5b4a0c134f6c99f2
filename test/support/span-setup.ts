/**
 * An SDK whose spans stay in memory, registered for the process of the test. `sampler` may be
 * replaced between tests.
 */
import { trace } from '@opentelemetry/api'
import {
  AlwaysOnSampler,
  InMemorySpanExporter,
  NodeTracerProvider,
  ParentBasedSampler,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import type { Tracing } from '../../src/core/tracing.ts'
import { openTelemetryTracing } from '../../src/tracing.ts'

const exporter = new InMemorySpanExporter()
const provider = new NodeTracerProvider({
  sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  spanProcessors: [new SimpleSpanProcessor(exporter)],
})
provider.register()

export const tracing: Tracing = openTelemetryTracing()
export const own_tracer = trace.getTracer('test')

/** The spans that have ended since the last call. */
export function takeSpans(): ReadableSpan[] {
  const spans = exporter.getFinishedSpans()
  exporter.reset()
  return spans
}

/** One line for each span, below its parent: the name, its nodes, and its error. */
export function treeOf(spans: readonly ReadableSpan[]): string[] {
  const ids = new Set(spans.map((span) => span.spanContext().spanId))
  const lines: string[] = []
  const add = (span: ReadableSpan, indent: string): void => {
    const nodes = span.events.map(({ attributes = {} }) => attributes['conveyor.node_id'])
    const error = span.attributes['error.type']
    const more = [...nodes, ...(error === undefined ? [] : [`(${error})`])].map((one) => ` ${one}`)
    lines.push(`${indent}${span.name}${more.join('')}`)
    for (const child of spans) {
      if (child.parentSpanContext?.spanId === span.spanContext().spanId) add(child, `${indent}  `)
    }
  }
  for (const span of spans) {
    const parent_id = span.parentSpanContext?.spanId
    if (parent_id === undefined || !ids.has(parent_id)) add(span, '')
  }
  return lines
}

/** The trace ids of spans, each once. */
export function traceIdsOf(spans: readonly ReadableSpan[]): string[] {
  return [...new Set(spans.map((span) => span.spanContext().traceId))]
}
