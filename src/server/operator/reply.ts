/**
 * Writes the answers of the operator's listener: JSON, or a refusal with its code. No answer may be
 * kept by a cache or read by a page of another origin.
 */
import type { ServerResponse } from 'node:http'
import { isFault } from '../../core/faults.ts'
import { emitRefused } from '../../core/refusals.ts'
import { refusalOf, replyJson } from '../http/refusal.ts'
import type { OperatorContext } from './exchange.ts'

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

/** Sends what was thrown: `{"error":code,"description":…}`. A bug also goes to `onBug`. */
export function refuse(context: OperatorContext, response: ServerResponse, thrown: unknown): void {
  if (!isFault(thrown)) context.onBug(thrown)
  const { code, status, value, headers } = refusalOf(thrown)
  const address = response.req.socket.remoteAddress
  emitRefused(context.observers, { server: 'operator', code, address })
  // It has begun: the reader must not take it for complete.
  if (response.headersSent) return void response.destroy()
  reply(response, status, value, context.draining ? { ...headers, Connection: 'close' } : headers)
}
