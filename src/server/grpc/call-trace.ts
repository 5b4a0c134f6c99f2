/**
 * The span of a call, or of a batch of a stream. Its caller is authenticated, so the `traceparent`
 * of the metadata counts. Calls that are refused earlier have no span.
 */
import { type Metadata, status } from '@grpc/grpc-js'
import type { Caller } from '../../core/model.ts'
import { parseTraceparent, type Span, type TraceContext, traceOfSpan } from '../../core/tracing.ts'
import type { ServedCall } from './call.ts'

export interface CallTrace {
  readonly span: Span
  readonly context: TraceContext | undefined
}

/** Undefined for an engine without `tracing`. */
export function traceCall({ context, metadata, path }: ServedCall): CallTrace | undefined {
  const { tracing } = context.engine
  if (tracing === undefined) return undefined
  const parent = parentIn(metadata)
  const [, service = '', method = ''] = path.split('/')
  const span = tracing.begin({
    ...{ name: `${service}/${method}`, kind: 'server', parent, is_remote: true },
    attributes: { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method },
  })
  return { span, context: traceOfSpan(span, parent) }
}

function parentIn(metadata: Metadata): TraceContext | undefined {
  const [first, second] = metadata.get('traceparent')
  return typeof first === 'string' && second === undefined ? parseTraceparent(first) : undefined
}

export function tracedCaller(trace: CallTrace | undefined, caller: Caller): Caller {
  return trace?.context === undefined ? caller : { ...caller, trace: trace.context }
}

/** The statuses that are not the caller's fault. */
const failures: readonly number[] = [
  status.UNKNOWN,
  status.DEADLINE_EXCEEDED,
  status.UNIMPLEMENTED,
  status.INTERNAL,
  status.UNAVAILABLE,
  status.DATA_LOSS,
]

/** `error` is the code of the fault, where there is one. */
export function endCall(trace: CallTrace | undefined, code: number, error?: string): void {
  if (trace === undefined) return
  trace.span.set({ 'rpc.grpc.status_code': code })
  trace.span.end({ error, is_failure: failures.includes(code) })
}
