/**
 * Writes the answers of the operator's listener: JSON, or a refusal with its code. No answer may be
 * kept by a cache or read by a page of another origin.
 */
import type { ServerResponse } from 'node:http'
import {
  codeOf,
  type Fault,
  type FaultCode,
  fault,
  isFault,
  isWholeFaultCode,
  wholeFaults,
} from '../../core/faults.ts'
import { tellRefused } from '../../core/refusals.ts'
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
  if (!isFault(thrown)) context.onBug(thrown)
  const code = codeOf(thrown)
  const address = response.req.socket.remoteAddress
  tellRefused(context.observers, { server: 'operator', code, address })
  // It has begun: the reader must not take it for complete.
  if (response.headersSent) return void response.destroy()
  const told = code === 'internal_error' ? fault(code) : (thrown as Fault)
  const { status, value } = refusalOf(told)
  const { allow, challenge } = (thrown as { http?: HttpDetail }).http ?? {}
  const headers = {
    ...(allow === undefined ? {} : { Allow: allow }),
    ...(challenge === undefined ? {} : { 'WWW-Authenticate': challengeOf(challenge) }),
  }
  reply(response, status, value, context.draining ? { ...headers, Connection: 'close' } : headers)
}

/** How a fault is answered. */
export function refusalOf(of: Fault & { readonly http?: HttpDetail }): {
  readonly status: number
  readonly value: { readonly error: FaultCode; readonly description: string }
} {
  const { code, message: description, http } = of
  const row = isWholeFaultCode(code) ? wholeFaults[code] : undefined
  const status = http?.status ?? row?.http ?? statuses[code] ?? 400
  return { status, value: { error: code, description } }
}
