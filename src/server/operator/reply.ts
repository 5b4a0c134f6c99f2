/**
 * Writes the answers of the operator's listener: JSON, or a refusal with its code. No answer may be
 * kept by a cache or read by a page of another origin.
 */
import type { ServerResponse } from 'node:http'
import { type FaultCode, isFault, isWholeFaultCode, wholeFaults } from '../../core/faults.ts'
import { challengeOf, type HttpDetail } from '../http/fault-response.ts'
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
  headers: Record<string, string> = {},
): void {
  const body = `${JSON.stringify(value)}\n`
  response.writeHead(status, {
    ...answer_headers,
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  })
  response.end(body)
}

/** The statuses of faults that the signed HTTP server does not answer as a whole. */
const statuses: Partial<Record<FaultCode, number>> = { conv_not_found: 404, not_possible: 400 }

/** Sends what was thrown: `{"error":code,"description":…}`. A bug also goes to `onBug`. */
export function refuse(context: OperatorContext, response: ServerResponse, thrown: unknown): void {
  const is_bug = !isFault(thrown) || thrown.code === 'internal_error'
  if (is_bug) context.onBug(thrown)
  const code = is_bug ? 'internal_error' : thrown.code
  const address = response.req.socket.remoteAddress
  context.engine.tell('request_refused', { server: 'operator', code, address })
  // It has begun: the reader must not take it for complete.
  if (response.headersSent) return void response.destroy()
  const row = isWholeFaultCode(code) ? wholeFaults[code] : undefined
  const { status, allow, challenge } = (thrown as { http?: HttpDetail }).http ?? {}
  const description = is_bug ? wholeFaults.internal_error.text : thrown.message
  const headers = {
    ...(allow === undefined ? {} : { Allow: allow }),
    ...(challenge === undefined ? {} : { 'WWW-Authenticate': challengeOf(challenge) }),
  }
  reply(
    response,
    status ?? row?.http ?? statuses[code] ?? 400,
    { error: code, description },
    context.draining ? { ...headers, Connection: 'close' } : headers,
  )
}
