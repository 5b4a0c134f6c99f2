/**
 * What the paths of the operator's listener share, as types: the running listener, and a request
 * with its response.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Limits } from '../../core/limits.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import type { MetricsText } from '../../metrics/metrics-text.ts'
import type { Access } from './access.ts'

export interface OperatorContext {
  readonly engine: ServedEngine
  readonly metrics: MetricsText
  readonly limits: Limits
  readonly access: Access
  /** Ends the feeds that are being read. */
  readonly feeds: Set<AbortController>
  readonly onBug: (bug: unknown) => void
  draining: boolean
}

export interface OperatorExchange {
  readonly context: OperatorContext
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly query: URLSearchParams
  /** Whether it may be told all; the paths that others may ask for tell them less. */
  readonly is_trusted: boolean
}
