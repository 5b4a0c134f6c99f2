/**
 * The span of a request. It begins once the caller is authenticated, so that an outsider can
 * neither join a trace nor have one recorded; a request refused earlier begins its own trace. It
 * names the route as a template, because the path contains signatures and ids.
 */
import type { Caller } from '../../core/model.ts'
import { type Attributes, parseTraceparent, traceOfSpan } from '../../core/tracing.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import type { Exchange, RequestTrace } from './context.ts'
import { type BodyTarget, route_of } from './path.ts'

interface Head {
  readonly name: string
  readonly attributes: Attributes
}

const heads: Readonly<Record<string, Head>> = Object.fromEntries(
  Object.entries(route_of).map(([kind, route]) => [
    kind,
    { name: `POST ${route}`, attributes: { 'http.request.method': 'POST', 'http.route': route } },
  ]),
)

/** Called when a request arrives; undefined for an engine without `tracing`. */
export function newRequestTrace({ tracing }: ServedEngine): RequestTrace | undefined {
  if (tracing === undefined) return undefined
  const around = tracing.active()
  return { arrived_ms: performance.now(), around, span: undefined, context: undefined }
}

/** Begins the span of a request whose signature or hash is right. */
export function traceRequest({ trace, context, request }: Exchange, target: BodyTarget): void {
  const { tracing } = context.engine
  if (trace === undefined || tracing === undefined) return
  const given = request.headers.traceparent
  const sent = typeof given === 'string' ? parseTraceparent(given) : undefined
  const parent = trace.around ?? sent
  const { name, attributes } = heads[target.kind] as Head
  const { arrived_ms: began_ms, around } = trace
  const is_remote = around === undefined
  trace.span = tracing.begin({ name, kind: 'server', parent, is_remote, began_ms, attributes })
  trace.context = traceOfSpan(trace.span, parent)
}

/** The caller of the ops of a request, with its trace. */
export function tracedCaller({ trace }: Exchange, caller: Caller): Caller {
  return trace?.context === undefined ? caller : { ...caller, trace: trace.context }
}

/** Called when the response is chosen; `status` is undefined if the connection has closed. */
export function endRequest(
  { trace, context, request }: Exchange,
  status: number | undefined,
  error?: string,
): void {
  if (trace === undefined) return
  if (trace.span === undefined && error !== undefined) {
    const method = request.method === 'POST' ? 'POST' : '_OTHER'
    trace.span = context.engine.tracing?.begin({
      ...{ name: 'HTTP', kind: 'server', parent: trace.around, began_ms: trace.arrived_ms },
      attributes: { 'http.request.method': method },
    })
  }
  const { span } = trace
  if (span === undefined) return
  trace.span = undefined
  if (status !== undefined) span.set({ 'http.response.status_code': status })
  span.end({ error, is_failure: status === undefined || status >= 500 })
}
