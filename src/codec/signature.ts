/**
 * The signature of a request (specification 5): hex(SHA-1(timestamp + secret + body + secret)). The
 * timestamp is the text in the path and the body is the bytes as received; neither is decoded.
 */
import { createHash, hash, timingSafeEqual } from 'node:crypto'

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
  let bytes = message.write(timestamp + secret)
  message.set(body, bytes)
  bytes += body.length
  bytes += message.write(secret, bytes)
  return hash('sha1', message.subarray(0, bytes))
}

/**
 * Whether the signature (hex, either case) was made with one of the secrets. Comparison takes
 * constant time, and an unknown user, who has no secret, takes as long as one with one secret.
 */
export function isSignedBy(
  secrets: readonly string[],
  timestamp: string,
  body: Uint8Array,
  signature: string,
): boolean {
  const is_whole =
    signature.length === 2 * digest_bytes && given.write(signature, 'hex') === digest_bytes
  let matches = false
  for (const secret of secrets.length === 0 ? no_secrets : secrets) {
    made.write(signatureOf(timestamp, secret, body), 'hex')
    if (timingSafeEqual(given, made)) matches = true
  }
  return matches && is_whole && secrets.length > 0
}

/** As long as a real secret. */
const no_secrets = ['x'.repeat(43)]

// Two costs are avoided. A digest as a new Buffer costs as much as hashing a short body, so digests
// are hex, written into buffers that are reused. A short message is copied together and hashed in
// one call; a long one is hashed in parts.
const digest_bytes = 20
const given = Buffer.alloc(digest_bytes)
const made = Buffer.alloc(digest_bytes)
const utf8_bytes_max = 3
const message = Buffer.allocUnsafeSlow(4096)
