/**
 * The paths of the operator's listener: one row for each. All are read with GET or HEAD, and what
 * `serve` throws is the refusal.
 */
import { serveChanges } from './changes.ts'
import type { OperatorExchange } from './exchange.ts'
import { serveHealth, serveReady } from './health.ts'
import { serveMetrics } from './metrics.ts'
import { answer_headers } from './reply.ts'

interface OperatorPath {
  readonly path: string
  /** Answered, with less, for those who may not read the others. */
  readonly is_for_all?: true
  /** Answers the request. Throws, or rejects with, a Fault before the response has begun. */
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
