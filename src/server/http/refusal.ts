/**
 * How any fault is answered as JSON to those who run an engine: `{"error":code,"description":…}`
 * with a status, also the faults that the signed HTTP server does not answer as a whole.
 */
import type { ServerResponse } from 'node:http'
import {
  codeOf,
  type Fault,
  type FaultCode,
  fault,
  isWholeFaultCode,
  wholeFaults,
} from '../../core/faults.ts'
import { challengeOf, type HttpDetail } from './fault-response.ts'

const statuses: Partial<Record<FaultCode, number>> = {
  access_denied: 403,
  conv_not_found: 404,
  not_found_task: 404,
  node_not_found: 404,
  not_possible: 400,
}

export interface RefusalAnswer {
  readonly code: FaultCode
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly value: { readonly error: FaultCode; readonly description: string }
}

/** The answer to what was thrown; of a bug it tells nothing. */
export function refusalOf(thrown: unknown): RefusalAnswer {
  const code = codeOf(thrown)
  const told = code === 'internal_error' && !isTold(thrown) ? fault(code) : (thrown as Fault)
  const { message: description, retry_after_s, http = {} } = told as Fault & { http?: HttpDetail }
  const { allow, challenge } = http
  const row = isWholeFaultCode(code) ? wholeFaults[code] : undefined
  return {
    code,
    status: http.status ?? row?.http ?? statuses[code] ?? 400,
    headers: {
      ...(allow === undefined ? {} : { Allow: allow }),
      ...(challenge === undefined ? {} : { 'WWW-Authenticate': challengeOf(challenge) }),
      ...(retry_after_s === undefined ? {} : { 'Retry-After': String(retry_after_s) }),
    },
    value: { error: code, description },
  }
}

/** Writes an answer as JSON, with these headers. */
export function replyJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>>,
): void {
  const body = `${JSON.stringify(value)}\n`
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  })
  response.end(body)
}

function isTold(thrown: unknown): boolean {
  return (thrown as { http?: HttpDetail } | null)?.http?.is_told === true
}
