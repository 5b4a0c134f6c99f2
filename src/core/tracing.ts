/**
 * The port of traces, without a dependency. Without `tracing` an op pays one check for undefined. A
 * trace context is that of the W3C header `traceparent`; `tracestate` is dropped, because each task
 * would have to store it. Times are those of `performance.now()`.
 */

/** Identifies a span, as the parent of spans in this or another process. */
export interface TraceContext {
  /** 32 hex digits in lower case, not all 0. */
  readonly trace_id: string
  /** 16 hex digits in lower case, not all 0. */
  readonly span_id: string
  /** One byte. Bit 0: the trace is recorded. */
  readonly flags: number
}

export interface Tracing {
  /** The context of the caller's active span; undefined without one. */
  active(): TraceContext | undefined
  begin(span: NewSpan): Span
  /** Runs `fn` without an active span. */
  detached<T>(fn: () => T): T
  /** Whether an SDK is registered that takes the spans. */
  hasSdk(): boolean
}

export type SpanKind = 'server' | 'client' | 'internal'
export type Attributes = Readonly<Record<string, string | number | boolean>>

export interface NewSpan {
  readonly name: string
  readonly kind: SpanKind
  /** Undefined for the first span of a new trace. */
  readonly parent: TraceContext | undefined
  /** The parent is outside this process; a sampler may depend on it. */
  readonly is_remote?: boolean
  readonly attributes: Attributes
  /** The span of another trace that led to this one. */
  readonly link?: TraceContext | undefined
  /** Default: now. */
  readonly began_ms?: number
}

export interface Span {
  readonly context: TraceContext
  set(attributes: Attributes): void
  event(name: string, attributes: Attributes, at_ms: number): void
  link(context: TraceContext): void
  /** `error` is a code; `is_failure` is false where the caller is to blame. */
  end(end?: SpanEnd): void
  /** Runs `fn` with this span as the active one, also in what it awaits. */
  run<T>(fn: () => T): T
}

export interface SpanEnd {
  readonly error?: string | undefined
  /** Default true. */
  readonly is_failure?: boolean
  /** Default: now. */
  readonly at_ms?: number
}

/** Whether the context marks the trace as recorded. */
export function isSampled(context: TraceContext | undefined): context is TraceContext {
  return context !== undefined && (context.flags & 1) === 1
}

/** The trace of a request's ops; undefined if the server began it and the sampler drops it. */
export function traceOfSpan(
  { context }: Span,
  parent: TraceContext | undefined,
): TraceContext | undefined {
  return parent === undefined && !isSampled(context) ? undefined : context
}

const traceparent_chars = 55
/** A future version may have more after the flags; its known part is still read. */
const traceparent_chars_max = 512
const pattern = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})/

/**
 * The context in a `traceparent`; undefined for a malformed one, or for several in one, which is
 * how node joins repeated headers.
 */
export function parseTraceparent(text: string | undefined): TraceContext | undefined {
  if (text === undefined || text.length < traceparent_chars) return undefined
  if (text.length > traceparent_chars_max || text.includes(',')) return undefined
  const [, version, trace_id, span_id, flags] = pattern.exec(text) ?? []
  if (version === undefined || trace_id === undefined || span_id === undefined) return undefined
  const rest = text.slice(traceparent_chars)
  if (rest !== '' && (version === '00' || !rest.startsWith('-'))) return undefined
  // Only the bits that version 00 defines are passed on.
  return { trace_id, span_id, flags: Number.parseInt(flags as string, 16) & 1 }
}

export function traceparentOf({ trace_id, span_id, flags }: TraceContext): string {
  return `00-${trace_id}-${span_id}-0${flags & 1}`
}
