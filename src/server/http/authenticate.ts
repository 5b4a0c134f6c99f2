/**
 * Authenticates a request: checks the signature over the raw body, then the timestamp (wire 1.1,
 * 1.4). The body is not decoded yet. An unknown user and a wrong signature get the same response in
 * the same time.
 */
import { isSignedBy } from '../../codec/signature.ts'
import type { Engine } from '../../engine/api.ts'
import { httpFault } from './fault-response.ts'
import type { SignedTarget } from './path.ts'

/**
 * Throws `bad_signature`; `stale_timestamp` where the signature is right and the timestamp differs
 * from the engine's clock by more than `window_s` (0: any); `store_failed` where the secrets cannot
 * be read.
 */
export function verifySignature(
  engine: Engine,
  window_s: number,
  target: SignedTarget,
  body: Buffer,
): void {
  const secrets = engine.users.secrets(target.user)
  if (!isSignedBy(secrets, target.timestamp, body, target.signature))
    throw httpFault('bad_signature')
  if (window_s === 0) return
  const off_ms = Math.abs(engine.clock.now_ms() - Number(target.timestamp) * 1000)
  if (off_ms > window_s * 1000) throw httpFault('stale_timestamp')
}
