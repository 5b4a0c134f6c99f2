/**
 * Traces by `@opentelemetry/api`: spans of the engine become spans of the SDK that the program has
 * registered. Only this file knows the package, which the embedder installs.
 *
 * No trace is worth a task: what an SDK throws is dropped, and the span with it. Spans begin and
 * end at times that one clock has measured, the monotonic one, which never goes back.
 */
import {
  context as active_context,
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind,
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
 * The option `tracing` of an engine.
 *
 *     const engine = await openEngine('tasks.lmdb', { tracing: openTelemetryTracing() })
 */
export function openTelemetryTracing({ tracerProvider }: OpenTelemetryOptions = {}): Tracing {
  const tracer = (tracerProvider ?? trace).getTracer('conveyor-engine', version)

  function begin(span: NewSpan): Span {
    const { name, kind, parent, attributes, link, is_remote } = span
    const began_ms = span.began_ms ?? performance.now()
    const startTime = timeOf(began_ms)
    const options = {
      ...{ kind: kinds[kind], attributes, startTime, root: parent === undefined },
      ...(link === undefined ? {} : { links: [{ context: sdkContext(link) }] }),
    }
    const under =
      parent === undefined
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, sdkContext(parent, is_remote))
    const begun = tracer.startSpan(name, options, under)
    return begun.isRecording()
      ? recording(begun, (at_ms) => startTime + (at_ms - began_ms))
      : silent(begun)
  }

  return {
    begin: (span) =>
      attempt(
        () => begin(span),
        () => lost(span),
      ),
    active: () =>
      attempt(
        () => contextOf(trace.getActiveSpan()),
        () => undefined,
      ),
    detached: (fn) => active_context.with(ROOT_CONTEXT, fn),
    hasSdk: () =>
      attempt(
        // Never ended, so nobody sees it.
        () => isSpanContextValid(tracer.startSpan('probe', { root: true }).spanContext()),
        () => false,
      ),
  }
}

/** `epochMs` gives the time of day of one of `performance.now()`. */
function recording(span: SdkSpan, epochMs: (at_ms: number) => number): Span {
  const change = (fn: () => void): void => void attempt(fn, () => {})
  return {
    context: contextOf(span) as TraceContext,
    set: (attributes) => change(() => span.setAttributes(attributes)),
    event: (name, attributes, at_ms) =>
      change(() => span.addEvent(name, attributes, epochMs(at_ms))),
    link: (to) => change(() => span.addLink({ context: sdkContext(to) })),
    end: ({ error, is_failure = true, at_ms = performance.now() } = {}) =>
      change(() => {
        if (error !== undefined) span.setAttribute('error.type', error)
        if (error !== undefined && is_failure) span.setStatus({ code: SpanStatusCode.ERROR })
        span.end(epochMs(at_ms))
      }),
    run: (fn) => active_context.with(trace.setSpan(ROOT_CONTEXT, span), fn),
  }
}

/** A span that the sampler does not want: what is made under it is not wanted either. */
function silent(span: SdkSpan): Span {
  const context = contextOf(span)
  return unrecorded(context ?? no_context, trace.setSpan(ROOT_CONTEXT, span))
}

/** A span that the SDK could not make: what is made under it belongs to its parent. */
function lost({ parent }: NewSpan): Span {
  return unrecorded(parent ?? no_context, ROOT_CONTEXT)
}

function unrecorded(context: TraceContext, active: Context): Span {
  return {
    ...{ context, set: nothing, event: nothing, link: nothing, end: nothing },
    run: (fn) => active_context.with(active, fn),
  }
}

/** Of no trace: without an SDK, a span that begins a trace has no ids. */
const no_context: TraceContext = { trace_id: '0'.repeat(32), span_id: '0'.repeat(16), flags: 0 }

function nothing(): void {}

function attempt<T>(run: () => T, otherwise: () => T): T {
  try {
    return run()
  } catch {
    return otherwise()
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

/** The time of day, in milliseconds with fractions, of one of `performance.now()`. */
function timeOf(at_ms: number): number {
  return systemClock.now_ms() - (performance.now() - at_ms)
}
