/**
 * Exports spans of the engine through the SDK registered with `@opentelemetry/api`, which only this
 * file imports. Errors of an SDK are dropped with the span, so that tracing never affects a task.
 * Times come from the monotonic clock.
 */
import {
  context as active_context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'
import { systemClock } from '../core/clock.ts'
import type { NewSpan, Span, TraceContext, Tracing } from '../core/tracing.ts'
import { version } from '../core/version.ts'

export interface OpenTelemetryOptions {
  /** Default: the provider that is registered when a span begins. */
  readonly tracerProvider?: TracerProvider
}

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
} as const satisfies Record<NewSpan['kind'], SpanKind>

/**
 * The option `tracing` of an engine: `openEngine('tasks.lmdb', { tracing: openTelemetryTracing()
 * })`.
 */
export function openTelemetryTracing({ tracerProvider }: OpenTelemetryOptions = {}): Tracing {
  const tracer = (tracerProvider ?? trace).getTracer('conveyor-engine', version)

  function begin(span: NewSpan): Span {
    const { parent, link, attributes, is_remote, began_ms = performance.now() } = span
    const startTime = systemClock.now_ms() - (performance.now() - began_ms)
    const options: SpanOptions = { kind: kinds[span.kind], attributes, startTime }
    if (link !== undefined) options.links = [{ context: sdkContext(link) }]
    const under =
      parent === undefined
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, sdkContext(parent, is_remote))
    const begun = tracer.startSpan(span.name, options, under)
    const context = contextOf(begun)
    if (context !== undefined && begun.isRecording()) {
      return recording(begun, context, startTime - began_ms)
    }
    return parent === undefined ? no_span : silent(begun, context ?? parent)
  }

  return {
    begin(span) {
      try {
        return begin(span)
      } catch {
        return span.parent === undefined ? no_span : silent(undefined, span.parent)
      }
    },
    active() {
      try {
        return contextOf(trace.getActiveSpan())
      } catch {
        return undefined
      }
    },
    // Node may slow down every promise of the program once a context was entered.
    detached: (fn) =>
      active_context.active() === ROOT_CONTEXT ? fn() : active_context.with(ROOT_CONTEXT, fn),
    hasSdk() {
      try {
        // Never ended, so never exported.
        return isSpanContextValid(tracer.startSpan('probe', {}, ROOT_CONTEXT).spanContext())
      } catch {
        return false
      }
    },
  }
}

/** `epoch_ms` is the time of day at which `performance.now()` was 0. */
function recording(span: SdkSpan, context: TraceContext, epoch_ms: number): Span {
  return {
    context,
    set: (attributes) => attempt(() => span.setAttributes(attributes)),
    event: (name, attributes, at_ms) =>
      attempt(() => span.addEvent(name, attributes, epoch_ms + at_ms)),
    link: (to) => attempt(() => span.addLink({ context: sdkContext(to) })),
    end: ({ error, is_failure = true, at_ms = performance.now() } = {}) =>
      attempt(() => {
        if (error !== undefined) span.setAttribute('error.type', error)
        if (error !== undefined && is_failure) span.setStatus({ code: SpanStatusCode.ERROR })
        span.end(epoch_ms + at_ms)
      }),
    run: (fn) => active_context.with(trace.setSpan(ROOT_CONTEXT, span), fn),
  }
}

/** A span that is not recorded or failed to start. Its children are not recorded either. */
function silent(span: SdkSpan | undefined, context: TraceContext): Span {
  const run = <T>(fn: () => T): T => {
    const active = span === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, span)
    return active_context.with(active, fn)
  }
  return { context, set: nothing, event: nothing, link: nothing, end: nothing, run }
}

function nothing(): void {}

/** Shared by all unrecorded roots, which are most requests under a low sampling rate. */
const no_context = { trace_id: '0'.repeat(32), span_id: '0'.repeat(16), flags: 0 }
const no_span = silent(undefined, no_context)

function attempt(run: () => unknown): void {
  try {
    run()
  } catch {
    // An error of the embedder's SDK must not affect a task.
  }
}

function contextOf(span: SdkSpan | undefined): TraceContext | undefined {
  const given = span?.spanContext()
  if (given === undefined || !isSpanContextValid(given)) return undefined
  return { trace_id: given.traceId, span_id: given.spanId, flags: given.traceFlags & 1 }
}

function sdkContext({ trace_id, span_id, flags }: TraceContext, isRemote = false) {
  return { traceId: trace_id, spanId: span_id, traceFlags: flags, isRemote }
}
