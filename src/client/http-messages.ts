/**
 * The signed requests of the JSON endpoint and its responses, version 2 (wire 1.1, 1.3). Numbers in
 * a task's data keep their exact text. A response of another form is `bad_answer`.
 */
import { isNumberToken, isObject, parseJson, stringifyJson } from '../codec/json.ts'
import { hmacOf, signatureOf } from '../codec/signature.ts'
import type { Chance } from '../core/clock.ts'
import { isWholeFaultCode } from '../core/faults.ts'
import type { JsonObject, JsonValue } from '../core/model.ts'
import type { ClientResult, ClientTask } from './api.ts'
import { type ClientFault, clientFault } from './faults.ts'
import type { SentOp } from './sent-op.ts'
import { withParsedData } from './transport.ts'

/** The origin and base path of a server, without a trailing slash; undefined for no http URL. */
export function serverBase(given: string): string | undefined {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

export interface Signer {
  readonly user: string
  readonly secret: string
  /** Signs in the path, or with an HMAC in headers. */
  readonly sign: 'path' | 'hmac'
}

/** The parts of a signed request: its path from `/api` on, and headers. */
export interface Signed {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

export const wholeSeconds = (now_ms: number): string => String(Math.floor(now_ms / 1_000))

/**
 * Seconds with a unique fraction, so that two equal requests of one second are not taken for a
 * repeat.
 */
export function ownTimestamp(now_ms: number, chance: Chance): string {
  const ms = String(Math.floor(now_ms % 1_000)).padStart(3, '0')
  const own = String(Math.floor(chance.fraction() * 1_000_000)).padStart(6, '0')
  return `${wholeSeconds(now_ms)}.${ms}${own}`
}

export function signed(
  version: 1 | 2,
  { user, secret, sign }: Signer,
  timestamp: string,
  body: Buffer,
): Signed {
  const path = `/api/${version}/json`
  if (sign === 'path') {
    const signature = signatureOf(timestamp, secret, body)
    return { path: `${path}/${user}/${timestamp}/${signature}`, headers: {} }
  }
  const headers = {
    'X-API-Login': user,
    'X-API-Timestamp': timestamp,
    'X-API-Signature': hmacOf(timestamp, secret, body),
  }
  return { path, headers }
}

export function requestBody(ops: readonly SentOp[]): Buffer {
  return Buffer.from(`{"ops":[${ops.map(opText).join(',')}]}`)
}

const text_members = ['id', 'ref', 'obj_id', 'node_id'] as const

function opText(op: SentOp): string {
  const { type, data_text, is_sync } = op
  let text = `{"type":"${type}","obj":"task","conv_id":${JSON.stringify(op.conv_id)}`
  for (const name of text_members) {
    const value = op[name]
    if (value !== undefined) text += `,"${name}":${JSON.stringify(value)}`
  }
  if (is_sync) text += ',"is_sync":true'
  return type === 'show' ? `${text}}` : `${text},"data":${data_text}}`
}

export interface HttpResponse {
  readonly status: number
  /** The Retry-After header. */
  readonly retry_after: string | undefined
  /** From a standby. */
  readonly is_standby: boolean
  /** The Conveyor-Replay header: what the server does with a repeat. */
  readonly replay: string | undefined
  readonly body: string
}

/** One result for each op. Throws a ClientFault if the whole request was refused. */
export function resultsOf(answer: HttpResponse, ops: readonly SentOp[]): ClientResult[] {
  const value = parsedBody(answer)
  if (value.request_proc !== 'ok') throw faultOfResponse(answer, value)
  const results = value.ops
  if (!Array.isArray(results) || results.length !== ops.length) throw badResponse(answer)
  return results.map((result, at) => {
    if (!isObject(result)) throw badResponse(answer)
    return resultOf(result, ops[at] as SentOp)
  })
}

/** Loose, because the server has bounded the data. */
const bounds = { nesting_max: 1_000, values_max: Number.MAX_SAFE_INTEGER }

function parsedBody(answer: HttpResponse): JsonObject {
  try {
    const value = parseJson(answer.body, bounds)
    if (isObject(value) && typeof value.request_proc === 'string') return value
  } catch (cause) {
    throw badResponse(answer, cause)
  }
  throw badResponse(answer)
}

function faultOfResponse(answer: HttpResponse, value: JsonObject): ClientFault {
  const code = String(value.request_proc)
  if (!isWholeFaultCode(code)) return badResponse(answer)
  const { description } = value
  const text = typeof description === 'string' ? description : code
  return clientFault(code, text, { retry_after_ms: retryAfter_ms(answer) })
}

/** A proxy answers 502 to 504 if it cannot reach the server. */
function badResponse(answer: HttpResponse, cause?: unknown): ClientFault {
  const { status, body } = answer
  if (status >= 502 && status <= 504) {
    const text = `a proxy answered ${status}`
    return clientFault('unreachable', text, { cause, retry_after_ms: retryAfter_ms(answer) })
  }
  const opening = JSON.stringify(body.slice(0, 100))
  const text = `no answer of a Conveyor server: status ${status}, ${opening}`
  return clientFault('bad_answer', text, { cause })
}

function retryAfter_ms({ retry_after }: HttpResponse): number | undefined {
  return /^[0-9]{1,6}$/.test(retry_after ?? '') ? Number(retry_after) * 1_000 : undefined
}

function resultOf(result: JsonObject, op: SentOp): ClientResult {
  const { ref, obj_id, proc, description, status } = result
  return {
    ...(op.id === undefined ? {} : { id: op.id }),
    ref: textOrNull(ref),
    ...(typeof obj_id === 'string' ? { obj_id } : {}),
    proc: proc as ClientResult['proc'],
    ...(typeof description === 'string' && proc !== 'ok' ? { description } : {}),
    ...(proc === 'ok' && op.type === 'show' && status !== undefined
      ? { task: taskOf(result, op.conv_id) }
      : {}),
  }
}

function taskOf(result: JsonObject, conv_id: string): ClientTask {
  const details = result.status_details as { tag: string; description: string } | undefined
  return withParsedData({
    obj_id: String(result.obj_id),
    conv_id,
    ref: textOrNull(result.ref),
    status: result.status as ClientTask['status'],
    ...(details === undefined ? {} : { status_details: { ...details } }),
    user_id: textOrNull(result.user_id),
    create_time_ms: Number(result.create_time) * 1_000,
    change_time_ms: Number(result.change_time) * 1_000,
    node_id: String(result.node_id),
    node_prev_id: String(result.node_prev_id),
    data_text: stringifyJson(result.data ?? {}),
  })
}

/** A text, or the exact text of a number. */
function textOrNull(value: JsonValue | undefined): string | null {
  if (isNumberToken(value)) return value.token
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null
}
