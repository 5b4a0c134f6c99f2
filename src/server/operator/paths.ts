/**
 * The paths of the operator's listener, one row for each. All are read with GET or HEAD.
 */
import { systemClock } from '../../core/clock.ts'
import { whenOver } from '../http/underway.ts'
import { serveChanges } from './changes.ts'
import { answer_headers, type OperatorExchange } from './exchange.ts'
import { serveHealth, serveReady } from './health.ts'

interface OperatorPath {
  readonly path: string
  /** Answers callers without the right to read too, with less. */
  readonly is_for_all?: true
  /** Throws or rejects with a Fault before the response has begun. */
  serve(exchange: OperatorExchange): void | Promise<void>
}

export const paths: readonly OperatorPath[] = [
  { path: '/', is_for_all: true, serve: toPage },
  { path: '/healthz', is_for_all: true, serve: serveHealth },
  { path: '/readyz', is_for_all: true, serve: serveReady },
  { path: '/metrics', serve: serveMetrics },
  { path: '/changes', serve: serveChanges },
]

function toPage({ response }: OperatorExchange): void {
  response.writeHead(302, { ...answer_headers, Location: '/console/' }).end()
}

export async function serveMetrics(exchange: OperatorExchange): Promise<void> {
  const { context, request, response } = exchange
  const { content_type, read } = context.metrics
  const text = await read()
  const until_ms = systemClock.now_ms() + context.limits.reader_stalled_ms_max
  const disarm = systemClock.wake_at(until_ms, () => request.socket.destroy())
  whenOver(request, response, disarm)
  const headers = { 'Content-Type': content_type, 'Content-Length': text.length }
  response.writeHead(200, { ...answer_headers, ...headers })
  response.end(request.method === 'HEAD' ? undefined : text)
}
