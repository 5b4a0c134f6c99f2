/**
 * Authenticates a request: checks the signature over the raw body, then the timestamp (wire 1.1,
 * 1.4, 1.10), before the body is decoded. An unknown user, a user who may not sign this way and a
 * wrong signature get the same response in the same time.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isSignedBy, pathKindOf } from '../../codec/signature.ts'
import type { Caller } from '../../core/model.ts'
import type { ServedEngine } from '../../engine/served-engine.ts'
import { areWellFormed, type Credentials, mistakesOf } from './credentials.ts'
import { httpFault } from './fault-response.ts'
import type { FileTarget, OpsTarget } from './path.ts'

/**
 * The user who signed, and what names the request. Throws `bad_signature`; `stale_timestamp` where
 * the signature is right and the timestamp differs from the engine's clock by more than `window_s`
 * (0: any); `store_failed` where the secrets cannot be read. What `signedText` gives may be
 * signed in place of the body.
 */
export function authenticate(
  engine: ServedEngine,
  window_s: number,
  target: OpsTarget | FileTarget,
  headers: IncomingHttpHeaders,
  body: Buffer,
  signedText?: () => Buffer | undefined,
): SignedCaller {
  const credentials = credentialsOf(target, headers)
  const { user, timestamp, signature } = credentials
  const kind = target.kind === 'header_signed' ? 'hmac' : (pathKindOf(signature) ?? 'path')
  const secrets = engine.users.secrets(user, kind)
  if (!isSignedBy(secrets, kind, timestamp, body, signature)) {
    const text = signedText?.()
    const is_signed = text !== undefined && isSignedBy(secrets, kind, timestamp, text, signature)
    if (!is_signed) throw httpFault('bad_signature')
  }
  const sent_s = Number(timestamp)
  if (window_s !== 0) {
    const now_ms = engine.clock.now_ms()
    const off_ms = sent_s * 1000 - now_ms
    if (Math.abs(off_ms) > window_s * 1000) throw staleTimestamp(off_ms, now_ms, window_s)
  }
  return { user, signed: { timestamp_s: Math.floor(sent_s), signature } }
}

/** A caller by a verified signature. */
export type SignedCaller = Caller & Required<Pick<Caller, 'user' | 'signed'>>

/** Details for a caller that has proved to know the secret. */
function staleTimestamp(off_ms: number, now_ms: number, window_s: number): Error {
  const off = `${Math.abs(Math.round(off_ms)) / 1000} s ${off_ms < 0 ? 'behind' : 'ahead of'}`
  const text = `timestamp outside the window: ${off} the server's time`
  return httpFault('stale_timestamp', `${text}, ${now_ms / 1000}; the window is ${window_s} s`)
}

/**
 * From the path, its query or the headers; node joins repeated headers with a comma, which none of
 * the three may contain. Throws `bad_signature` where they are malformed or in both places.
 */
function credentialsOf(target: OpsTarget | FileTarget, headers: IncomingHttpHeaders): Credentials {
  const user = headers['x-api-login'] as string | undefined
  const timestamp = headers['x-api-timestamp'] as string | undefined
  const signature = headers['x-api-signature'] as string | undefined
  if (target.kind !== 'header_signed') {
    if (user === undefined && timestamp === undefined && signature === undefined) return target
    throw httpFault('bad_signature', 'signed in the path and in headers: it takes one of the two')
  }
  const given = { user, timestamp, signature }
  if (areWellFormed(given, 'hmac')) return given
  throw httpFault('bad_signature', mistakesOf(given, 'hmac'))
}
