/**
 * The port of traces: what the engine and its servers need, without a dependency. Without `tracing`
 * an op pays one check for undefined.
 *
 * A trace context is that of the header `traceparent` of W3C Trace Context. `tracestate` is not
 * carried: each task would have to keep it. Times are those of `performance.now()`.
 */

/** The name of a span, for spans that are made under it, also in other processes. */
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
  /** Begins a span, which is over once `end` is called. */
  begin(span: NewSpan): Span
  /** Runs `fn` without an active span. */
  detached<T>(fn: () => T): T
  /** Whether anybody takes the spans. Without an SDK that is registered they go nowhere. */
  hasSdk(): boolean
}

export type SpanKind = 'server' | 'client' | 'internal'
export type Attributes = Readonly<Record<string, string | number | boolean>>

export interface NewSpan {
  readonly name: string
  readonly kind: SpanKind
  /** Undefined for the first span of a new trace. */
  readonly parent: TraceContext | undefined
  /** The parent came from outside; a sampler may care. */
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

/** Whether the spans of a trace are recorded, as far as its context says. */
export function isSampled(context: TraceContext | undefined): context is TraceContext {
  return context !== undefined && (context.flags & 1) === 1
}

/**
 * The trace that the ops of a request belong to; undefined for one that the server began and the
 * sampler does not record.
 */
export function traceOfSpan(
  { context }: Span,
  parent: TraceContext | undefined,
): TraceContext | undefined {
  return parent === undefined && !isSampled(context) ? undefined : context
}

const traceparent_chars = 55
/** A future version may have more behind the flags, which are read all the same. */
const traceparent_chars_max = 512
const pattern = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})/

/**
 * The context in a `traceparent`; undefined for a malformed one, and for several in one, which is
 * how node joins headers that were sent twice.
 */
export function parseTraceparent(text: string | undefined): TraceContext | undefined {
  if (text === undefined || text.length < traceparent_chars) return undefined
  if (text.length > traceparent_chars_max || text.includes(',')) return undefined
  const [, version, trace_id, span_id, flags] = pattern.exec(text) ?? []
  if (version === undefined || trace_id === undefined || span_id === undefined) return undefined
  const rest = text.slice(traceparent_chars)
  if (rest !== '' && (version === '00' || !rest.startsWith('-'))) return undefined
  // Only the bits that version 00 defines are handed on.
  return { trace_id, span_id, flags: Number.parseInt(flags as string, 16) & 1 }
}

export function traceparentOf({ trace_id, span_id, flags }: TraceContext): string {
  return `00-${trace_id}-${span_id}-0${flags & 1}`
}
