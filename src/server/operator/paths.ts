/**
 * The paths of the operator's listener: one row for each. All are read with GET or HEAD, and what
 * `serve` throws is the refusal.
 */
import { serveChanges } from './changes.ts'
import type { OperatorExchange } from './exchange.ts'
import { serveHealth } from './health.ts'
import { serveMetrics } from './metrics.ts'

interface OperatorPath {
  readonly path: string
  /** Answers the request. Throws, or rejects with, a Fault before the response has begun. */
  serve(exchange: OperatorExchange): void | Promise<void>
}

export const paths: readonly OperatorPath[] = [
  { path: '/healthz', serve: serveHealth },
  { path: '/metrics', serve: serveMetrics },
  { path: '/changes', serve: serveChanges },
]
