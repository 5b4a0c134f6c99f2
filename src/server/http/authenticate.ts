/**
 * Authenticates a request: checks the signature over the raw body, then the timestamp (wire 1.1,
 * 1.4, 1.10). The body is not decoded yet. An unknown user, one who may not sign this way and a
 * wrong signature get the same response in the same time.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isSignedBy } from '../../codec/signature.ts'
import type { Engine } from '../../engine/api.ts'
import { httpFault } from './fault-response.ts'
import { type OpsTarget, timestamp_pattern, user_id_pattern } from './path.ts'

/**
 * The user who signed. Throws `bad_signature`; `stale_timestamp` where the signature is right and
 * the timestamp differs from the engine's clock by more than `window_s` (0: any); `store_failed`
 * where the secrets cannot be read.
 */
export function authenticate(
  engine: Engine,
  window_s: number,
  target: OpsTarget,
  headers: IncomingHttpHeaders,
  body: Buffer,
): string {
  const credentials = credentialsOf(target, headers)
  if (credentials === undefined) throw httpFault('bad_signature')
  const { user, timestamp, signature } = credentials
  const kind = target.kind === 'signed' ? 'path' : 'hmac'
  const secrets = engine.users.secrets(user, kind)
  if (!isSignedBy(secrets, kind, timestamp, body, signature)) throw httpFault('bad_signature')
  if (window_s === 0) return user
  const off_ms = Math.abs(engine.clock.now_ms() - Number(timestamp) * 1000)
  if (off_ms > window_s * 1000) throw httpFault('stale_timestamp')
  return user
}

interface Credentials {
  readonly user: string
  readonly timestamp: string
  readonly signature: string
}

const whole_user_id = new RegExp(`^${user_id_pattern}$`)
const whole_timestamp = new RegExp(`^${timestamp_pattern}$`)

/**
 * From the path or from the headers; undefined where they are malformed or in both. Node joins
 * headers that were sent twice with a comma, which none of the three may have.
 */
function credentialsOf(target: OpsTarget, headers: IncomingHttpHeaders): Credentials | undefined {
  const user = headers['x-api-login'] as string | undefined
  const timestamp = headers['x-api-timestamp'] as string | undefined
  const signature = headers['x-api-signature'] as string | undefined
  if (target.kind === 'signed') {
    return user === undefined && timestamp === undefined && signature === undefined
      ? target
      : undefined
  }
  if (user === undefined || timestamp === undefined || signature === undefined) return undefined
  if (!whole_user_id.test(user) || !whole_timestamp.test(timestamp)) return undefined
  return { user, timestamp, signature }
}
