/**
 * Faults as HTTP responses (wire 1.4): the status, headers and body of a code. Everything thrown
 * while a request is served becomes a response here. An error that is no Fault is a bug: it goes to
 * `onBug`, and the caller gets `internal_error` without its text.
 */
import { STATUS_CODES } from 'node:http'
import { renderFault } from '../../codec/response-body.ts'
import {
  type Fault,
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
  /** Other than in the table: false where others may follow the request on its connection. */
  readonly closes?: boolean
  /** The text of an `internal_error` is for the caller too. */
  readonly is_told?: true
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
  const {
    code,
    message,
    outside = message,
    retry_after_s,
    http = {},
  } = thrown as HttpFault & {
    code: WholeFaultCode
  }
  const is_secret = code === 'internal_error' && http.is_told !== true
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

/** Per code, what the fault table does not hold. */
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
  const body = renderFault(code, description)
  const headers = ['Content-Type', content_type, 'Content-Length', String(Buffer.byteLength(body))]
  if (retry_after_s !== undefined) headers.push('Retry-After', String(retry_after_s))
  if (http.challenge !== undefined) headers.push('WWW-Authenticate', challengeOf(http.challenge))
  if (http.allow !== undefined) headers.push('Allow', http.allow)
  return { code, status: http.status ?? wholeFaults[code].http, headers, body, closes }
}

export function challengeOf(scheme: string): string {
  return `${scheme} realm="conveyor"`
}
