/**
 * The signatures of a request. In the path (specification 5): SHA-1 of timestamp, secret, body and
 * secret. In headers (wire 1.10): HMAC-SHA-256 of timestamp and body, keyed with the secret. Both
 * in hex; the timestamp is its text and the body its bytes as received, neither is decoded.
 */
import { createHash, createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { SignatureKind } from '../core/model.ts'

/** 40 lowercase hex digits. */
export function signatureOf(timestamp: string, secret: string, body: Uint8Array | string): string {
  if (typeof body === 'string') return hash('sha1', timestamp + secret + body + secret)
  const around_bytes_max = utf8_bytes_max * (timestamp.length + 2 * secret.length)
  if (around_bytes_max + body.length > message.length) {
    return createHash('sha1')
      .update(timestamp + secret)
      .update(body)
      .update(secret)
      .digest('hex')
  }
  const secret_at = message.write(timestamp)
  const body_at = secret_at + message.write(secret, secret_at)
  const body_end = body_at + body.length
  message.set(body, body_at)
  message.copyWithin(body_end, secret_at, body_at)
  return hash('sha1', message.subarray(0, body_end + body_at - secret_at))
}

/** 64 lowercase hex digits. */
export function hmacOf(timestamp: string, secret: string, body: Uint8Array | string): string {
  return createHmac('sha256', secret).update(timestamp).update(body).digest('hex')
}

/**
 * Whether the signature was made with one of the secrets; that it is hex, in either case, has been
 * checked. Comparison takes constant time, and all secrets are compared.
 */
export function isSignedBy(
  secrets: readonly string[],
  kind: SignatureKind,
  timestamp: string,
  body: Uint8Array,
  signature: string,
): boolean {
  const { sign, given, made } = forms[kind]
  const is_whole = signature.length === given.length
  given.write(signature.toLowerCase(), 'latin1')
  let matches = false
  for (const secret of secrets) {
    made.write(sign(timestamp, secret, body), 'latin1')
    if (timingSafeEqual(given, made)) matches = true
  }
  return matches && is_whole
}

// Two costs are avoided. A digest as a new Buffer costs as much as hashing a short body, so digests
// are hex, and their digits are compared in buffers that are reused. A short message is copied
// together and hashed in one call; a long one is hashed in parts.
const forms = {
  path: { sign: signatureOf, given: Buffer.alloc(40), made: Buffer.alloc(40) },
  hmac: { sign: hmacOf, given: Buffer.alloc(64), made: Buffer.alloc(64) },
} as const
const utf8_bytes_max = 3
const message = Buffer.allocUnsafeSlow(4096)
