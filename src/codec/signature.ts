/**
 * The signatures of a request. In the path or query (specification 5): SHA-1, or a longer digest
 * for users who may, of timestamp, secret, body and secret. In headers (wire 1.10): HMAC-SHA-256 of
 * timestamp and body, keyed with the secret. All in hex; the timestamp is its text and the body its
 * bytes as received, neither is decoded.
 */
import { createHash, createHmac, hash, timingSafeEqual } from 'node:crypto'
import { type SignatureKind, signature_kinds } from '../core/model.ts'

/** Lowercase hex digits: 40 of a SHA-1. */
export function signatureOf(
  timestamp: string,
  secret: string,
  body: Uint8Array | string,
  digest = 'sha1',
): string {
  if (typeof body === 'string') return hash(digest, timestamp + secret + body + secret)
  const around_bytes_max = utf8_bytes_max * (timestamp.length + 2 * secret.length)
  if (around_bytes_max + body.length > message.length) {
    return createHash(digest)
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
  return hash(digest, message.subarray(0, body_end + body_at - secret_at))
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
const forms: Readonly<Record<SignatureKind, Form>> = {
  path: form(40, signatureOf),
  'path:sha224': form(56, (...parts) => signatureOf(...parts, 'sha224')),
  'path:sha256': form(64, (...parts) => signatureOf(...parts, 'sha256')),
  'path:sha384': form(96, (...parts) => signatureOf(...parts, 'sha384')),
  'path:sha512': form(128, (...parts) => signatureOf(...parts, 'sha512')),
  hmac: form(64, hmacOf),
}

interface Form {
  readonly sign: typeof hmacOf
  readonly given: Buffer
  readonly made: Buffer
}

function form(digits: number, sign: typeof hmacOf): Form {
  return { sign, given: Buffer.alloc(digits), made: Buffer.alloc(digits) }
}

/** The kind of a signature in a path or query, by its number of digits. */
export function pathKindOf(signature: string): SignatureKind | undefined {
  return by_digits.get(signature.length)
}

const by_digits = new Map(
  signature_kinds
    .filter((kind) => kind !== 'hmac')
    .map((kind) => [forms[kind].given.length, kind] as const),
)
const utf8_bytes_max = 3
const message = Buffer.allocUnsafeSlow(4096)
