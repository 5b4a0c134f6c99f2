/**
 * What the paths of the operator's listener share: the running listener, a request, and how it is
 * answered. No answer may be cached or read by a page of another origin.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { PostgresLog } from '../../cluster/node/node.ts'
import { type NodeStatus, notOwnerText } from '../../cluster/node/status.ts'
import type { ConsolePage } from '../../console/server/console.ts'
import type { Counters } from '../../core/counters.ts'
import type { Emit } from '../../core/events.ts'
import { isFault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import { emitRefused } from '../../core/refusals.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import type { MetricsText } from '../../metrics/metrics-text.ts'
import { httpFault, refusalOf, replyJson } from '../http/fault-response.ts'
import type { Access } from './access.ts'

/** Of the engine, or the listener's own while it has no engine. */
export interface Observers {
  readonly emit: Emit
  readonly counters: Pick<Counters, 'countRequest' | 'setCertificate'>
}

/** A node of a cluster, in any role. */
export type NodeView = Pick<PostgresLog, 'status'>

export interface OperatorContext {
  /** Undefined at a node that is not the owner. */
  engine: ServedEngine | undefined
  readonly node: NodeView | undefined
  /** The engine of a standby that answers reads. */
  reader: ServedEngine | undefined
  readonly observers: Observers
  metrics: MetricsText
  readonly limits: Limits
  readonly access: Access
  readonly page: ConsolePage
  /** Each ends a feed. */
  readonly feeds: Set<AbortController>
  readonly onBug: (bug: unknown) => void
  draining: boolean
}

/** Throws `overloaded`, with the owner's name, if there is no engine. */
export function openEngineOf({ engine, node }: OperatorContext): ServedEngine {
  if (engine !== undefined) return engine
  throw httpFault('overloaded', notOwnerText(node?.status() as NodeStatus))
}

export interface OperatorExchange {
  readonly context: OperatorContext
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly query: URLSearchParams
  /** Whether the caller may read everything; the health paths show others less. */
  readonly is_trusted: boolean
}

export const answer_headers = {
  'Cache-Control': 'no-store',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
} as const

export function reply(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  replyJson(response, status, value, { ...answer_headers, ...headers })
}

/** Answers anything thrown: `{"error":code,"description":…}`. A bug also goes to `onBug`. */
export function refuse(context: OperatorContext, response: ServerResponse, thrown: unknown): void {
  if (!isFault(thrown)) context.onBug(thrown)
  const { code, status, value, headers } = refusalOf(thrown)
  const address = response.req.socket.remoteAddress
  emitRefused(context.observers, { server: 'operator', code, address })
  // A begun response must not look complete.
  if (response.headersSent) return void response.destroy()
  reply(response, status, value, context.draining ? { ...headers, Connection: 'close' } : headers)
}
