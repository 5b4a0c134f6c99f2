/**
 * Faults as HTTP responses: of the signed API (wire 1.4), and as the JSON of the operator's
 * listener, `{"error":code,"description":…}`. An error that is no Fault is a bug: the caller gets
 * `internal_error` without its text.
 */

import { type ServerResponse, STATUS_CODES } from 'node:http'
import { renderFault } from '../../codec/response-body.ts'
import {
  codeOf,
  type Fault,
  type FaultCode,
  fault,
  isFault,
  isWholeFaultCode,
  type WholeFaultCode,
  wholeFaults,
} from '../../core/faults.ts'

export interface FaultResponse {
  readonly code: WholeFaultCode
  readonly status: number
  /** Name, value, name, value; without `Connection`. */
  readonly headers: readonly string[]
  readonly body: string
  /** Whether the connection ends with this response. */
  readonly closes: boolean
}

/** What a Fault of this server may override or add to its row of the fault table. */
export interface HttpDetail {
  readonly status?: number
  readonly retry_after_s?: number
  /** The allowed methods, for `method_not_allowed`. */
  readonly allow?: string
  /** The scheme by which the caller may authenticate. */
  readonly challenge?: 'Basic' | 'Bearer'
  /** Shown in place of the code, where the contract has a word of its own. */
  readonly request_proc?: 'access_denied'
  /** Overrides the table: false lets other requests follow on the connection. */
  readonly closes?: boolean
  /** The caller gets the text of an `internal_error` too. */
  readonly is_public?: true
}

interface HttpFault extends Fault {
  readonly http?: HttpDetail
}

/** A whole-request fault; the text is the table's unless one is given. */
export function httpFault(code: WholeFaultCode, text?: string, http: HttpDetail = {}): Fault {
  return Object.assign(fault(code, text), { http })
}

/** The response to anything thrown; a bug also goes to `onBug`. */
export function faultResponseOf(thrown: unknown, onBug: (bug: unknown) => void): FaultResponse {
  if (!isFault(thrown) || !isWholeFaultCode(thrown.code)) {
    onBug(thrown)
    return refusal('internal_error', wholeFaults.internal_error.text, {})
  }
  const { message, outside = message, retry_after_s, http = {} } = thrown as HttpFault
  const { code } = thrown
  const is_secret = code === 'internal_error' && http.is_public !== true
  const text = is_secret ? wholeFaults[code].text : outside
  return refusal(code, text, retry_after_s === undefined ? http : { ...http, retry_after_s })
}

/** A complete HTTP/1.1 message for a socket without an open request. Always closes. */
export function rawResponse(refusal: Pick<FaultResponse, 'status' | 'headers' | 'body'>): string {
  let head = `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n`
  const { headers } = refusal
  for (let at = 0; at < headers.length; at += 2) head += `${headers[at]}: ${headers[at + 1]}\r\n`
  return `${head}Connection: close\r\n\r\n${refusal.body}`
}

export const content_type = 'application/json; charset=utf-8'

interface ResponseExtras {
  readonly closes?: true
  readonly retry_after_s?: number
}

/** What the fault table lacks, per code. */
const response_extras: Partial<Record<WholeFaultCode, ResponseExtras>> = {
  bad_request: { closes: true },
  shutting_down: { closes: true, retry_after_s: 5 },
  overloaded: { retry_after_s: 1 },
  body_too_large: { closes: true },
  request_timeout: { closes: true },
  rate_limited: { retry_after_s: 1 },
}

function refusal(code: WholeFaultCode, description: string, http: HttpDetail): FaultResponse {
  const { closes = false, retry_after_s } = { ...response_extras[code], ...http }
  const body = renderFault(http.request_proc ?? code, description)
  const headers = ['Content-Type', content_type, 'Content-Length', String(Buffer.byteLength(body))]
  headers.push(...Object.entries(headersOf(http, retry_after_s)).flat())
  return { code, status: http.status ?? wholeFaults[code].http, headers, body, closes }
}

function headersOf(
  { allow, challenge }: HttpDetail,
  retry_after_s: number | undefined,
): Readonly<Record<string, string>> {
  return {
    ...(retry_after_s !== undefined && { 'Retry-After': String(retry_after_s) }),
    ...(challenge !== undefined && { 'WWW-Authenticate': `${challenge} realm="conveyor"` }),
    ...(allow !== undefined && { Allow: allow }),
  }
}

/** Of codes that the signed API does not answer as a whole. */
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

/** The answer to anything thrown; of a bug it reveals nothing. */
export function refusalOf(thrown: unknown): RefusalAnswer {
  const code = codeOf(thrown)
  const shown = code === 'internal_error' && !isPublic(thrown) ? fault(code) : (thrown as Fault)
  const { message: description, retry_after_s, http = {} } = shown as HttpFault
  const row = isWholeFaultCode(code) ? wholeFaults[code] : undefined
  return {
    code,
    status: http.status ?? row?.http ?? statuses[code] ?? 400,
    headers: headersOf(http, retry_after_s),
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
    'Content-Type': content_type,
    'Content-Length': Buffer.byteLength(body),
  })
  response.end(body)
}

function isPublic(thrown: unknown): boolean {
  return (thrown as HttpFault | null)?.http?.is_public === true
}
